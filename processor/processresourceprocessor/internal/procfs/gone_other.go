// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package procfs

func isNoProcess(error) bool { return false }
