// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"
)

// Every table assigns one index to equal entries, in the order in which they came, and keeps index 0 for
// the zero value. The test compares it with a map.
func TestTablesInternByValue(t *testing.T) {
	d := New()
	for name, table := range map[string]struct {
		intern func(seed int) int32
		len    func() int
	}{
		"strings": {func(n int) int32 { return int32(d.Strings.Intern(strings.Repeat("x", n))) }, d.Strings.Len},
		"functions": {func(n int) int32 {
			return int32(d.Functions.Intern(Function{Name: StringIndex(n % 7), Filename: StringIndex(n % 3),
				StartLine: int64(n / 21)}))
		}, d.Functions.Len},
		"mappings": {func(n int) int32 {
			return int32(d.Mappings.Intern(Mapping{MemoryLimit: uint64(n % 5), FileOffset: uint64(n / 5)}))
		}, d.Mappings.Len},
		"locations": {func(n int) int32 {
			lines := make([]Line, n%3)
			for i := range lines {
				lines[i].Line = int64(i)
			}
			return int32(d.Locations.Intern(Location{Address: uint64(n / 3)}, lines))
		}, d.Locations.Len},
		"stacks": {func(n int) int32 {
			stack := make([]int32, n%4)
			for i := range stack {
				stack[i] = int32(n/4 - i)
			}
			return int32(d.Stacks.Intern(stack))
		}, d.Stacks.Len},
		"links": {func(n int) int32 {
			return int32(d.Links.Intern(Link{TraceID: pcommon.TraceID{byte(n % 2)},
				SpanID: pcommon.SpanID{byte(n >> 1), byte(n >> 9)}}))
		}, d.Links.Len},
		"attributes": {func(n int) int32 {
			a := Attribute{Key: StringIndex(n % 2), Unit: StringIndex(n % 3)}
			if n >= 6 {
				a.Value = IntValue(int64(n / 6))
			}
			return int32(d.Attributes.Intern(a))
		}, d.Attributes.Len},
		"attribute sets": {func(n int) int32 {
			var set []int32
			for bit := range int32(11) {
				if n>>bit&1 == 1 {
					set = append([]int32{bit}, set...) // in any order
				}
			}
			return int32(d.AttributeSets.Intern(set))
		}, d.AttributeSets.Len},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, table.intern(0), "the zero value is entry 0")
			require.Equal(t, 1, table.len())
			first := make([]int32, 1000)
			known := map[int32]bool{}
			for n := range first {
				first[n] = table.intern(n)
				if !known[first[n]] {
					assert.Equal(t, int32(len(known)), first[n], "a new entry gets the next index")
				}
				known[first[n]] = true
			}
			assert.Equal(t, len(known), table.len())
			for n := range first {
				assert.Equal(t, first[n], table.intern(n), "entry %d is found again", n)
			}
			assert.Equal(t, len(known), table.len())
		})
	}
}

func TestResetForgetsEntries(t *testing.T) {
	d := New()
	for n := range 100 {
		d.Strings.Intern(fmt.Sprint(n))
		d.Stacks.Intern([]int32{int32(n)})
		d.Locations.Intern(Location{Address: uint64(n + 1)}, []Line{{Line: 1}})
	}
	d.Reset(Sizes{Strings: 2})
	assert.Equal(t, StringIndex(1), d.Strings.Intern("99"))
	assert.Equal(t, StackIndex(1), d.Stacks.Intern([]int32{7}))
	_, lines := d.Locations.At(d.Locations.Intern(Location{Address: 9}, []Line{{Line: 3}}))
	assert.Equal(t, []Line{{Line: 3}}, lines)
}

func TestLookupOnlyReads(t *testing.T) {
	d := New()
	for d.Strings.index.room > 0 {
		d.Strings.Intern(fmt.Sprint(d.Strings.Len()))
	}
	before := len(d.Strings.index.slots)
	i, ok := d.Strings.Lookup("1")
	assert.True(t, ok)
	assert.Equal(t, StringIndex(1), i)
	_, ok = d.Strings.Lookup("x")
	assert.False(t, ok)
	assert.Len(t, d.Strings.index.slots, before)
}

func TestDetachStringsKeepsTheirTexts(t *testing.T) {
	d := New()
	text := strings.Repeat("abc", 50)
	d.Strings.Intern(text[10:20])
	d.Strings.Intern(text[20:21])
	d.Attributes.Intern(Attribute{Key: 1, Value: StringValue(text[:7])})
	before := pprofile.NewProfiles()
	d.CopyTo(before.Dictionary())
	assert.Equal(t, 18, d.StringBytes())
	d.DetachStrings()
	after := pprofile.NewProfiles()
	d.CopyTo(after.Dictionary())
	assert.Equal(t, before.Dictionary().StringTable().AsRaw(), after.Dictionary().StringTable().AsRaw())
	assert.Equal(t, text[:7], after.Dictionary().AttributeTable().At(1).Value().Str())
	assert.Equal(t, StringIndex(1), d.Strings.Intern(text[10:20]), "it is still found")
}

func TestOrderMappings(t *testing.T) {
	d := New()
	main, lib := Mapping{Filename: d.Strings.Intern("main")}, Mapping{Filename: d.Strings.Intern("lib")}
	d.Locations.Intern(Location{Mapping: d.Mappings.Intern(lib), Address: 1}, nil)
	d.Locations.Intern(Location{Mapping: d.Mappings.Intern(main), Address: 1}, nil)
	d.OrderMappings([]MappingIndex{0, 2, 1})
	assert.Equal(t, main, d.Mappings.At(1))
	assert.Equal(t, lib, d.Mappings.At(2))
	first, _ := d.Locations.At(1)
	assert.Equal(t, MappingIndex(2), first.Mapping)
}

// anyValue draws an attribute value of any shape.
func anyValue(t *rapid.T, dst pcommon.Value, depth int) {
	kinds := 6
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0: // empty
	case 1:
		dst.SetStr(rapid.String().Draw(t, "string"))
	case 2:
		dst.SetInt(rapid.Int64().Draw(t, "int"))
	case 3:
		dst.SetDouble(rapid.Float64().Draw(t, "double"))
	case 4:
		dst.SetBool(rapid.Bool().Draw(t, "bool"))
	case 5:
		dst.SetEmptyBytes().FromRaw(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes"))
	case 6:
		list := dst.SetEmptySlice()
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			anyValue(t, list.AppendEmpty(), depth-1)
		}
	case 7:
		m := dst.SetEmptyMap()
		for i := range rapid.IntRange(0, 3).Draw(t, "entries") {
			anyValue(t, m.PutEmpty(fmt.Sprint(rapid.String().Draw(t, "key"), i)), depth-1)
		}
	}
}

// A value does not change in its comparable form, and two forms are equal if and only if the values are.
func TestValuesSurviveTheirComparableForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := pcommon.NewValueEmpty(), pcommon.NewValueEmpty()
		anyValue(t, a, 3)
		anyValue(t, b, 3)
		back := pcommon.NewValueEmpty()
		ValueOf(a).CopyTo(back)
		require.True(t, a.Equal(back), "%v became %v", a.AsRaw(), back.AsRaw())
		if ValueOf(a) == ValueOf(b) {
			require.True(t, a.Equal(b))
		}
		require.Equal(t, ValueOf(a), ValueOf(back))
	})
}

func TestDoublesAreComparedByTheirBits(t *testing.T) {
	value := func(f float64) Value { return ValueOf(pcommon.NewValueDouble(f)) }
	assert.Equal(t, value(math.NaN()), value(math.NaN()))
	assert.NotEqual(t, value(0), value(math.Copysign(0, -1)))
}

// HashIndex finds every entry again, even if hashes are equal.
func TestHashIndexWithFewHashes(t *testing.T) {
	for _, spread := range []uint64{1, 3, 1 << 20} {
		var x HashIndex
		x.Reset(4)
		hash := func(e int32) uint64 { return Mix(0, uint64(e)%spread) }
		find := func(want int32) (found bool, p HashProbe) {
			p = x.Start(hash(want))
			for e := x.Next(&p); e != 0; e = x.Next(&p) {
				if e == want {
					return true, p
				}
			}
			return false, p
		}
		for e := int32(1); e <= 500; e++ {
			found, p := find(e)
			require.False(t, found)
			x.Insert(p, e)
		}
		for e := int32(1); e <= 500; e++ {
			found, _ := find(e)
			require.True(t, found, "entry %d of %d hashes", e, spread)
		}
	}
}
