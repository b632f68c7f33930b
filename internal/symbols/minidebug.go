// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// MiniDebugInfo is an ELF file with a symbol table, xz-compressed, in the section .gnu_debugdata.

const (
	// maxMiniDebugBytes and maxMiniDictionary are four times what Fedora's largest have.
	maxMiniDebugBytes = 64 << 20
	maxMiniDictionary = 16 << 20
	// maxMiniFactor is above the ratio that xz reaches on symbol tables. A bomb has 7000.
	maxMiniFactor = 64

	// workOfPacked and workOfChunk are how much work a packed byte and a chunk count as: a chunk can reset tables of 30
	// kB.
	workOfPacked = 16
	workOfChunk  = 32 << 10
)

// readMiniDebugInfo opens the file in .gnu_debugdata; nil if there is none.
func (m *Image) readMiniDebugInfo() (*Image, error) {
	s := m.section(".gnu_debugdata")
	if s == nil {
		return nil, nil
	}
	packed := m.extentOf(s)
	if packed.size > maxMiniDebugBytes/4 {
		return nil, fmt.Errorf("section %s of %d bytes: %w", s.name, packed.size, ErrTooLarge)
	}
	b, err := packed.bytes(0, packed.size)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.name, err)
	}
	limit := min(packed.size*maxMiniFactor+1<<16, maxMiniDebugBytes, m.limits.TableBytes-m.kept)
	plain, err := decompressXZ(b, limit, &m.work)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.name, err)
	}
	limits := m.limits
	limits.TableBytes -= m.kept + int64(len(plain))
	mini, err := Open(bytes.NewReader(plain), int64(len(plain)), limits)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.name, err)
	}
	return mini, m.reserve(int64(len(plain)))
}

const xzMagic = "\xfd7zXZ\x00"

// decompressXZ reads the blocks of an xz stream (https://tukaani.org/xz/xz-file-format.txt). The library's own reader
// of the container allocates the dictionary that the stream asks for, up to 4 GiB. So this function reads the
// container, and the library only LZMA2. Readers that bound the dictionary, such as therootcompany/xz, do not bound the
// chunks: each can reset 30 kB of tables for a byte. Checksums are not compared: a forged file has valid ones.
func decompressXZ(b []byte, limit int64, work *meter) ([]byte, error) {
	if len(b) < 12 || string(b[:6]) != xzMagic {
		return nil, errors.New("not an xz stream")
	}
	checkSizes := [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}
	checkSize := checkSizes[b[7]&15]
	var out bytes.Buffer
	for off := 12; off < len(b) && b[off] != 0; {
		headerSize := (int(b[off]) + 1) * 4
		if headerSize > len(b)-off {
			return nil, io.ErrUnexpectedEOF
		}
		dictionary, err := xzDictionary(b[off:][:headerSize])
		if err != nil {
			return nil, err
		}
		off += headerSize
		packed, plain, chunks, err := measureLZMA2(b[off:])
		if err != nil {
			return nil, err
		}
		if plain > limit-int64(out.Len()) {
			return nil, fmt.Errorf("above %d bytes: %w", limit, ErrTooLarge)
		}
		if !work.spend(workOfPacked*int64(packed) + plain + workOfChunk*chunks) {
			return nil, ErrTooMuchWork
		}
		if plain > 0 {
			// A block does not refer to others: it uses no more of the dictionary than its own bytes.
			config := lzma.Reader2Config{DictCap: int(max(min(dictionary, plain), lzma.MinDictCap))}
			reader, err := config.NewReader2(bytes.NewReader(b[off:][:packed]))
			if err != nil {
				return nil, err
			}
			if _, err := io.CopyN(&out, reader, plain); err != nil {
				return nil, err
			}
		}
		off += (packed+3)&^3 + checkSize
	}
	return out.Bytes(), nil
}

// measureLZMA2 reads the headers of a block's chunks: the size of the block, that of its content, and the number of
// chunks.
func measureLZMA2(b []byte) (packed int, plain, chunks int64, err error) {
	c := cursor{data: b, order: binary.BigEndian}
	for {
		control := c.u8()
		if c.bad {
			return 0, 0, 0, io.ErrUnexpectedEOF
		}
		switch {
		case control == 0: // the end
			return c.off, plain, chunks, nil
		case control < 3: // not compressed
			size := uint64(c.u16()) + 1
			c.skip(size)
			plain += int64(size)
		case control < 0x80:
			return 0, 0, 0, fmt.Errorf("LZMA2 chunk of kind %d: %w", control, ErrMalformed)
		default:
			plain += int64(control&0x1f)<<16 + int64(c.u16()) + 1
			size := uint64(c.u16()) + 1
			if control >= 0xc0 {
				size++ // properties
			}
			c.skip(size)
		}
		chunks++
	}
}

// xzDictionary returns the size of the dictionary that a block's header asks for. LZMA2 is the only filter that is
// supported.
func xzDictionary(header []byte) (int64, error) {
	c := cursor{data: header, order: binary.LittleEndian}
	c.skip(1)
	flags := c.u8()
	if flags&0x40 != 0 {
		c.uleb()
	}
	if flags&0x80 != 0 {
		c.uleb()
	}
	filter, propertySize, bits := c.uleb(), c.uleb(), c.u8()
	const lzma2 = 0x21
	if c.bad || flags&3 != 0 || filter != lzma2 || propertySize != 1 || bits > 40 {
		return 0, errors.New("xz filters other than LZMA2")
	}
	size := int64(2|bits&1) << (bits/2 + 11)
	if size > maxMiniDictionary {
		return 0, fmt.Errorf("xz dictionary of %d bytes: %w", size, ErrTooLarge)
	}
	return size, nil
}
