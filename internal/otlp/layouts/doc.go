// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package layouts reads OTLP profiles of every wire layout that was ever released and returns the current one.
//
// opentelemetry-proto changed the messages of profiles six times under the name v1development, after a first
// form called v1experimental, and reused field numbers each time. A message does not name its layout.
//
//	Unmarshal          bytes of an export request (or a ProfilesData message) → pprofile.Profiles
//	  Detect           the layout, from field numbers and wire types: detect.go
//	  renumberFields   1.8 and 1.9: the same messages under other numbers, renumbered in place: inplace.go
//	  legacyReader     1.3 to 1.7: read field by field into a dictionary of today's form: legacy.go, legacy_tables.go
//	UnmarshalJSON      the same for JSON: the keys identify the layout, and the text becomes bytes first: json.go
//
// The fields of all layouts are in otlp/messages; all of the above use them.
package layouts
