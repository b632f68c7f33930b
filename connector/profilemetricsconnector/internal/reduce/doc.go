// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package reduce makes sums of one message of profiles: a Reducer reads it, and returns a Result of additions to
// series, and of what each service has of each function. It keeps nothing from one message to the next but a bounded
// cache of the names that patterns match.
//
//   - Reduce visits resources, scopes and profiles; profile determines which metrics a profile is for, in which unit,
//     and whether its values are what happened, a state or a total (otlp/kind). - samples adds up values. A metric
//     without conditions on samples costs nothing for each of them. - conditional finds the series of a sample by what
//     its stack matches (stacks.go) and by its attributes (attributes.go). - functions.go adds up by function, for the
//     hottest ones.
package reduce
