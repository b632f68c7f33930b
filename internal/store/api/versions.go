// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// maxVersions is how many versions are listed, the latest.
const maxVersions = 100

type version struct {
	Value string `json:"value"`
	From  int64  `json:"from"`
	Until int64  `json:"until"`
}

// versions answers with the values of an attribute of a service's resources or profiles, in the order in which they
// first appeared: those of service.version are marks on the time line.
func (s *server) versions(r *request) (*answer, error) {
	sel := r.selected()
	key := cmp.Or(r.params.Get("key"), "service.version")
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	sel.Attributes = slices.DeleteFunc(sel.Attributes, func(a model.Attribute) bool { return a.Key == key })
	series, err := s.Store.Series(r.Context(), sel)
	if err != nil {
		return nil, err
	}
	found := map[string]*version{}
	for i := range series {
		in := &series[i]
		at := slices.IndexFunc(in.Labels, func(a model.Attribute) bool { return a.Key == key })
		if at < 0 {
			continue
		}
		value := in.Labels[at].Value
		if len(value) > maxNameBytes {
			continue
		}
		v := found[value]
		if v == nil {
			v = &version{Value: value, From: millis(in.From)}
			found[value] = v
		}
		v.From, v.Until = min(v.From, millis(in.From)), max(v.Until, millis(in.Until))
	}
	list := make([]*version, 0, len(found))
	for _, v := range found {
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *version) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Value, b.Value))
	})
	return jsonAnswer(map[string]any{"key": key, "versions": list[max(0, len(list)-maxVersions):],
		"more": max(0, len(list)-maxVersions)})
}
