// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// UnknownService is the service of a resource without service.name, as in the semantic conventions.
const UnknownService = "unknown_service"

// MaxNameBytes bounds the names of services, profiles, types and units. They are part of keys, URLs and paths, and very
// many profiles can share a long one.
const MaxNameBytes = 256

// CutName returns a name as valid UTF-8 of bounded length.
func CutName(s string) string {
	return dictionary.CutUTF8(dictionary.ValidUTF8(dictionary.CutUTF8(s, MaxNameBytes)), MaxNameBytes)
}

// Service returns the service that a resource is of.
func Service(resource pcommon.Map) string {
	return cmp.Or(nameAttribute(resource, "service.name"), UnknownService)
}

// Stated returns the name that a scope states for its profiles, or "".
func Stated(scope pcommon.Map) string { return nameAttribute(scope, NameAttribute) }

// nameAttribute returns an attribute that is a name: a map or a list is none.
func nameAttribute(attributes pcommon.Map, key string) string {
	v, ok := attributes.Get(key)
	if !ok || v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice {
		return ""
	}
	return CutName(v.AsString())
}

// Namer names the profiles of one scope. All sample types of one pprof have the same name, which follows from all of
// them, if neither the scope nor the period type names them.
type Namer struct {
	profiles pprofile.ProfilesSlice
	dict     pprofile.ProfilesDictionary
	isPprof  bool
	// names are those of the scope's pprofs, or nil until one is asked for.
	names map[pprofKey]string
}

// pprofKey is what profiles of a scope share if they were one pprof.
type pprofKey struct {
	time, duration         uint64
	period                 int64
	periodType, periodUnit int32
}

func keyOf(p pprofile.Profile) pprofKey {
	return pprofKey{uint64(p.Time()), p.DurationNano(), p.Period(), p.PeriodType().TypeStrindex(),
		p.PeriodType().UnitStrindex()}
}

// Begin begins another scope. Its attributes tell whether its profiles were the sample types of pprofs. References to
// strings must be resolved in scope.
func (n *Namer) Begin(scope pcommon.Map, profiles pprofile.ProfilesSlice, d pprofile.ProfilesDictionary) {
	n.names, n.profiles, n.dict = nil, profiles, d
	if _, n.isPprof = scope.Get(AttributeDefaultSampleType); n.isPprof {
		return
	}
	order, ok := scope.Get(AttributeSampleTypeOrder)
	n.isPprof = ok && order.Type() == pcommon.ValueTypeSlice && order.Slice().Len() > 0
}

// Name returns the name of one of the scope's profiles. stated is the scope's own name for its profiles.
func (n *Namer) Name(p pprofile.Profile, stated string) string {
	if !n.isPprof || stated != "" {
		return n.nameAlone(p, stated)
	}
	if n.names == nil {
		n.names = map[pprofKey]string{}
		for _, other := range n.profiles.All() {
			name, key := n.nameAlone(other, ""), keyOf(other)
			if before, ok := n.names[key]; ok {
				name = nameOfSet(before, name)
			}
			n.names[key] = name
		}
	}
	return n.names[keyOf(p)]
}

func (n *Namer) nameAlone(p pprofile.Profile, stated string) string {
	return Name(stated, CutName(stringAt(n.dict, p.SampleType().TypeStrindex())),
		CutName(stringAt(n.dict, p.PeriodType().TypeStrindex())))
}

// NameOfPprof returns the name of the profiles of a scope that were one pprof, and whether it is another than that of
// one of them alone.
func NameOfPprof(profiles pprofile.ProfilesSlice, d pprofile.ProfilesDictionary) (name string, differs bool) {
	n := Namer{profiles: profiles, dict: d}
	for i, p := range profiles.All() {
		alone := n.nameAlone(p, "")
		if i == 0 {
			name = alone
			continue
		}
		differs = differs || alone != name
		name = nameOfSet(name, alone)
	}
	return name, differs
}
