// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// profileGroup has the profiles of both sides with the same name, which describes everything that they have in common.
type profileGroup struct {
	name      string
	want, got []pprofile.Profile
}

// profileGroups has groups in the order of their first profiles.
type profileGroups struct {
	groups []*profileGroup
	byName map[string]*profileGroup
}

func (g *profileGroups) at(name string) *profileGroup {
	group, ok := g.byName[name]
	if !ok {
		group = &profileGroup{name: name}
		g.groups = append(g.groups, group)
		if g.byName == nil {
			g.byName = make(map[string]*profileGroup)
		}
		g.byName[name] = group
	}
	return group
}

// compareGrouped compares the profiles of equal resources and scopes, wherever they are.
func (c *comparison) compareGrouped() {
	var scopes profileGroups
	eachScope(c.want.pd, func(name string, profiles []pprofile.Profile) {
		g := scopes.at(name)
		g.want = append(g.want, profiles...)
	})
	eachScope(c.got.pd, func(name string, profiles []pprofile.Profile) {
		g := scopes.at(name)
		g.got = append(g.got, profiles...)
	})
	for _, scope := range scopes.groups {
		c.compareScopeGroup(scope)
	}
}

func eachScope(pd pprofile.Profiles, visit func(name string, profiles []pprofile.Profile)) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			profiles := make([]pprofile.Profile, 0, sp.Profiles().Len())
			for _, p := range sp.Profiles().All() {
				profiles = append(profiles, p)
			}
			visit("resource "+resolved.ResourceText(rp)+" scope "+resolved.ScopeText(sp), profiles)
		}
	}
}

func (c *comparison) compareScopeGroup(scope *profileGroup) {
	var headers profileGroups
	for _, p := range scope.want {
		g := headers.at(c.want.header(p, c.options))
		g.want = append(g.want, p)
	}
	for _, p := range scope.got {
		g := headers.at(c.got.header(p, c.options))
		g.got = append(g.got, p)
	}
	for _, g := range headers.groups {
		where := scope.name + " " + g.name
		switch {
		case len(g.want) == 0 || len(g.got) == 0:
			c.compareCount(where, len(g.want), len(g.got))
		case c.options.mergeProfiles:
			c.compareSamples(where, g.want, g.got)
			c.comparePayloadSets(where, g)
		default:
			c.compareCount(where, len(g.want), len(g.got))
			c.compareUnordered(where, g)
		}
	}
}

// header returns the fields that equal profiles have in common. After a split only one part has the payload and its
// format.
func (s *side) header(p pprofile.Profile, o equalOptions) string {
	texts := []string{"profile"}
	for _, f := range s.fields(p) {
		if f.Value != "" && (!o.mergeProfiles || f.Name != "original_payload_format") {
			texts = append(texts, f.Name+" "+f.Value)
		}
	}
	return strings.Join(texts, ", ")
}

// compareUnordered pairs equal profiles first, and lists the differences between the others.
func (c *comparison) compareUnordered(where string, g *profileGroup) {
	rest := slices.Clone(g.got)
	var unmatched []pprofile.Profile
	for _, want := range g.want {
		i := slices.IndexFunc(rest, func(got pprofile.Profile) bool { return c.equalContent(want, got) })
		if i < 0 {
			unmatched = append(unmatched, want)
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	for i := range min(len(unmatched), len(rest)) {
		c.comparePayload(where, unmatched[i], rest[i])
		c.compareSamples(where, unmatched[i:i+1], rest[i:i+1])
	}
}

func (c *comparison) equalContent(want, got pprofile.Profile) bool {
	trial := comparison{options: c.options, want: c.want, got: c.got}
	trial.comparePayload("", want, got)
	trial.compareSamples("", []pprofile.Profile{want}, []pprofile.Profile{got})
	return trial.differences.err() == nil
}

func (c *comparison) comparePayloadSets(where string, g *profileGroup) {
	want, got := payloads(g.want), payloads(g.got)
	if !slices.Equal(want, got) {
		c.differences.add(where+".original_payload", "the %d payloads differ from the %d wanted", len(got), len(want))
	}
}

// payloads returns the distinct payloads with their formats, sorted.
func payloads(profiles []pprofile.Profile) []string {
	var all []string
	for _, p := range profiles {
		if p.OriginalPayload().Len() > 0 {
			all = append(all, resolved.Word(p.OriginalPayloadFormat())+" "+string(p.OriginalPayload().AsRaw()))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
