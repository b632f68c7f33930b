// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlp is the door to what OTLP profiles are. dictionary has the tables and interns, compact imports,
// deduplicates and splits messages, layouts reads old layouts of the format, resolved checks its rules, size measures
// messages as pdata before they are built, kind names services and kinds of profiles, and wire reads the fields of
// protobuf messages. The package itself iterates over the profiles of a message and
// their attributes, and makes ids of their content.
package otlp

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Profiles returns all profiles of a message in order. Nothing may be added or removed meanwhile.
func Profiles(pd pprofile.Profiles) iter.Seq[pprofile.Profile] {
	return func(yield func(pprofile.Profile) bool) {
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// StringAt returns a string of a dictionary, or "" if its index is out of range.
func StringAt(d pprofile.ProfilesDictionary, i int32) string {
	if table := d.StringTable(); uint(i) < uint(table.Len()) { // a negative index is a huge one
		return table.At(int(i))
	}
	return ""
}

// Attributes returns the keys and values of attributes by their indices, without those that are out of range.
func Attributes(d pprofile.ProfilesDictionary, indices pcommon.Int32Slice) iter.Seq2[string, pcommon.Value] {
	return func(yield func(string, pcommon.Value) bool) {
		table := d.AttributeTable()
		for k := range indices.Len() {
			if i := indices.At(k); uint(i) < uint(table.Len()) {
				if a := table.At(int(i)); !yield(StringAt(d, a.KeyStrindex()), a.Value()) {
					return
				}
			}
		}
	}
}
