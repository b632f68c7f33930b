// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets finds the processes that the receiver scrapes. Its configuration has the keys of Prometheus, discovery and
// relabelling are Prometheus' own library, and the identity of a target follows from its labels.
//
// One process serves several kinds of profiles, so relabelling runs once for each discovered target and each enabled
// kind, with `__profile_name__` and `__profile_path__` preset. Rules can thus keep, drop, move or delay single kinds.
// The results are grouped again: results of one job that agree in scheme, address, interval and public labels are the
// endpoints of one Target.
package targets
