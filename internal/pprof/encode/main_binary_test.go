// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// in returns a location in a file.
func in(file, function string) pt.Location {
	l := pt.Stack(function)[0]
	l.Address, l.Mapping = uint64(len(function)), &pt.Mapping{File: file}
	return l
}

// firstFile returns the first mapping of each payload.
func firstFile(t *testing.T, payloads []Payload) (files []string) {
	for _, payload := range payloads {
		p, err := profile.ParseUncompressed(payload.Bytes)
		require.NoError(t, err)
		files = append(files, p.Mapping[0].File)
	}
	return files
}

// The main binary of each service is the first mapping of its pprof, also if a message has several services that share
// files.
func TestMainBinaryIsFirst(t *testing.T) {
	const libc, kernel = "/lib/libc.so.6", "[kernel.kallsyms]"
	service := func(name string, stacks ...[]pt.Location) *compact.Batch {
		b := pt.New().Resource("service.name", name).Profile("cpu", "nanoseconds").Time(1, 1)
		for _, stack := range stacks {
			b.Sample(pt.Sample{Stack: stack, Values: []int64{1}})
		}
		batch := &compact.Batch{}
		batch.Reset(compact.Options{})
		batch.Add(b.Build())
		return batch
	}
	first := service("a", []pt.Location{in("/bin/a", "main")}, []pt.Location{in(libc, "read"), in("/bin/a", "main")}).
		Whole()
	for name, stacks := range map[string][][]pt.Location{
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
	payloads, _, err := Encode(service("c", []pt.Location{in("/bin/c", "main")},
		[]pt.Location{in("/bin/c", "x"), in("/bin/other", "y")}, []pt.Location{in("/bin/other", "y")}).Whole())
	require.NoError(t, err)
	require.Equal(t, []string{"/bin/c"}, firstFile(t, payloads))
}
