// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package collectortest has what the tests of components share. Only tests import it.
//
//   - In the test's process: LoadConfig and LoadYAML read a section of a configuration, Sum reads a metric, and
//     Defaults and CheckDefaults compare a README with a configuration. - StartProgram starts a program that tests
//     profile. - As a process of its own: Binary builds the collector once, FreeAddress finds ports for it, Start
//     starts it, and Terminate or Kill end it.
package collectortest
