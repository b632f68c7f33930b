// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets finds the processes that the receiver scrapes. Its configuration has the keys of Prometheus,
// discovery and relabelling are Prometheus' own library, and the identity of a target follows from its labels.
//
// One process serves several kinds of profiles, so relabelling runs once for each discovered target and each enabled
// kind, with `__profile_name__` and `__profile_path__` preset. Rules can thus keep, drop, move or delay single kinds.
// The results are grouped again: results of one job that agree in scheme, address, interval and public labels are the
// endpoints of one Target.
//
// Manager takes the place of Prometheus' discovery.Manager, which looks for changes ten times a second while there are
// none: an idle collector would take 3 ms of processor time a second for it, and wake up 45 times. With a longer
// interval it sees changes that much later. It also logs configurations that cannot work, where Manager returns them,
// so that the collector does not start.
package targets
