// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package gunzip decompresses gzip that is in memory into memory that has room for it. A reader of a stream has to ask
// for each byte, and to keep what it has written for matches: it takes more than twice the time.
//
// Decoder.Gunzip reads the header and the checksum; decoder.blocks reads the blocks of DEFLATE (RFC 1951), build makes
// the tables of their Huffman codes, and decoder.symbols reads what is encoded by these.
//
// Everything unusual is left to a reader of streams, faults too: so that is the only one that describes them.
package gunzip

import (
	"encoding/binary"
	"hash/crc32"
)

// Slack is how much longer than the plain bytes the memory for them must be: the longest match, rounded up to words.
const Slack = maxMatch + 2*wordBytes

const (
	maxMatch     = 258
	wordBytes    = 8
	headerBytes  = 10
	trailerBytes = 8
)

// Decoder has the tables of a block, about 26 kB. It is not safe for concurrent use.
type Decoder struct {
	literals  [1<<literalBits + maxSubtables<<(maxCodeBits-literalBits)]entry
	distances [1<<distanceBits + numDistances/2<<(maxCodeBits-distanceBits)]entry
	lengths   [numLiterals + numDistances]uint8
	input
	dst []byte
	out int // how much of dst is written
}

// input is a message bit by bit, the lowest bit of a byte first.
type input struct {
	src  []byte
	at   int    // the next byte; beyond the end, zeros are read
	bits uint64 // the next bits, of which have are counted
	have uint
}

// refill makes sure that at least 56 bits are there.
func (in *input) refill() { in.bits, in.at, in.have = refillAtEnd(in.src, in.at, in.bits, in.have) }

func refillAtEnd(src []byte, at int, bits uint64, have uint) (uint64, int, uint) {
	for ; have < 56; have += 8 {
		if at < len(src) {
			bits |= uint64(src[at]) << (have & 63)
		}
		at++
	}
	return bits, at, have
}

// next returns the next n bits, at most 16 of those that are there.
func (in *input) next(n uint) uint {
	v := in.bits & (1<<(n&63) - 1)
	in.bits >>= n & 63
	in.have -= n
	return uint(v)
}

// Gunzip decompresses src into dst, which must have Slack bytes more than the plain bytes. It returns the length of
// the plain bytes. It returns false if src is not a single member of gzip with a plain header, is damaged, or has more
// than fits.
func (d *Decoder) Gunzip(dst, src []byte) (n int, ok bool) {
	if len(src) < headerBytes+trailerBytes || len(dst) < Slack ||
		string(src[:4]) != "\x1f\x8b\x08\x00" { // DEFLATE, and no further fields in the header
		return 0, false
	}
	d.input, d.dst, d.out = input{src: src, at: headerBytes}, dst, 0
	ok = d.blocks()
	end := d.at - int(d.have/8)
	plain := dst[:d.out]
	d.src, d.dst = nil, nil
	trailer := src[len(src)-trailerBytes:]
	checksum, size := binary.LittleEndian.Uint32(trailer), binary.LittleEndian.Uint32(trailer[4:])
	return len(plain), ok && end == len(src)-trailerBytes && uint32(len(plain)) == size &&
		crc32.ChecksumIEEE(plain) == checksum
}

// blocks reads all blocks.
func (d *Decoder) blocks() bool {
	for isLast := false; !isLast; {
		d.refill()
		isLast = d.next(1) == 1
		ok := false
		switch d.next(2) {
		case 0:
			ok = d.stored()
		case 1:
			ok = d.fixed() && d.symbols()
		case 2:
			ok = d.dynamic() && d.symbols()
		}
		if !ok {
			return false
		}
	}
	return true
}

// stored copies a block that is not compressed.
func (d *Decoder) stored() bool {
	d.next(d.have % 8)
	d.at -= int(d.have / 8)
	d.bits, d.have = 0, 0
	if d.at+4 > len(d.src) {
		return false
	}
	header := d.src[d.at:]
	n := int(binary.LittleEndian.Uint16(header))
	if ^binary.LittleEndian.Uint16(header) != binary.LittleEndian.Uint16(header[2:]) || n > len(header)-4 ||
		n > len(d.dst)-Slack-d.out {
		return false
	}
	d.out += copy(d.dst[d.out:], header[4:4+n])
	d.at += 4 + n
	return true
}

// fixed makes the tables of the codes that the standard names.
func (d *Decoder) fixed() bool {
	for i := range numLiterals {
		switch {
		case i < 144, i >= 280:
			d.lengths[i] = 8
		case i < 256:
			d.lengths[i] = 9
		default:
			d.lengths[i] = 7
		}
	}
	for i := range numDistances {
		d.lengths[numLiterals+i] = 5
	}
	return d.build(numLiterals, numDistances)
}

// order is that of the lengths of the codes for lengths of codes.
var order = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic makes the tables of the codes that the block describes.
func (d *Decoder) dynamic() bool {
	literals, distances, n := int(257+d.next(5)), int(1+d.next(5)), int(4+d.next(4))
	if literals > numLiterals-2 || distances > numDistances-2 {
		return false
	}
	var lengths [len(order)]uint8
	for _, i := range order[:n] {
		d.refill()
		lengths[i] = uint8(d.next(3))
	}
	const tableBits = 7
	var table [1 << tableBits]entry
	if !build(table[:], tableBits, tableBits, lengths[:], lengthEntry) {
		return false
	}
	for i := 0; i < literals+distances; {
		d.refill()
		e := table[d.bits&(1<<tableBits-1)]
		if e == 0 {
			return false
		}
		d.next(e.size())
		repeated, n := uint8(0), 1
		switch symbol := e.value(); symbol {
		case 16:
			if i == 0 {
				return false
			}
			repeated, n = d.lengths[i-1], int(3+d.next(2))
		case 17:
			n = int(3 + d.next(3))
		case 18:
			n = int(11 + d.next(7))
		default:
			repeated = uint8(symbol)
		}
		if i+n > literals+distances {
			return false
		}
		for range n {
			d.lengths[i] = repeated
			i++
		}
	}
	return d.build(literals, distances)
}

// build makes the tables of a block from its lengths, those of literals first.
func (d *Decoder) build(literals, distances int) bool {
	return build(d.literals[:], literalBits, maxCodeBits, d.lengths[:literals], literalEntry) &&
		build(d.distances[:], distanceBits, maxCodeBits, d.lengths[literals:literals+distances], distanceEntry)
}

// symbols reads the literals and matches of a block, up to its end. The fields of input are variables here, and reading
// bits is written out, so that they stay in registers.
func (d *Decoder) symbols() bool {
	src, at, bits, have := d.src, d.at, d.bits, d.have
	dst, out := d.dst, d.out
	for room := len(dst) - Slack; out <= room; {
		// One symbol, or several short literals, take at most 48 bits.
		if at+wordBytes <= len(src) {
			bits |= binary.LittleEndian.Uint64(src[at:]) << (have & 63)
			at += int((63 - have) >> 3)
			have |= 56
		} else {
			bits, at, have = refillAtEnd(src, at, bits, have)
		}
		e := d.literals[bits&(1<<literalBits-1)]
		if e&isLiteral != 0 { // fast path: literals of at most literalBits each
			for k := 0; k < 3 && e&isLiteral != 0; k++ {
				bits >>= e & 63
				have -= e.size()
				dst[out] = byte(e >> valueShift)
				out++
				e = d.literals[bits&(1<<literalBits-1)]
			}
			continue
		}
		if e&isSubtable != 0 {
			e = d.literals[e.value()+bits>>literalBits&(1<<(maxCodeBits-literalBits)-1)]
		}
		length := int(e.value() + bits&(1<<(e&63)-1)>>(e>>codeShift&15))
		bits >>= e & 63
		have -= e.size()
		if e&isMatch == 0 {
			if e&isLiteral != 0 {
				dst[out] = byte(e >> valueShift)
				out++
				continue
			}
			d.at, d.bits, d.have, d.out = at, bits, have, out
			return e&isEnd != 0
		}
		e = d.distances[bits&(1<<distanceBits-1)]
		if e&isSubtable != 0 {
			e = d.distances[e.value()+bits>>distanceBits&(1<<(maxCodeBits-distanceBits)-1)]
		}
		distance := int(e.value() + bits&(1<<(e&63)-1)>>(e>>codeShift&15))
		bits >>= e & 63
		have -= e.size()
		if e&isMatch == 0 || distance > out {
			return false
		}
		match(dst, out, distance, length)
		out += length
	}
	return false
}

// match copies length bytes from distance before out to out. It can write up to a word more.
func match(dst []byte, out, distance, length int) {
	from, to := dst[out-distance:], dst[out:out+length+wordBytes]
	if distance >= wordBytes {
		for k := 0; k < length; k += wordBytes {
			binary.LittleEndian.PutUint64(to[k:], binary.LittleEndian.Uint64(from[k:]))
		}
		return
	}
	for k := range length {
		to[k] = from[k]
	}
}
