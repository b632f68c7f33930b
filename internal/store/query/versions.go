// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Version is a value of an attribute, and the time of all profiles that have it.
type Version struct {
	Value       string
	From, Until int64
}

// VersionKey is the key of an attribute whose values follow each other.
const VersionKey = "service.version"

// Versions returns the values of an attribute of resources or profiles, in the order in which they first appeared, if
// their time overlaps the selected one. All that is kept tells when that was, not only the blocks of the selected time.
func Versions(ctx context.Context, from *answers.Querier, sel model.Selection, key string) ([]Version, error) {
	all := sel
	all.From, all.Until = 0, 0
	series, err := from.Series(ctx, all)
	found := map[string]Version{}
	for i := range series {
		in := &series[i]
		if value, ok := in.Label(key); ok {
			v, known := found[value]
			if !known {
				v = Version{value, in.From, in.Until}
			}
			found[value] = Version{value, min(v.From, in.From), max(v.Until, in.Until)}
		}
	}
	maps.DeleteFunc(found, func(_ string, v Version) bool {
		return v.Until < sel.From || sel.Until != 0 && v.From >= sel.Until
	})
	return slices.SortedFunc(maps.Values(found), func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Value, b.Value))
	}), err
}
