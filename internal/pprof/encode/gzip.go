// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// compressor compresses one payload after another into the same memory. A writer's tables take almost a megabyte:
// making one costs more than compressing a small payload.
type compressor struct {
	writer *gzip.Writer
	out    bytes.Buffer
}

var compressors = sync.Pool{New: func() any { return &compressor{writer: gzip.NewWriter(nil)} }}

// Gzip returns a payload compressed, as pprof is stored and sent.
func Gzip(payload []byte) []byte {
	const maxKeptBytes = 1 << 20
	z := compressors.Get().(*compressor)
	defer compressors.Put(z)
	z.out.Reset()
	z.writer.Reset(&z.out)
	_, _ = z.writer.Write(payload) // writing to a buffer does not fail
	_ = z.writer.Close()
	if z.out.Cap() <= maxKeptBytes {
		return bytes.Clone(z.out.Bytes())
	}
	compressed := z.out.Bytes()
	z.out = bytes.Buffer{}
	return compressed
}
