// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import "math/bits"

// entry is what the next bits mean:
//
//	bits 0–7    how many there are of a code and its extra bits
//	bits 8–11   how many there are of the code
//	bits 12–15  what it is: isLiteral, isMatch, isEnd or isSubtable
//	bits 16–31  its value: a byte, the least length or distance, or where the subtable begins
//
// 0 is a code that nobody uses.
type entry uint32

const (
	codeShift  = 8
	isLiteral  = entry(1 << 12)
	isMatch    = entry(1 << 13) // a length or a distance
	isEnd      = entry(1 << 14)
	isSubtable = entry(1 << 15)
	valueShift = 16
)

func (e entry) size() uint    { return uint(e & 0xff) }
func (e entry) value() uint64 { return uint64(e >> valueShift) }

// Codes have up to maxCodeBits. A table has those of up to literalBits or distanceBits; longer ones are in subtables.
const (
	maxCodeBits  = 15
	literalBits  = 11
	distanceBits = 8
	numLiterals  = 288
	numDistances = 32
	// maxSubtables is how many first bits longer codes can have, of which each has two.
	maxSubtables = numLiterals / 2
)

// lengthEntry returns the entry of a symbol of lengths of codes, without the bits of its code.
func lengthEntry(symbol int) entry { return isLiteral | entry(symbol)<<valueShift }

// literalEntry does the same for a symbol of literals and lengths of matches.
func literalEntry(symbol int) entry {
	const first, longest = 257, 285
	switch {
	case symbol < 256:
		return isLiteral | entry(symbol)<<valueShift
	case symbol == 256:
		return isEnd
	case symbol == longest:
		return isMatch | maxMatch<<valueShift
	case symbol > longest:
		return 0
	}
	base, extra := 3, 0
	if k := symbol - first; k < 8 {
		base += k
	} else {
		extra = k/4 - 1
		base += (4 + k%4) << extra
	}
	return isMatch | entry(base)<<valueShift | entry(extra)
}

// distanceEntry does the same for a symbol of distances.
func distanceEntry(symbol int) entry {
	const used = 30
	if symbol >= used {
		return 0
	}
	base, extra := 1+symbol, 0
	if symbol >= 4 {
		extra = symbol/2 - 1
		base = 1 + (2+symbol%2)<<extra
	}
	return isMatch | entry(base)<<valueShift | entry(extra)
}

// build fills a table of the Huffman code in which symbols have these lengths, 0 if they do not occur: with the entries
// of the next tableBits bits, and behind them the subtables. It returns false if there is no such code.
func build(table []entry, tableBits, maxBits uint, lengths []uint8, entryOf func(symbol int) entry) bool {
	var counts, next [maxCodeBits + 2]uint
	for _, n := range lengths {
		counts[n]++
	}
	counts[0] = 0
	code, used := uint(0), uint(0)
	for n := uint(1); n <= maxBits; n++ {
		code = (code + counts[n-1]) << 1
		next[n] = code
		used += counts[n] << (maxBits - n)
	}
	// A code must be complete, but for one of a single symbol, or of none.
	isSingle := used == 0 || used == 1<<(maxBits-1) && counts[1] == 1
	if used != 1<<maxBits && !isSingle {
		return false
	}
	clear(table[:1<<tableBits])
	end := uint(1) << tableBits
	for symbol, length := range lengths {
		n := uint(length)
		if n == 0 {
			continue
		}
		e := entryOf(symbol)
		if e != 0 {
			e += entry(n)<<codeShift + entry(n)
		}
		at := reversed(next[n], n)
		next[n]++
		if n <= tableBits {
			for ; at < 1<<tableBits; at += 1 << n {
				table[at] = e
			}
			continue
		}
		first := &table[at&(1<<tableBits-1)]
		if *first == 0 {
			*first = isSubtable | entry(end)<<valueShift
			end += 1 << (maxBits - tableBits)
		}
		subtable := table[*first>>valueShift:]
		for at >>= tableBits; at < 1<<(maxBits-tableBits); at += 1 << (n - tableBits) {
			subtable[at] = e
		}
	}
	return true
}

// reversed returns the lowest n bits of a code in the order in which they are read.
func reversed(code uint, n uint) uint { return uint(bits.Reverse16(uint16(code)) >> (16 - n)) }
