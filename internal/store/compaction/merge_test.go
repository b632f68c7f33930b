// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// fake is a source of profiles of one stack, by service and series.
type fake map[string]map[string][]blockfile.Profile

func (f fake) Services() (names []string) {
	for name := range f {
		names = append(names, name)
	}
	return names
}

func (f fake) Begin(service string, dict *dictionary.Dictionary) (list []Series, err error) {
	function := dict.Functions.Intern(dictionary.Function{Name: dict.Strings.Intern("leaf"),
		Filename: dict.Strings.Intern("leaf.go")})
	mapping := dict.Mappings.Intern(dictionary.Mapping{Filename: dict.Strings.Intern("/bin/shop")})
	location := dict.Locations.Intern(dictionary.Location{Mapping: mapping},
		[]dictionary.Line{{Function: function, Line: 7}})
	stack := int32(dict.Stacks.Intern([]int32{int32(location)}))
	for id, profiles := range f[service] {
		sr := Series{BlockSeries: model.BlockSeries{ID: model.SeriesID{id[0]}, Profile: "process_cpu",
			Type: model.SampleType{Type: "cpu"}, Start: profiles[0].Start}, Labels: map[string]string{"id": id}}
		sr.Profiles = func(yield func(Profile, error) bool) {
			for _, p := range profiles {
				rows := func(yield func(blockfile.Row, error) bool) { yield(rowOf(stack, 0, p.Total), nil) }
				if !yield(Profile{p, rows}, nil) {
					return
				}
			}
		}
		list = append(list, sr)
	}
	return list, nil
}

func (f fake) End() {}

func (f fake) Step() time.Duration { return 0 }

func starting(starts ...int64) (list []blockfile.Profile) {
	for _, start := range starts {
		list = append(list, blockfile.Profile{Profile: model.Profile{Start: start, End: start + 1, Time: start, Samples: 1,
			Total: start}})
	}
	return list
}

// merge writes the sources as a block, and returns its reader.
func merge(t *testing.T, sources ...Source) *blockfile.Reader {
	t.Helper()
	return mergeTo(t, 0, sources...)
}

func mergeTo(t *testing.T, step time.Duration, sources ...Source) *blockfile.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "block")
	require.NoError(t, Merge(t.Context(), dir, "block", sources, step))
	r, err := blockfile.Open(dir)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// A block says how coarse its coarsest profiles are, whatever they are joined with, and by which rule.
func TestMergeOfCoarserBlocks(t *testing.T) {
	late := fake{"shop": {"a": starting(7)}}
	day := mergeTo(t, time.Minute, fake{"shop": {"a": starting(1, 2, int64(time.Hour))}})
	require.Equal(t, 2, day.ProfileCount)
	for _, step := range []time.Duration{0, time.Second, time.Hour} {
		joined := mergeTo(t, step, FromDisk(day), late)
		require.Equal(t, int64(max(step, time.Minute)), joined.Step, step)
	}
}

// contentOf returns the starts of the profiles of each series, in the order of the block.
func contentOf(t *testing.T, r *blockfile.Reader) (content []string) {
	t.Helper()
	scan := r.Scan()
	defer scan.Close()
	for i := range r.Services {
		service := &r.Services[i]
		series, err := r.Series(service)
		require.NoError(t, err)
		labels, err := r.Labels(service)
		require.NoError(t, err)
		for k, in := range series {
			id := labels[k]["id"]
			require.Equal(t, model.SeriesID{id[0]}, in.ID)
			starts := make([]int64, in.Profiles)
			require.NoError(t, scan.ProfileStarts(in.First, starts))
			var columns blockfile.Columns
			require.NoError(t, scan.Samples(service, in.FirstSample, in.Samples, model.ColumnsWanted{}, &columns))
			require.Equal(t, starts, columns.Values)
			content = append(content, fmt.Sprint(service.Name, " ", id, " ", starts))
		}
	}
	return content
}

// A block has its services, its series, and the profiles of a series in order, however many blocks it is made of, and
// again.
func TestMergeIsSorted(t *testing.T) {
	parts := []Source{
		fake{"shop": {"b": starting(1, 5, 9), "a": starting(2)}},
		fake{"shop": {"b": starting(2, 3, 20)}, "cart": {"c": starting(4)}},
		fake{"shop": {"b": starting(100)}, "desk": {"d": starting(7, 7)}},
	}
	want := []string{"cart c [4]", "desk d [7 7]", "shop a [2]", "shop b [1 2 3 5 9 20 100]"}
	assert.Equal(t, want, contentOf(t, merge(t, parts...)))
	var blocks []Source
	for _, part := range parts {
		blocks = append(blocks, FromDisk(merge(t, part)))
	}
	assert.Equal(t, want, contentOf(t, merge(t, blocks...)))
}

// Many profiles of several blocks are all there, in order.
func TestMergeOfMany(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var blocks []Source
	var all []int64
	for range 5 {
		var starts []int64
		for range 3 * profilesAtOnce {
			starts = append(starts, rnd.Int64N(1e6))
		}
		slices.Sort(starts)
		all = append(all, starts...)
		blocks = append(blocks, FromDisk(merge(t, fake{"shop": {"a": starting(starts...)}})))
	}
	slices.Sort(all)
	assert.Equal(t, []string{fmt.Sprint("shop a ", all)}, contentOf(t, merge(t, blocks...)))
}

// The memory of joining blocks, and of making a day coarser, does not follow from what they have.
func TestMergeIsBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	const profiles, rows = 1500, 2000
	var blocks []Source
	for block := range 2 {
		var starts []int64
		for i := range profiles {
			starts = append(starts, int64(2*i+block)*int64(10*time.Second))
		}
		observed := func(p *Profile) {
			p.Samples, p.Flags, p.Values = rows, model.HasTimestamps, kind.Delta
			p.Rows = func(yield func(blockfile.Row, error) bool) {
				for i := range int64(rows) {
					row := rowOf(1, 0, i*7919)
					if row.Timestamp = p.Start + i*i; !yield(row, nil) {
						return
					}
				}
			}
		}
		blocks = append(blocks, FromDisk(merge(t, changed{fake{"shop": {"a": starting(starts...)}}, observed})))
	}
	for _, step := range []time.Duration{0, time.Minute} {
		profiletest.RequireCost(t, profiletest.Bound{HeapBytes: 32 << 20}, func() {
			require.NoError(t, Merge(t.Context(), filepath.Join(t.TempDir(), "new"), "new", blocks, step))
		})
	}
}

// A source whose rows refer to what is not there is at fault: nothing else breaks.
func TestMergeOfWrongIndices(t *testing.T) {
	for name, change := range map[string]func(*Profile){
		"stack":         func(p *Profile) { p.Rows = one(rowOf(99, 0, 0)) },
		"negative":      func(p *Profile) { p.Rows = one(rowOf(-2, 0, 0)) },
		"set":           func(p *Profile) { p.Flags, p.Rows = model.HasAttributes, one(rowOf(0, 99, 0)) },
		"profile's set": func(p *Profile) { p.Attributes = 99 },
		"scope's set":   func(p *Profile) { p.Scope = -3 },
	} {
		t.Run(name, func(t *testing.T) {
			wrong := merge(t, changed{fake{"shop": {"a": starting(1)}}, change})
			err := Merge(t.Context(), filepath.Join(t.TempDir(), "new"), "new", []Source{FromDisk(wrong)}, 0)
			require.ErrorIs(t, err, blockfile.ErrDamaged)
			var of *BlockError
			require.ErrorAs(t, err, &of)
			assert.Equal(t, "block", of.Block)
		})
	}
}

func rowOf(stack, attributes int32, value int64) (row blockfile.Row) {
	row.Stack, row.Attributes, row.Value = stack, attributes, value
	return row
}

func one(row blockfile.Row) iter.Seq2[blockfile.Row, error] {
	return func(yield func(blockfile.Row, error) bool) { yield(row, nil) }
}

// changed is a source whose profiles are changed.
type changed struct {
	fake
	change func(*Profile)
}

func (c changed) Begin(service string, dict *dictionary.Dictionary) ([]Series, error) {
	list, err := c.fake.Begin(service, dict)
	for i := range list {
		profiles := list[i].Profiles
		list[i].Profiles = func(yield func(Profile, error) bool) {
			for p, err := range profiles {
				c.change(&p)
				if !yield(p, err) {
					return
				}
			}
		}
	}
	return list, err
}

// stack_hash is FNV-1a of the names, the file, the mapping and the line of each frame: the same in all blocks, and for
// everybody.
func TestStackHash(t *testing.T) {
	hash := uint64(14695981039346656037)
	for _, b := range []byte("leaf\xffleaf.go\xff/bin/shop\xff\x07\x00\x00\x00\x00\x00\x00\x00") {
		hash = (hash ^ uint64(b)) * 1099511628211
	}
	r := merge(t, fake{"shop": {"a": starting(1)}})
	type row struct {
		Stack int32  `parquet:"stack"`
		Hash  string `parquet:"stack_hash"`
	}
	rows, err := parquet.ReadFile[row](filepath.Join(r.Dir(), "stacks.parquet"))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	assert.Equal(t, fmt.Sprintf("%016x", hash), rows[1].Hash)
}
