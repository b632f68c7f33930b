// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// lz4Frame compresses plain bytes.
func lz4Frame(t testing.TB, plain []byte, options ...lz4.Option) []byte {
	t.Helper()
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	require.NoError(t, w.Apply(options...))
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Frames of every size of block, with and without checksums, hold the same profile.
func TestUncompressLZ4(t *testing.T) {
	plain := bytes.Clone(plainBytes(t, captured(t)["go-heap.pb.gz"]))
	for _, block := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
		frame := lz4Frame(t, plain, lz4.BlockSizeOption(block), lz4.ChecksumOption(block != lz4.Block1Mb),
			lz4.BlockChecksumOption(block == lz4.Block1Mb))
		require.True(t, IsLZ4(frame))
		require.Equal(t, lz4Buffers*int(block), ReaderBytes(frame))
		got, err := Uncompress(frame, 1<<30, nil)
		require.NoError(t, err)
		require.Equal(t, plain, got)
		require.Equal(t, plain[:100], Head(frame, 100))
		var streamed []byte
		read, err := Stream(frame, 1<<30, func(r io.Reader) (err error) {
			streamed, err = io.ReadAll(r)
			return err
		})
		require.NoError(t, err)
		require.Equal(t, plain, streamed)
		require.EqualValues(t, len(plain), read)
		_, err = Stream(frame, int64(len(plain)-1), func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		require.ErrorIs(t, err, scan.ErrTooLarge)
		half := len(plain) / 2
		got, err = Uncompress(append(lz4Frame(t, plain[:half]), lz4Frame(t, plain[half:])...), 1<<30, nil)
		require.NoError(t, err)
		require.Equal(t, plain, got, "two frames")
		_, err = Uncompress(frame, len(plain)-1, nil)
		require.ErrorIs(t, err, scan.ErrTooLarge)
	}
}

// A frame that ends early or is changed is an error, not a shorter profile.
func TestDamagedLZ4(t *testing.T) {
	frame := lz4Frame(t, bytes.Repeat([]byte("main;work 12\n"), 100))
	for n := 4; n < len(frame); n++ {
		_, err := Uncompress(frame[:n], 1<<20, nil)
		var format *scan.FormatError
		require.ErrorAs(t, err, &format, "%d of %d bytes", n, len(frame))
		require.Contains(t, format.Seems, "lz4 stream")
	}
	for i := 4; i < len(frame); i++ {
		changed := bytes.Clone(frame)
		changed[i] ^= 1
		_, err := Uncompress(changed, 1<<20, nil)
		require.Error(t, err, "byte %d", i)
	}
}

// A stream takes no more than its reader is said to.
func TestStreamOfLZ4IsBounded(t *testing.T) {
	for _, block := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block4Mb} {
		bomb := lz4Frame(t, make([]byte, 64<<20), lz4.BlockSizeOption(block))
		pt.RequireCost(t, pt.Bound{HeapBytes: ReaderBytes(bomb) + 1<<20}, func() {
			_, err := Stream(bomb, 1<<30, func(r io.Reader) error {
				_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 4096))
				return err
			})
			require.NoError(t, err)
		})
	}
}

// A frame reserves the blocks of its reader, and one that states large blocks takes no more than it reserves.
func TestLZ4IsBounded(t *testing.T) {
	bomb := lz4Frame(t, make([]byte, 64<<20), lz4.BlockSizeOption(lz4.Block4Mb))
	errFull := errors.New("full")
	for limit, payload := range map[int][]byte{1 << 20: bomb, 8 << 20: bomb,
		1 << 16: lz4Frame(t, []byte("a"), lz4.BlockSizeOption(lz4.Block4Mb))} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			bound := pt.BoundOf(limit+len(payload), lz4Buffers*int(lz4.Block4Mb)+1<<20, 3)
			pt.RequireReserved(t, bound, 1<<20, func(reserve func(int) error) {
				_, _ = Uncompress(payload, limit, &size.Meter{Reserve: reserve})
			})
			_, err := Uncompress(payload, limit, &size.Meter{Reserve: func(n int) error {
				if n >= lz4Buffers*int(lz4.Block4Mb) {
					return errFull
				}
				return nil
			}})
			require.ErrorIs(t, err, errFull)
		})
	}
}

func FuzzUncompressLZ4(f *testing.F) {
	f.Add([]byte("\x60\x70\x73\x00"))
	f.Add(lz4Frame(f, bytes.Repeat([]byte("main;work 12\n"), 100))[4:])
	f.Add(lz4Frame(f, make([]byte, 1<<20), lz4.BlockSizeOption(lz4.Block4Mb), lz4.BlockChecksumOption(true))[4:])
	f.Fuzz(func(t *testing.T, frame []byte) {
		payload := append([]byte{0x04, 0x22, 0x4d, 0x18}, frame...)
		const limit = 1 << 20
		bound := pt.BoundOf(limit+len(payload), lz4Buffers*int(lz4.Block4Mb)+1<<20, 3)
		pt.RequireReserved(t, bound, 1<<20, func(reserve func(int) error) {
			if plain, err := Uncompress(payload, limit, &size.Meter{Reserve: reserve}); err == nil {
				require.LessOrEqual(t, len(plain), limit)
			}
		})
	})
}
