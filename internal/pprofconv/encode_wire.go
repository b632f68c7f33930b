// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import "math/bits"

// Field numbers of the messages in pprof's profile.proto that the encoder writes.
// All are below 16, so that every tag is one byte.
const (
	encProfileSampleType        = 1
	encProfileSample            = 2
	encProfileMapping           = 3
	encProfileLocation          = 4
	encProfileFunction          = 5
	encProfileString            = 6
	encProfileDropFrames        = 7
	encProfileKeepFrames        = 8
	encProfileTimeNanos         = 9
	encProfileDurationNanos     = 10
	encProfilePeriodType        = 11
	encProfilePeriod            = 12
	encProfileComment           = 13
	encProfileDefaultSampleType = 14
	encProfileDocURL            = 15

	encSampleLocationID = 1
	encSampleValue      = 2
	encSampleLabel      = 3

	encLabelKey     = 1
	encLabelStr     = 2
	encLabelNum     = 3
	encLabelNumUnit = 4

	encMappingID              = 1
	encMappingStart           = 2
	encMappingLimit           = 3
	encMappingOffset          = 4
	encMappingFilename        = 5
	encMappingBuildID         = 6
	encMappingHasFunctions    = 7
	encMappingHasFilenames    = 8
	encMappingHasLineNumbers  = 9
	encMappingHasInlineFrames = 10

	encLocationID        = 1
	encLocationMappingID = 2
	encLocationAddress   = 3
	encLocationLine      = 4
	encLocationIsFolded  = 5

	encLineFunctionID = 1
	encLineLine       = 2
	encLineColumn     = 3

	encFunctionID         = 1
	encFunctionName       = 2
	encFunctionSystemName = 3
	encFunctionFilename   = 4
	encFunctionStartLine  = 5
)

// encVarintTag and encBytesTag give a field's tag for the two wire types that pprof uses.
func encVarintTag(field int) byte { return byte(field << 3) }
func encBytesTag(field int) byte  { return byte(field<<3 | 2) }

// encVarintSize is the number of bytes that x takes as a varint.
func encVarintSize(x uint64) int { return (9*bits.Len64(x|1) + 64) / 64 }

func encAppendVarint(b []byte, x uint64) []byte {
	for x >= 0x80 {
		b = append(b, byte(x)|0x80)
		x >>= 7
	}
	return append(b, byte(x))
}

// encAppendUint appends a varint field, or nothing for 0, the value that an absent field has.
func encAppendUint(b []byte, field int, x uint64) []byte {
	if x == 0 {
		return b
	}
	return encAppendVarint(append(b, encVarintTag(field)), x)
}

func encAppendString(b []byte, field int, s string) []byte {
	b = encAppendVarint(append(b, encBytesTag(field)), uint64(len(s)))
	return append(b, s...)
}

// encOpen starts a message field whose length is not known yet; encClose(b, start) ends it.
func encOpen(b []byte, field int) (_ []byte, start int) {
	b = append(b, encBytesTag(field), 0)
	return b, len(b)
}

// encClose writes the length of the message that began at start. One byte was left for it: only a
// message of 128 bytes or more, which here is a location with many inlined lines, has to move.
func encClose(b []byte, start int) []byte {
	size := len(b) - start
	if size < 0x80 {
		b[start-1] = byte(size)
		return b
	}
	extra := encVarintSize(uint64(size)) - 1
	for range extra {
		b = append(b, 0)
	}
	copy(b[start+extra:], b[start:start+size])
	encAppendVarint(b[:start-1], uint64(size))
	return b
}
