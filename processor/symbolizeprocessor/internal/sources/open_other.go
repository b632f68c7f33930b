// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sources

import "os"

const openFlags = 0

func openFile(root, name string) (*os.File, error) { return openInRoot(root, name) }

func openLink(string) (*os.File, error) { return nil, os.ErrNotExist }
