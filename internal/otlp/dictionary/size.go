// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// VarintLen returns the number of bytes of v as a protobuf varint.
func VarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// FieldLen returns the number of bytes of a field of n bytes behind a tag of one byte.
func FieldLen(n int) int { return 1 + VarintLen(uint64(n)) + n }

// EncodedLen returns the number of bytes of the value as an AnyValue message.
func (v Value) EncodedLen() int {
	switch v.kind {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		return FieldLen(len(v.content))
	case pcommon.ValueTypeBool:
		return 2
	case pcommon.ValueTypeInt:
		return 1 + VarintLen(v.bits)
	case pcommon.ValueTypeDouble:
		return 9
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		n, _ := encodedLen(v.content)
		return n
	default:
		return 0
	}
}

// encodedLen returns the number of bytes of the value that appendValue wrote at the start of s as an AnyValue
// message, and the rest of s.
func encodedLen(s string) (n int, rest string) {
	kind, s := pcommon.ValueType(s[0]), s[1:]
	switch kind {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		str, rest := readString(s)
		return FieldLen(len(str)), rest
	case pcommon.ValueTypeInt:
		return 1 + VarintLen(uint64(readInt(s))), s[8:]
	case pcommon.ValueTypeDouble:
		return 9, s[8:]
	case pcommon.ValueTypeBool:
		return 2, s[1:]
	case pcommon.ValueTypeSlice:
		count, s := readCount(s)
		for range count {
			value, rest := encodedLen(s)
			n, s = n+FieldLen(value), rest
		}
		return FieldLen(n), s
	case pcommon.ValueTypeMap:
		count, s := readCount(s)
		for range count {
			key, rest := readString(s)
			value, rest := encodedLen(rest)
			n, s = n+FieldLen(keyLen(key)+FieldLen(value)), rest
		}
		return FieldLen(n), s
	default:
		return 0, s
	}
}

// keyLen returns the number of bytes of an attribute's key; an empty one is not written.
func keyLen(key string) int {
	if key == "" {
		return 0
	}
	return FieldLen(len(key))
}

// The memory of an entry: in its table, in the index that finds it, and as pdata.
const (
	indexBytes     = 16
	stringBytes    = 16 + indexBytes + 16
	functionBytes  = 24 + indexBytes + 48
	mappingBytes   = 64 + indexBytes + 96
	locationBytes  = 32 + indexBytes + 96
	lineBytes      = 24 + 48
	listBytes      = 4 + indexBytes + 40
	memberBytes    = 4 + 4
	linkBytes      = 24 + indexBytes + 48
	attributeBytes = 64 + indexBytes + 88
)

// BuildBytes estimates the memory that the entries take until CopyTo has written them, without strings. It takes no time.
func (d *Dictionary) BuildBytes() int {
	return d.Strings.Len()*stringBytes + d.Functions.Len()*functionBytes + d.Mappings.Len()*mappingBytes +
		d.Locations.Len()*locationBytes + len(d.Locations.lines)*lineBytes + (d.Stacks.Len()+d.AttributeSets.Len())*listBytes +
		(len(d.Stacks.flat)+len(d.AttributeSets.flat))*memberBytes + d.Links.Len()*linkBytes + d.Attributes.Len()*attributeBytes
}

// Bytes estimates the memory of tables with these numbers of entries, before CopyTo.
func (s Sizes) Bytes() int {
	return s.Strings*(16+indexBytes) + s.Functions*(24+indexBytes) + s.Locations*(32+indexBytes) + s.Lines*24 +
		s.Stacks*(4+indexBytes) + s.StackLocations*4
}
