// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// maxVersions is how many versions are listed, the latest.
const maxVersions = 100

// versions answers with the values of an attribute of a service's resources or profiles, in the order in which they
// first appeared: those of service.version are marks on the time line.
func (s *server) versions(r *request) (*answer, error) {
	sel := r.selected()
	key := cmp.Or(r.params.Get("key"), query.VersionKey)
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	sel.Attributes = slices.DeleteFunc(sel.Attributes, func(a model.Attribute) bool { return a.Key == key })
	found, err := query.Versions(r.Context(), s.Store, sel, key)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(v query.Version) bool { return len(v.Value) > maxNameBytes })
	more := max(0, len(found)-maxVersions)
	list := []map[string]any{}
	for _, v := range found[more:] {
		list = append(list, map[string]any{"value": v.Value, "from": millis(v.From), "until": millis(v.Until)})
	}
	return jsonAnswer(map[string]any{"key": key, "versions": list, "more": more})
}
