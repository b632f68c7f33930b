// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// A writer's tables take almost a megabyte: making one costs more than compressing a small payload.
var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Gzip returns a payload compressed, as pprof is stored and sent.
func Gzip(payload []byte) []byte {
	z := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(z)
	var out bytes.Buffer
	z.Reset(&out)
	_, _ = z.Write(payload) // writing to a buffer does not fail
	_ = z.Close()
	z.Reset(nil) // the buffer is the caller's
	return out.Bytes()
}
