// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"encoding/hex"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// linkOf makes a link of the hexadecimal digits of a trace and a span. Half a pair, a zero, or anything else is none.
func linkOf(trace, span string) (link profiledict.Link, ok bool) {
	if !parseID(link.TraceID[:], trace) || !parseID(link.SpanID[:], span) {
		return profiledict.Link{}, false
	}
	return link, true
}

// parseID reads hexadecimal digits, right aligned: Python's agent writes them without leading zeros.
func parseID(id []byte, digits string) bool {
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || len(digits) > 2*len(id) {
		return false
	}
	padded := [32]byte{}
	full := padded[:2*len(id)]
	for i := range len(full) - len(digits) {
		full[i] = '0'
	}
	copy(full[len(full)-len(digits):], digits)
	_, err := hex.Decode(id, full)
	return err == nil
}
