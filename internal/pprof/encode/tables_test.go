// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestEncodeLocation(t *testing.T) {
	leaf := profiletest.Function{Name: "leaf", SystemName: "_leaf", File: "leaf.go", StartLine: 3}
	outer := profiletest.Function{Name: "outer", File: "outer.go"}
	full := profiletest.Location{
		Address: 0xFFFFFFFFFFFFFFFF,
		Mapping: &profiletest.Mapping{Start: 1, Limit: 2, Offset: 3, File: "bin"},
		Lines:   []profiletest.Line{{Function: leaf, Line: 9, Column: 4}, {Function: outer, Line: 2}},
		Attributes: []profiletest.Attribute{profiletest.Attr(scan.AttributeIsFolded, true),
			profiletest.Attr("profile.frame.type", "go"), {}},
	}
	bare := profiletest.Location{Address: 7}
	s := profiletest.Sample{Values: []int64{1}, Stack: []profiletest.Location{full, bare, full}}
	p, _ := encodeOne(t, build(s))

	require.Len(t, p.Sample[0].Location, 3)
	got := p.Sample[0].Location[0]
	assert.Same(t, got, p.Sample[0].Location[2])
	assert.Equal(t, uint64(0xFFFFFFFFFFFFFFFF), got.Address)
	assert.True(t, got.IsFolded)
	require.Len(t, got.Line, 2)
	assert.Equal(t, "leaf _leaf leaf.go 3", describe(got.Line[0].Function))
	assert.Equal(t, int64(9), got.Line[0].Line)
	assert.Equal(t, int64(4), got.Line[0].Column)
	assert.Equal(t, "outer  outer.go 0", describe(got.Line[1].Function))
	require.NotNil(t, got.Mapping)
	assert.Equal(t, [3]uint64{1, 2, 3}, [3]uint64{got.Mapping.Start, got.Mapping.Limit, got.Mapping.Offset})
	assert.Equal(t, "bin", got.Mapping.File)

	second := p.Sample[0].Location[1]
	assert.Equal(t, uint64(7), second.Address)
	assert.False(t, second.IsFolded)
	assert.Empty(t, second.Line)
	assert.Nil(t, second.Mapping)
}

func describe(f *profile.Function) string {
	return fmt.Sprintf("%s %s %s %d", f.Name, f.SystemName, f.Filename, f.StartLine)
}

// Index 0 has a meaning in two tables: the location with all fields zero, and the function without a
// name. pprof has no id 0, and its readers refuse a line without a function.
func TestEncodeZeroEntries(t *testing.T) {
	line := profiletest.Location{Lines: []profiletest.Line{{Line: 5}}}
	s := profiletest.Sample{Values: []int64{1}, Stack: []profiletest.Location{{}, line, {Address: 1}}}
	p, _ := encodeOne(t, build(s))
	require.Len(t, p.Sample[0].Location, 3)
	assert.Zero(t, p.Sample[0].Location[0].Address)
	assert.Empty(t, p.Sample[0].Location[0].Line)
	require.Len(t, p.Sample[0].Location[1].Line, 1)
	assert.Equal(t, int64(5), p.Sample[0].Location[1].Line[0].Line)
	assert.Empty(t, p.Sample[0].Location[1].Line[0].Function.Name)
	assert.Empty(t, p.Mapping)
}

// Pyroscope refuses a pprof of which one string is not UTF-8, such as the name of a function that an eBPF profiler read
// from a process.
func TestEncodeOnlyUTF8(t *testing.T) {
	s := profiletest.Value(1, "f\xff\xfeg").With(profiletest.Attr("k\xff", "v\xff"))
	p, _ := encodeOne(t, build(s))
	assert.Equal(t, "f\uFFFDg", p.Function[0].Name)
	assert.Equal(t, map[string][]string{"k\uFFFD": {"v\uFFFD"}}, p.Sample[0].Label)
}

// With ids of one, two and three bytes in one table, stacks are longer or shorter than the encoder guesses.
func TestEncodeStacksOfManySizes(t *testing.T) {
	all := deepStack(20_000)
	b := profiletest.New().Profile("cpu", "ns").Sample(profiletest.Value(1, all...))
	for n := 1; n < 300; n++ {
		b.Sample(profiletest.Value(int64(n), all[:n]...), profiletest.Value(int64(n), all[len(all)-n:]...))
	}
	p, _ := encodeOne(t, b.Build())
	require.Len(t, p.Sample, 1+2*299)
	for i, s := range p.Sample[1:] {
		n := i/2 + 1
		require.Len(t, s.Location, n)
		first := 0
		if i%2 == 1 {
			first = len(all) - n
		}
		for k, l := range s.Location {
			require.Equal(t, all[first+k], l.Line[0].Function.Name)
		}
	}
}

func deepStack(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("f%d", i)
	}
	return names
}

func TestEncodeManyInlinedLines(t *testing.T) {
	counts := []int{2000, 20_000}
	for n := range 60 { // around 21 the location's length takes a second byte
		counts = append(counts, n)
	}
	for _, n := range counts {
		l := profiletest.Location{Address: 1}
		for i := range n {
			l.Lines = append(l.Lines, profiletest.Line{Function: profiletest.Function{Name: "f"}, Line: int64(n - i)})
		}
		p, _ := encodeOne(t, build(profiletest.Sample{Values: []int64{1}, Stack: []profiletest.Location{l}}))
		require.Len(t, p.Location[0].Line, n)
		for i, line := range p.Location[0].Line {
			require.Equal(t, int64(n-i), line.Line)
		}
	}
}

func TestEncodeMapping(t *testing.T) {
	attr := profiletest.Attr
	for name, test := range map[string]struct {
		mapping profiletest.Mapping
		want    profile.Mapping
	}{
		"gnu build id": {profiletest.Mapping{Attributes: []profiletest.Attribute{attr(scan.AttributeBuildIDGNU, "g")}},
			profile.Mapping{BuildID: "g"}},
		"go build id": {profiletest.Mapping{Attributes: []profiletest.Attribute{attr(scan.AttributeBuildIDGo, "a/b")}},
			profile.Mapping{BuildID: "a/b"}},
		"file hash": {profiletest.Mapping{Attributes: []profiletest.Attribute{attr(scan.AttributeBuildIDHTLHash, "h")}},
			profile.Mapping{BuildID: "h"}},
		"go, then hash": {profiletest.Mapping{Attributes: []profiletest.Attribute{attr(scan.AttributeBuildIDHTLHash, "h"),
			attr(scan.AttributeBuildIDGo, "a/b")}}, profile.Mapping{BuildID: "a/b"}},
		"gnu, then go, then hash": {profiletest.Mapping{Attributes: []profiletest.Attribute{
			attr(scan.AttributeBuildIDHTLHash, "h"), attr(scan.AttributeBuildIDGo, "a/b"),
			attr(scan.AttributeBuildIDGNU, "g")}}, profile.Mapping{BuildID: "g"}},
		"has": {profiletest.Mapping{Attributes: []profiletest.Attribute{
			attr(scan.MappingFlags[0], true),
			attr(scan.MappingFlags[3], true)}}, profile.Mapping{HasFunctions: true, HasInlineFrames: true}},
		"has others": {profiletest.Mapping{Attributes: []profiletest.Attribute{
			attr(scan.MappingFlags[1], true),
			attr(scan.MappingFlags[2], true)}}, profile.Mapping{HasFilenames: true, HasLineNumbers: true}},
		"start above limit": {profiletest.Mapping{File: "x", Attributes: []profiletest.Attribute{
			attr(scan.AttributeMappingStart, int64(-1)),
			attr(scan.AttributeMappingLimit, int64(5))}}, profile.Mapping{Start: 1<<64 - 1, Limit: 5, File: "x"}},
		"foreign": {profiletest.Mapping{Start: 1, Limit: 9, Attributes: []profiletest.Attribute{
			attr("x", "y"), attr("z", true), attr("i", int64(1)), attr("d", 1.5)}}, profile.Mapping{Start: 1, Limit: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			s := profiletest.Sample{Values: []int64{1}, Stack: []profiletest.Location{
				{Address: 1, Mapping: &test.mapping}, {Address: 2, Mapping: &test.mapping}}}
			p, _ := encodeOne(t, build(s))
			require.Len(t, p.Mapping, 1)
			test.want.ID = p.Mapping[0].ID
			assert.Equal(t, &test.want, p.Mapping[0])
		})
	}
}

// in returns a location in a file.
func in(file, function string) profiletest.Location {
	l := profiletest.Stack(function)[0]
	l.Address, l.Mapping = uint64(len(function)), &profiletest.Mapping{File: file}
	return l
}

// firstFile returns the first mapping of each payload.
func firstFile(t *testing.T, payloads []Payload) (files []string) {
	for _, payload := range payloads {
		p := profiletest.ParsePprof(t, payload.Bytes)
		files = append(files, p.Mapping[0].File)
	}
	return files
}

// The main binary of each service is the first mapping of its pprof, also if a message has several services that share
// files.
func TestMainBinaryIsFirst(t *testing.T) {
	const libc, kernel = "/lib/libc.so.6", "[kernel.kallsyms]"
	service := func(name string, stacks ...[]profiletest.Location) *compact.Batch {
		b := profiletest.New().Resource("service.name", name).Profile("cpu", "nanoseconds").Time(1, 1)
		for _, stack := range stacks {
			b.Sample(profiletest.Sample{Stack: stack, Values: []int64{1}})
		}
		batch := &compact.Batch{}
		batch.Reset(compact.Options{})
		batch.Add(b.Build())
		return batch
	}
	first := service("a", []profiletest.Location{in("/bin/a", "main")},
		[]profiletest.Location{in(libc, "read"), in("/bin/a", "main")}).
		Whole()
	for name, stacks := range map[string][][]profiletest.Location{
		"libraries at the leaf": {{in(libc, "read"), in("/bin/b", "main")}},
		"threads begin in libc": {{in(libc, "read"), in(libc, "clone")}, {in("/bin/b", "work"), in(libc, "clone")}},
		"the kernel is first":   {{in(kernel, "syscall"), in(libc, "read"), in("/bin/b", "main")}},
	} {
		batch := service("b", stacks...)
		payloads, _, err := Encode(batch.Whole())
		require.NoError(t, err)
		require.Equal(t, []string{"/bin/b"}, firstFile(t, payloads), name)

		merged := &compact.Batch{}
		merged.Reset(compact.Options{})
		merged.Add(first)
		merged.Add(service("b", stacks...).Whole())
		payloads, _, err = Encode(merged.Whole())
		require.NoError(t, err)
		require.Equal(t, []string{"/bin/a", "/bin/b"}, firstFile(t, payloads), name)
	}
	// The first mapping of a message stays, if it can be the main binary.
	payloads, _, err := Encode(service("c", []profiletest.Location{in("/bin/c", "main")},
		[]profiletest.Location{in("/bin/c", "x"), in("/bin/other", "y")},
		[]profiletest.Location{in("/bin/other", "y")}).Whole())
	require.NoError(t, err)
	require.Equal(t, []string{"/bin/c"}, firstFile(t, payloads))
}
