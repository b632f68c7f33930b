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
	plain, err := decompressXZ(b, limit)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.name, err)
	}
	limits := m.limits
	limits.TableBytes -= m.kept + int64(len(plain))
	mini, err := Open(bytes.NewReader(plain), int64(len(plain)), limits)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.name, err)
	}
	return mini, m.keep(int64(len(plain)))
}

const xzMagic = "\xfd7zXZ\x00"

// decompressXZ reads the blocks of an xz stream (https://tukaani.org/xz/xz-file-format.txt). The library's own reader
// of the container allocates the dictionary that the stream asks for, up to 4 GiB. So this function reads the
// container, and the library only LZMA2. Checksums are not compared: a forged file has valid ones.
func decompressXZ(b []byte, limit int64) ([]byte, error) {
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
		block := bytes.NewReader(b[off+headerSize:])
		reader, err := lzma.Reader2Config{DictCap: dictionary}.NewReader2(block)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err == nil {
			if _, err = io.Copy(&out, io.LimitReader(reader, limit-int64(out.Len())+1)); err != nil {
				return nil, err
			}
		}
		if int64(out.Len()) > limit {
			return nil, fmt.Errorf("above %d bytes: %w", limit, ErrTooLarge)
		}
		packed := len(b) - off - headerSize - block.Len()
		off += headerSize + (packed+3)&^3 + checkSize
	}
	return out.Bytes(), nil
}

// xzDictionary returns the size of the dictionary that a block's header asks for. LZMA2 is the only filter that is supported.
func xzDictionary(header []byte) (int, error) {
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
	return int(max(size, lzma.MinDictCap)), nil
}
