// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profilekind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// selection describes which profiles are wanted. An empty field accepts all.
type selection struct{ service, profile, sampleType string }

func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.service, "service", "", "only profiles whose service.name is `NAME`")
	cmd.Flags().StringVar(&s.profile, "profile", "", "only the profile `NAME`: process_cpu, memory, goroutine, …")
	cmd.Flags().StringVar(&s.sampleType, "type", "", "only the sample type `NAME`: cpu, alloc_space, …")
}

// kind is what profiles have in common that belong together.
type kind struct{ Service, Profile, Type, Unit string }

func (k kind) String() string {
	return fmt.Sprintf("%s %s %s/%s", k.Service, k.Profile, k.Type, k.Unit)
}

func (s *selection) has(k kind) bool {
	return (s.service == "" || s.service == k.Service) && (s.profile == "" || s.profile == k.Profile) &&
		(s.sampleType == "" || s.sampleType == k.Type || s.sampleType == k.Type+"/"+k.Unit)
}

// apply removes what is not wanted.
func (s *selection) apply(pd pprofile.Profiles) error {
	if *s == (selection{}) {
		return nil
	}
	var others []string
	seen := map[kind]bool{}
	pd.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
				k := kindOf(pd.Dictionary(), rp.Resource(), sp.Scope(), p)
				if s.has(k) {
					return false
				}
				if !seen[k] {
					seen[k], others = true, append(others, k.String())
				}
				return true
			})
			// These attributes describe all the types of a pprof, of which only some are left.
			if s.sampleType != "" {
				sp.Scope().Attributes().RemoveIf(func(key string, _ pcommon.Value) bool {
					return key == "pprof.scope.sample_type_order" || key == "pprof.scope.default_sample_type"
				})
			}
			return sp.Profiles().Len() == 0
		})
		return rp.ScopeProfiles().Len() == 0
	})
	if pd.ResourceProfiles().Len() == 0 {
		return errors.New("nothing is selected; there is:\n  " + strings.Join(others, "\n  "))
	}
	return nil
}

// kindOf returns the kind of a profile. Indices must be in range.
func kindOf(dict pprofile.ProfilesDictionary, resource pcommon.Resource, scope pcommon.InstrumentationScope, p pprofile.Profile) kind {
	text := func(i int32) string { return dict.StringTable().At(int(i)) }
	k := kind{
		Service: cutName(attribute(resource.Attributes(), "service.name")),
		Type:    cutName(text(p.SampleType().TypeStrindex())), Unit: cutName(text(p.SampleType().UnitStrindex())),
	}
	if k.Service == "" {
		k.Service = store.UnknownService
	}
	stated, periodType := attribute(scope.Attributes(), profilekind.NameAttribute), text(p.PeriodType().TypeStrindex())
	k.Profile = profilekind.Name(cutName(stated), k.Type, cutName(periodType))
	return k
}

// cutName bounds a name, which very many profiles can share.
func cutName(s string) string {
	const most = 256
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "")
	}
	return s
}

func attribute(m pcommon.Map, key string) string {
	v, ok := m.Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}

// group is the profiles of one kind.
type group struct {
	kind
	profiles []pprofile.Profile
}

// groupsOf lists the profiles of each kind, in the order in which kinds first occur. It ignores services unless byService.
func groupsOf(pd pprofile.Profiles, byService bool) []*group {
	var groups []*group
	known := map[kind]*group{}
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				k := kindOf(pd.Dictionary(), rp.Resource(), sp.Scope(), p)
				if !byService {
					k.Service = ""
				}
				g, ok := known[k]
				if !ok {
					g = &group{kind: k}
					known[k], groups = g, append(groups, g)
				}
				g.profiles = append(g.profiles, p)
			}
		}
	}
	return groups
}
