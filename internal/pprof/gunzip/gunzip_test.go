// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func compress(t testing.TB, plain []byte, level int) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	require.NoError(t, err)
	_, err = w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// inputs have all kinds of blocks, and matches of all distances and lengths.
func inputs() map[string][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 100_000)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	var words, skewed bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&words, "word%d ", rnd.IntN(1+i/10))
		skewed.WriteByte(byte(min(255, int(rnd.ExpFloat64()*4))))
	}
	all := map[string][]byte{"empty": nil, "a byte": {7}, "random": random, "words": words.Bytes(),
		"skewed": skewed.Bytes(), "far": bytes.Repeat(random[:32<<10], 2)}
	for period := 1; period <= 17; period++ {
		all[fmt.Sprint("period ", period)] = bytes.Repeat(random[:period], 3000)
	}
	return all
}

func TestGunzip(t *testing.T) {
	var d Decoder // used again and again
	for name, plain := range inputs() {
		for _, level := range []int{gzip.HuffmanOnly, gzip.NoCompression, gzip.BestSpeed, gzip.DefaultCompression,
			gzip.BestCompression} {
			payload := compress(t, plain, level)
			dst := make([]byte, len(plain)+Slack)
			n, ok := d.Gunzip(dst, payload)
			require.True(t, ok, "%s, level %d", name, level)
			require.True(t, bytes.Equal(plain, dst[:n]), "%s, level %d", name, level)
			if n > 3 {
				_, ok = d.Gunzip(dst[:n-4+Slack], payload)
				require.False(t, ok, "%s, level %d: too little room", name, level)
			}
		}
	}
}

// Captured profiles were written by other compressors: zlib's, klauspost's and those of browsers.
func TestCapturedProfiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "pprof", "*.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var d Decoder
	for _, file := range files {
		payload, err := os.ReadFile(file)
		require.NoError(t, err)
		want := read(payload)
		dst := make([]byte, len(want)+Slack)
		n, ok := d.Gunzip(dst, payload)
		require.True(t, ok, file)
		require.True(t, bytes.Equal(want, dst[:n]), file)
	}
}

// read returns the plain bytes, or nil if the payload is damaged.
func read(payload []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(io.LimitReader(r, 32<<20))
	if err != nil {
		return nil
	}
	return append([]byte{}, plain...)
}

func TestTheUnusualIsLeft(t *testing.T) {
	payload := compress(t, []byte(strings.Repeat("some text ", 9)), gzip.DefaultCompression)
	var d Decoder
	dst := make([]byte, 1000+Slack)
	for n := range payload {
		_, ok := d.Gunzip(dst, payload[:n])
		require.False(t, ok, "cut after %d bytes", n)
	}
	named := bytes.Clone(payload)
	named[3] = 8 // a name follows
	for name, other := range map[string][]byte{"two members": append(bytes.Clone(payload), payload...),
		"a byte behind": append(bytes.Clone(payload), 0), "a name": named, "no gzip": []byte(strings.Repeat("x", 100))} {
		_, ok := d.Gunzip(dst, other)
		require.False(t, ok, name)
	}
	_, ok := d.Gunzip(dst[:Slack-1], payload)
	require.False(t, ok, "no room at all")
}

// Blocks are read as the standard library reads them, up to the same byte, or refused as there. Their checksum, which
// hardly any mutation has, is left out.
func FuzzBlocks(f *testing.F) {
	for _, plain := range inputs() {
		for _, level := range []int{gzip.HuffmanOnly, gzip.NoCompression, gzip.BestSpeed, gzip.BestCompression} {
			f.Add(compress(f, plain[:min(len(plain), 2000)], level)[headerBytes:])
		}
	}
	f.Fuzz(func(t *testing.T, blocks []byte) {
		const room = 1 << 16
		d := Decoder{input: input{src: blocks}, dst: make([]byte, room+Slack)}
		ok := d.blocks()
		end := d.at - int(d.have/8)
		r := bytes.NewReader(blocks)
		want, err := io.ReadAll(io.LimitReader(flate.NewReader(r), 2*room))
		if ok && end <= len(blocks) {
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, d.dst[:d.out]))
			require.Equal(t, len(blocks)-r.Len(), end)
		} else {
			require.True(t, err != nil || len(want) > room, "%d bytes were not read", len(want))
		}
	})
}
