// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"io"
	"os"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// BenchmarkFields compares the reader of fields with protowire's: both go over all fields of a payload and of its
// entries.
func BenchmarkFields(b *testing.B) {
	file, err := os.Open("../../../testdata/pprof/go-compile-nethttp-heap-large.pb.gz")
	require.NoError(b, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(b, err)
	data, err := io.ReadAll(unzipped)
	require.NoError(b, err)
	for name, sum := range map[string]func([]byte) (uint64, bool){
		"ours": func(data []byte) (uint64, bool) { return sumOurs(data, 0, len(data), 0) },
		"peer": func(data []byte) (uint64, bool) { return sumProtowire(data, 0) },
	} {
		want, _ := sumOurs(data, 0, len(data), 0)
		b.Run("impl="+name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				got, ok := sum(data)
				require.True(b, ok && got == want)
			}
		})
	}
}

// isMessage tells which fields are messages that are read too: those of the profile but its strings.
func isMessage(field uint64, depth int) bool { return depth == 0 && field != ProfileStringTable }

func sumOurs(data []byte, at, end, depth int) (sum uint64, ok bool) {
	var f field
	for at < end {
		var err error
		if at, err = f.next(data, at, end); err != nil {
			return 0, false
		}
		switch {
		case f.wire == wireVarint:
			sum += f.number + f.value
		case f.wire == wireBytes && isMessage(f.number, depth):
			inner, ok := sumOurs(data, f.start, f.end, depth+1)
			if !ok {
				return 0, false
			}
			sum += inner
		}
	}
	return sum, true
}

func sumProtowire(data []byte, depth int) (sum uint64, ok bool) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return 0, false
		}
		data = data[n:]
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(data)
			if n < 0 {
				return 0, false
			}
			sum, data = sum+uint64(number)+v, data[n:]
		case protowire.BytesType:
			message, n := protowire.ConsumeBytes(data)
			if n < 0 {
				return 0, false
			}
			if isMessage(uint64(number), depth) {
				inner, ok := sumProtowire(message, depth+1)
				if !ok {
					return 0, false
				}
				sum += inner
			}
			data = data[n:]
		default:
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return 0, false
			}
			data = data[n:]
		}
	}
	return sum, true
}
