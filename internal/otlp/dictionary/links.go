// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// LinkIndex is an index of the link table. 0 is no link.
type LinkIndex int32

// Link is an entry of the link table: a trace and a span.
type Link struct {
	TraceID pcommon.TraceID
	SpanID  pcommon.SpanID
}

// ParseLink parses the hexadecimal digits of a trace id and a span id. ok is false if one of them is zero or malformed.
func ParseLink(trace, span string) (link Link, ok bool) {
	if !parseID(link.TraceID[:], trace) || !parseID(link.SpanID[:], span) {
		return Link{}, false
	}
	return link, true
}

// parseID reads hexadecimal digits, aligned to the right: agents pad differently with zeros.
func parseID(id []byte, digits string) bool {
	const longest = 128 // a payload can refer to a long string many times
	if len(digits) > longest {
		return false
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || len(digits) > 2*len(id) {
		return false
	}
	var padded [32]byte
	full := padded[:2*len(id)]
	for i := range full {
		full[i] = '0'
	}
	copy(full[len(full)-len(digits):], digits)
	_, err := hex.Decode(id, full)
	return err == nil
}

// Links is the link table.
type Links struct{ Table[LinkIndex, Link] }

// Intern returns the index of l and adds it if it is new.
func (t *Links) Intern(l Link) LinkIndex {
	h := Mix(binary.LittleEndian.Uint64(l.TraceID[:8]), binary.LittleEndian.Uint64(l.TraceID[8:]))
	return t.Table.Intern(Mix(h, binary.LittleEndian.Uint64(l.SpanID[:])), l)
}
