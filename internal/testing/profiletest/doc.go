// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profiletest has what the tests of this project share. For OTLP profiles: a Builder and Equal, which compares
// what indices refer to, and the check and the text form of package resolved. For pprof: EqualPprof, and PprofWire for
// raw messages. For any function: its cost in memory and processor time (RequireCost), and whether keys that count
// alike cost more than random ones (RequireCorrelatedKeys). For components: their metadata.yaml and the tables of their
// README. Only tests import it.
//
// A note on pdata: marshalling profiles that are not read-only moves the strings of resource and scope attributes
// into the dictionary and hides them from its own accessors. Check, compare or render before marshalling, or
// mark the profiles read-only first.
package profiletest
