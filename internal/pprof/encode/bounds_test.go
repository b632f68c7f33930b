// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The peak of the heap is at most encodeConstant + encodeFactor × the size of the message as protobuf.
// It is three times maxExpansion, since the buffer of the pprof grows by doubling and is then copied.
const (
	encodeConstant = 16 << 20
	encodeFactor   = 176
)

// worstMessages returns messages of about size bytes whose samples and profiles share large entries.
func worstMessages(size int) map[string]pprofile.Profiles {
	text := strings.Repeat("x", size/2)
	build := func(fill func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles)) pprofile.Profiles {
		pd := pprofile.NewProfiles()
		d := pd.Dictionary()
		d.StringTable().Append("", text, "key", scan.AttributeBuildIDGNU, scan.AttributeComment)
		d.FunctionTable().AppendEmpty()
		d.FunctionTable().AppendEmpty().SetNameStrindex(1)
		d.MappingTable().AppendEmpty()
		d.LinkTable().AppendEmpty()
		d.LocationTable().AppendEmpty()
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(1)
		d.StackTable().AppendEmpty()
		d.StackTable().AppendEmpty().LocationIndices().Append(1)
		d.AttributeTable().AppendEmpty()
		fill(d, pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty())
		return pd
	}
	samples := func(p pprofile.Profile, n int, fill func(i int, s pprofile.Sample)) {
		for i := range n {
			s := p.Samples().AppendEmpty()
			s.SetStackIndex(1)
			s.Values().Append(int64(i))
			fill(i, s)
		}
	}
	attribute := func(d pprofile.ProfilesDictionary, key int32) pcommon.Value {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(key)
		return a.Value()
	}
	// A sample takes about 8 bytes, an element of an array about 4.
	array := func(fill func(pcommon.Value)) pprofile.Profiles {
		return build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			fill(attribute(d, 2))
			samples(scope.Profiles().AppendEmpty(), size/16, func(_ int, s pprofile.Sample) { s.AttributeIndices().Append(1) })
		})
	}
	deep := func(d pprofile.ProfilesDictionary) {
		for range size / 4 {
			d.StackTable().At(1).LocationIndices().Append(1)
		}
	}
	// timed adds a profile with one sample that has many timestamps and many times this attribute.
	timed := func(scope pprofile.ScopeProfiles, attribute int32) {
		samples(scope.Profiles().AppendEmpty(), 1, func(_ int, s pprofile.Sample) {
			s.Values().FromRaw(nil)
			for i := range size / 16 {
				s.TimestampsUnixNano().Append(uint64(i))
			}
			for range size / 4 {
				s.AttributeIndices().Append(attribute)
			}
		})
	}
	return map[string]pprofile.Profiles{
		"array of numbers": array(func(v pcommon.Value) {
			for range size / 8 {
				v.SetEmptySlice()
			}
			for range size / 8 {
				v.Slice().AppendEmpty().SetInt(1)
			}
		}),
		"array as JSON": array(func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for range size / 8 {
				s.AppendEmpty().SetBool(true)
			}
		}),
		"control characters as JSON": array(func(v pcommon.Value) {
			v.SetEmptySlice().AppendEmpty().SetStr(strings.Repeat("\x01", size/2))
			v.Slice().AppendEmpty().SetBool(true)
		}),
		"nested arrays": array(func(v pcommon.Value) {
			for range 2000 {
				v = v.SetEmptySlice().AppendEmpty()
			}
		}),
		"deep stack": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			deep(d)
			samples(scope.Profiles().AppendEmpty(), size/16, func(int, pprofile.Sample) {})
		}),
		"deep stack and timestamps": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			deep(d)
			samples(scope.Profiles().AppendEmpty(), 1, func(_ int, s pprofile.Sample) {
				s.Values().FromRaw(nil)
				for i := range size / 16 {
					s.TimestampsUnixNano().Append(uint64(i))
				}
			})
		}),
		"many attributes and timestamps": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			attribute(d, 2).SetInt(1)
			timed(scope, 1)
		}),
		"no attributes and timestamps": build(func(_ pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			timed(scope, 0)
		}),
		"no attributes and timestamps of two types": build(func(_ pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			timed(scope, 0)
			timed(scope, 0)
			scope.Profiles().At(1).SampleType().SetTypeStrindex(2)
			scope.Profiles().At(1).Samples().At(0).SetStackIndex(0)
		}),
		"deep stack of two types": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			deep(d)
			for t := range int32(2) {
				p := scope.Profiles().AppendEmpty()
				p.SampleType().SetTypeStrindex(t)
				samples(p, size/32+int(t), func(int, pprofile.Sample) {})
			}
		}),
		"profiles of one function": build(func(_ pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			for i := range size / 32 {
				p := scope.Profiles().AppendEmpty()
				p.SetTime(pcommon.Timestamp(i))
				samples(p, 1, func(int, pprofile.Sample) {})
			}
		}),
		"profiles of one comment": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			attribute(d, 4).SetStr(text)
			for i := range size / 16 {
				p := scope.Profiles().AppendEmpty()
				p.SetTime(pcommon.Timestamp(i))
				p.AttributeIndices().Append(1)
			}
		}),
		"mappings of one build id": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			attribute(d, 3).SetStr(text)
			for i := range int32(size / 32) {
				m := d.MappingTable().AppendEmpty()
				m.SetFileOffset(uint64(i))
				m.AttributeIndices().Append(1)
				d.LocationTable().AppendEmpty().SetMappingIndex(i + 1)
				d.StackTable().At(1).LocationIndices().Append(i + 2)
			}
			samples(scope.Profiles().AppendEmpty(), 1, func(int, pprofile.Sample) {})
		}),
		"samples": build(func(_ pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			samples(scope.Profiles().AppendEmpty(), size/8, func(int, pprofile.Sample) {})
		}),
		"profiles without samples": build(func(_ pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			for range size / 4 {
				scope.Profiles().AppendEmpty()
			}
		}),
		"many attributes of a scope with many profiles": build(func(_ pprofile.ProfilesDictionary,
			scope pprofile.ScopeProfiles) {
			var attributes xpdata.MapBuilder // Map.Put would look through all attributes before each
			attributes.EnsureCapacity(size / 8)
			for range size / 8 {
				attributes.AppendEmpty("")
			}
			attributes.UnsafeIntoMap(scope.Scope().Attributes())
			for range size / 4 {
				scope.Profiles().AppendEmpty()
			}
		}),
		"types without common samples": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			types(d, scope, maxAlwaysJoined, func(p pprofile.Profile) {
				samples(p, size/maxAlwaysJoined/8, func(i int, s pprofile.Sample) {
					s.SetLinkIndex(0)
					s.SetStackIndex(int32(i & 1))
				})
			})
		}),
		"many types in an order": build(func(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles) {
			n := size / 64
			order := scope.Scope().Attributes().PutEmptySlice(kind.AttributeSampleTypeOrder)
			for i := range n {
				order.AppendEmpty().SetInt(int64(i))
			}
			types(d, scope, 2*n, func(pprofile.Profile) {})
			samples(scope.Profiles().At(2*n-1), size/16, func(int, pprofile.Sample) {})
		}),
	}
}

// types adds n profiles of different sample types.
func types(d pprofile.ProfilesDictionary, scope pprofile.ScopeProfiles, n int, fill func(pprofile.Profile)) {
	for i := range n {
		p := scope.Profiles().AppendEmpty()
		p.SampleType().SetTypeStrindex(int32(d.StringTable().Len()))
		d.StringTable().Append(strings.Repeat("t", 1+i%3) + string(rune('0'+i)))
		fill(p)
	}
}

func encodeMeasured(t testing.TB, pd pprofile.Profiles) (encoded []Payload, stats Stats, err error) {
	size := (&pprofile.ProtoMarshaler{}).ProfilesSize(pd)
	pt.RequireCost(t, pt.BoundOf(size, encodeConstant, encodeFactor), func() { encoded, stats, err = Encode(pd) })
	total := 0
	for _, e := range encoded {
		total += len(e.Bytes)
	}
	assert.LessOrEqual(t, total, minBytes+maxExpansion*size)
	return encoded, stats, err
}

func TestEncodeIsBoundedByItsInput(t *testing.T) {
	dropped := 0
	for name, pd := range worstMessages(256 << 10) {
		t.Run(name, func(t *testing.T) {
			encoded, stats, err := encodeMeasured(t, pd)
			require.NoError(t, err)
			require.NotEmpty(t, encoded, "what fits is encoded")
			dropped += min(1, stats.Dropped)
		})
	}
	assert.Equal(t, 6, dropped, "messages with samples that do not fit")
}

// Encode takes about as long if the fields of entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	pt.RequireCorrelatedKeys(t, func(n int, keys pt.Keys) func() {
		pd := pt.KeyedProfiles(n, keys)
		return func() {
			_, stats, err := Encode(pd)
			require.NoError(t, err)
			require.Zero(t, stats.Dropped)
		}
	})
}
