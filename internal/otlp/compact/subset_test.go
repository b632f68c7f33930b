// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// byCount is what byFrequency must come up to: everything sorted by count.
func byCount(uses []uint32) (bytes int) {
	sorted := slices.Clone(uses[1:])
	slices.SortFunc(sorted, func(a, b uint32) int { return int(b) - int(a) })
	for k, n := range sorted {
		bytes += int(n) * protowire.SizeVarint(uint64(k+1))
	}
	return bytes
}

func TestByFrequencyIsAsShortAsSorting(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var scratch frequencyScratch
	for _, entries := range []int{1, 2, 127, 128, 129, 300, 16_383, 16_384, 16_385, 40_000} {
		var table tableUse
		table.reset(entries + 1)
		for i := 1; i <= entries; i++ {
			table.uses[i] = 1 + uint32(rnd.ExpFloat64()*20)
		}
		table.rest()
		table.byFrequency(&scratch)
		bytes := 0
		seen := make([]bool, entries+1)
		for i := 1; i <= entries; i++ {
			bytes += int(table.uses[i]) * protowire.SizeVarint(uint64(table.Index[i]))
			require.False(t, seen[table.Index[i]], "an index is given twice")
			seen[table.Index[i]] = true
		}
		assert.Equal(t, byCount(table.uses), bytes, "%d entries", entries)
		for k := 2; k <= entries; k++ {
			if protowire.SizeVarint(uint64(k)) == protowire.SizeVarint(uint64(k-1)) {
				require.Less(t, table.Entries[k-1], table.Entries[k], "within a width the order is kept")
			}
		}
	}
}

// Entries that are used more often than the histogram counts still come first.
func TestByFrequencyOfVeryManyUses(t *testing.T) {
	var table tableUse
	var scratch frequencyScratch
	table.reset(301)
	for i := 1; i <= 300; i++ {
		table.uses[i] = 5
	}
	table.uses[290] = 1 << 30
	table.rest()
	table.byFrequency(&scratch)
	assert.Less(t, table.Index[290], int32(128))
}

func TestSortLocations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s subset
		mappings, addresses := 1+rnd.Int32N(1<<rnd.IntN(20)), uint64(1)<<rnd.IntN(64)
		for i := range rnd.IntN(500) {
			s.locationKeys = append(s.locationKeys, locationKey{
				mapping: dictionary.MappingIndex(rnd.Int32N(mappings)), location: int32(i), address: rnd.Uint64() % addresses,
			})
		}
		want := slices.Clone(s.locationKeys)
		slices.SortFunc(want, func(x, y locationKey) int {
			return cmp.Or(cmp.Compare(x.mapping, y.mapping), cmp.Compare(x.address, y.address),
				cmp.Compare(x.location, y.location))
		})
		require.Equal(t, want, s.sortLocations())
	}
}

// Functions and names follow the addresses of their locations; file names come after them.
func TestNeighboursAreAlike(t *testing.T) {
	d := dictionary.New()
	function := func(name, file string) dictionary.FunctionIndex {
		return d.Functions.Intern(dictionary.Function{Name: d.Strings.Intern(name), Filename: d.Strings.Intern(file)})
	}
	second, third, first := function("second", "b.go"), function("third", "a.go"), function("first", "a.go")
	var stack []int32
	for address, lines := range map[uint64][]dictionary.Line{
		30: {{Function: third, Line: 1}}, 10: {{Function: first, Line: 1}},
		20: {{Function: second, Line: 1}, {Function: first, Line: 2}},
	} {
		stack = append(stack, int32(d.Locations.Intern(dictionary.Location{Address: address}, lines)))
	}
	index := d.Stacks.Intern(stack)
	var s subset
	s.reset(d)
	s.use(dictionary.StackTable, int32(index))
	s.arrange(true)
	out := pprofile.NewProfilesDictionary()
	s.Write(out)
	assert.Equal(t, []string{"", "first", "second", "third", "a.go", "b.go"}, out.StringTable().AsRaw())
	for i, address := range []uint64{0, 10, 20, 30} {
		assert.Equal(t, address, out.LocationTable().At(i).Address())
	}
	assert.EqualValues(t, 2, out.LocationTable().At(2).Lines().At(0).FunctionIndex())
}

func TestSubsetHoldsWhatIsUsed(t *testing.T) {
	d := dictionary.New()
	function := d.Functions.Intern(dictionary.Function{Name: d.Strings.Intern("main"),
		Filename: d.Strings.Intern("main.go")})
	mapping := d.Mappings.Intern(dictionary.Mapping{Filename: d.Strings.Intern("/bin/main"),
		Attributes: d.AttributeSets.Intern([]int32{
			int32(d.Attributes.Intern(dictionary.Attribute{Key: d.Strings.Intern("id"), Value: dictionary.StringValue("x")})),
		})})
	used := d.Locations.Intern(dictionary.Location{Mapping: mapping, Address: 7},
		[]dictionary.Line{{Function: function, Line: 3}})
	d.Locations.Intern(dictionary.Location{Address: 8},
		[]dictionary.Line{{Function: d.Functions.Intern(dictionary.Function{Name: d.Strings.Intern("orphan")})}})
	stack := d.Stacks.Intern([]int32{int32(used), int32(used)})
	d.Stacks.Intern([]int32{2})

	var s subset
	s.reset(d)
	s.use(dictionary.StackTable, int32(stack))
	s.arrange(true)
	out := pprofile.NewProfilesDictionary()
	s.Write(out)
	assert.Equal(t, []string{"", "main", "main.go", "/bin/main", "id"}, out.StringTable().AsRaw())
	assert.Equal(t, [7]int{2, 2, 2, 1, 5, 2, 2}, EntriesOf(out))
	assert.Equal(t, s.entries(), EntriesOf(out))
	assert.Equal(t, []int32{1, 1}, out.StackTable().At(1).LocationIndices().AsRaw())
	assert.EqualValues(t, 1, s.Index(dictionary.StackTable, int32(stack)))
}

// Write over a dictionary that has been in use leaves nothing of it.
func TestCopyToOverwrites(t *testing.T) {
	build := func(names int) *subset {
		d := dictionary.New()
		var s subset
		var stacks []dictionary.StackIndex
		for i := range names {
			f := d.Functions.Intern(dictionary.Function{Name: d.Strings.Intern(fmt.Sprint("f", i))})
			lines := make([]dictionary.Line, i%3)
			for k := range lines {
				lines[k] = dictionary.Line{Function: f, Line: int64(k)}
			}
			l := d.Locations.Intern(dictionary.Location{Address: uint64(i + 1)}, lines)
			stacks = append(stacks, d.Stacks.Intern(slices.Repeat([]int32{int32(l)}, 1+i%4)))
		}
		s.reset(d)
		for _, stack := range stacks {
			s.use(dictionary.StackTable, int32(stack))
		}
		s.arrange(false)
		return &s
	}
	for _, sizes := range [][2]int{{5, 50}, {50, 5}, {20, 20}} {
		clean, used := pprofile.NewProfilesDictionary(), pprofile.NewProfilesDictionary()
		build(sizes[0]).Write(used)
		build(sizes[1]).Write(used)
		build(sizes[1]).Write(clean)
		assert.Equal(t, marshalDictionary(t, clean), marshalDictionary(t, used))
	}
}

func marshalDictionary(t *testing.T, d pprofile.ProfilesDictionary) []byte {
	pd := pprofile.NewProfiles()
	d.CopyTo(pd.Dictionary())
	return profiletest.Marshal(t, pd)
}

// Two maps with the same entries are one value, whatever their order.
func TestMapsHaveNoOrder(t *testing.T) {
	one, other := pcommon.NewValueMap(), pcommon.NewValueMap()
	one.Map().PutInt("a", 1)
	one.Map().PutEmptyMap("b").PutStr("c", "d")
	other.Map().PutEmptyMap("b").PutStr("c", "d")
	other.Map().PutInt("a", 1)
	assert.Equal(t, dictionary.ValueOf(one), dictionary.ValueOf(other))
	back := pcommon.NewValueEmpty()
	dictionary.ValueOf(one).CopyTo(back)
	assert.Equal(t, one.AsRaw(), back.AsRaw())
}
