// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build quickstart

package main

const slimNote = "This build has what config/quickstart.yaml needs: `make run CONFIG=FILE` builds what another file needs, `make build` everything."
