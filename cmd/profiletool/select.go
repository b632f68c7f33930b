// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// selection describes which profiles are wanted. An empty field accepts all.
type selection struct{ service, profile, sampleType string }

func (s *selection) flags(f interface {
	StringVar(to *string, name, value, usage string)
},
) {
	f.StringVar(&s.service, "service", "", "only profiles whose service.name is `NAME`")
	f.StringVar(&s.profile, "profile", "", "only the profile `NAME`: process_cpu, memory, goroutine, …")
	f.StringVar(&s.sampleType, "type", "", "only the sample type `NAME`: cpu, alloc_space, …")
}

// kind is what profiles have in common that belong together.
type kind struct{ Service, Profile, Type, Unit string }

func (k kind) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s/%s", k.Service, k.Profile, k.Type, k.Unit))
}

func (s *selection) has(k kind) bool {
	is := func(name, of string) bool { return name == "" || profilekind.CutName(name) == of }
	return is(s.service, k.Service) && is(s.profile, k.Profile) &&
		model.SampleType{Type: k.Type, Unit: k.Unit}.Is(s.sampleType)
}

// apply removes the profiles that are not selected.
func (s *selection) apply(pd pprofile.Profiles) error {
	if *s == (selection{}) {
		return nil
	}
	var others []string
	seen, names := map[kind]bool{}, map[string]bool{}
	kinds := kinds{dict: pd.Dictionary()}
	pd.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			kinds.begin(rp.Resource(), sp)
			clear(names)
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
				k := kinds.of(p)
				if s.has(k) {
					names[k.Profile] = true
					return false
				}
				if !seen[k] {
					seen[k], others = true, append(others, k.String())
				}
				return true
			})
			// These attributes describe all the types of a pprof, of which only some are left: they keep its name.
			if s.sampleType != "" {
				attributes := sp.Scope().Attributes()
				attributes.RemoveIf(func(key string, _ pcommon.Value) bool {
					return key == profilekind.AttributeSampleTypeOrder || key == profilekind.AttributeDefaultSampleType
				})
				for name := range names {
					if len(names) == 1 && name != profilekind.Other {
						attributes.PutStr(profilekind.NameAttribute, name)
					}
				}
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

// kinds finds the kinds of the profiles of a message, whose indices must be in range.
type kinds struct {
	dict            pprofile.ProfilesDictionary
	service, stated string
	namer           profilekind.Namer
}

func (k *kinds) begin(resource pcommon.Resource, sp pprofile.ScopeProfiles) {
	scope := sp.Scope().Attributes()
	k.service, k.stated = profilekind.Service(resource.Attributes()), profilekind.Stated(scope)
	k.namer.Begin(scope, sp.Profiles(), k.dict)
}

// of returns the kind of the scope's next profile.
func (k *kinds) of(p pprofile.Profile) kind {
	name := func(i int32) string { return profilekind.CutName(k.dict.StringTable().At(int(i))) }
	t := p.SampleType()
	found := kind{Service: k.service, Type: name(t.TypeStrindex()), Unit: name(t.UnitStrindex())}
	found.Profile = k.namer.Name(p, k.stated)
	return found
}

type group struct {
	kind
	// isDefault reports that a pprof names the type as its default.
	isDefault bool
	profiles  []pprofile.Profile
}

// groupsOf lists the profiles of each kind, in the order in which kinds first occur. It ignores services unless
// byService.
func groupsOf(pd pprofile.Profiles, byService bool) []*group {
	var groups []*group
	known := map[kind]*group{}
	kinds := kinds{dict: pd.Dictionary()}
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			kinds.begin(rp.Resource(), sp)
			defaultType, hasDefault := sp.Scope().Attributes().Get(profilekind.AttributeDefaultSampleType)
			for _, p := range sp.Profiles().All() {
				k := kinds.of(p)
				isDefault := hasDefault && defaultType.Type() == pcommon.ValueTypeStr && defaultType.Str() == k.Type
				if !byService {
					k.Service = ""
				}
				g, ok := known[k]
				if !ok {
					g = &group{kind: k}
					known[k], groups = g, append(groups, g)
				}
				g.isDefault = g.isDefault || isDefault
				g.profiles = append(g.profiles, p)
			}
		}
	}
	return groups
}

// candidate is a sample type that can be shown, and whether a pprof names it as its default.
type candidate struct {
	kind
	isDefault bool
}

// mainOf returns which of a list is shown if nothing is chosen: of process_cpu, or else of the first profile, the type
// that a pprof names as its default, or else the main one.
func mainOf[T any](list []T, candidateOf func(T) candidate) int {
	first := max(0, slices.IndexFunc(list, func(t T) bool { return candidateOf(t).Profile == profilekind.ProcessCPU }))
	types := make([]string, len(list))
	for i, t := range list {
		if k := candidateOf(t); k.Profile == candidateOf(list[first]).Profile {
			if k.isDefault {
				return i
			}
			types[i] = k.Type
		}
	}
	if i := profilekind.Default(types); types[i] != "" {
		return i
	}
	return first
}

// described is what chosen chooses from.
type described interface {
	candidate() candidate
	fmt.Stringer
}

// chosen returns the default of a list if nothing is chosen, and logs which flags choose the others.
func chosen[T described](term *terminal, flags string, list []T) T {
	shown := mainOf(list, T.candidate)
	for i, other := range list {
		if i != shown {
			term.logf("%s can choose this, too: %s", flags, other)
		}
	}
	return list[shown]
}
