// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const mit = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software\nand so on."

// newModule returns a module of whose packages the binary has the one in the folder `below`.
func newModule(t *testing.T, path string, files map[string]string) *module {
	t.Helper()
	m := &module{path: path, version: "v1.0.0", root: t.TempDir(), folders: map[string]bool{}}
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(m.root, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o600))
	}
	m.folders[filepath.Join(m.root, "below")] = true
	return m
}

// collect reads the licences of a package's folder and of the folders above it, but not of those beside it.
func TestCollect(t *testing.T) {
	m := newModule(t, "example.com/a", map[string]string{
		"LICENSE": "Apache License\nVersion 2.0, January 2004", "NOTICE": "Thanks.",
		"below/COPYING":  "GNU GENERAL PUBLIC LICENSE\n Version 2, June 1991",
		"beside/LICENSE": "nobody knows", "below/license.go": "package below",
	})
	require.NoError(t, m.collect())
	require.Equal(t, []string{"Apache-2.0", "GPL-2.0"}, m.licences())
	require.Len(t, m.files, 3)
}

func TestUnknownLicence(t *testing.T) {
	m := newModule(t, "example.com/a", map[string]string{"LICENSE": mit, "below/LICENSE": "nobody knows"})
	require.ErrorContains(t, m.collect(), "example.com/a v1.0.0: the licence in below/LICENSE is not known here")
	m = newModule(t, "example.com/a", map[string]string{"NOTICE": "Thanks.", "below/doc.go": ""})
	require.ErrorContains(t, m.collect(), "example.com/a v1.0.0 has no licence file")
}

// The bill names each module as package managers do, with its licences.
func TestSBOM(t *testing.T) {
	a := newModule(t, "example.com/a", map[string]string{"LICENSE": mit, "below/doc.go": ""})
	std := newModule(t, "Go standard library", map[string]string{"LICENSE": mit, "below/doc.go": ""})
	std.version = ""
	for _, m := range []*module{a, std} {
		require.NoError(t, m.collect())
	}
	var out strings.Builder
	require.NoError(t, writeSBOM(&out, "program", "1.2.3", []*module{a, std}))
	mitAlone := `"licenses": [{"license": {"id": "MIT"}}]`
	require.JSONEq(t, `{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": {"component": {"type": "application", "name": "program", "version": "1.2.3", "licenses": [{"license": {"id": "Apache-2.0"}}]}},
		"components": [
			{"type": "library", "name": "example.com/a", "version": "v1.0.0", "purl": "pkg:golang/example.com/a@v1.0.0", `+mitAlone+`},
			{"type": "library", "name": "Go standard library", `+mitAlone+`}]}`, out.String())
}

// Texts that differ only in copyright lines are printed once, with all of these lines.
func TestWrite(t *testing.T) {
	var modules []*module
	for name, author := range map[string]string{"a": "Copyright (c) 2020 Ann",
		"b": "Copyright 2021 Bob. All rights reserved."} {
		modules = append(modules, newModule(t, name, map[string]string{"LICENSE": author + "\n\n" + mit, "below/doc.go": ""}))
	}
	for _, m := range modules {
		require.NoError(t, m.collect())
	}
	var out strings.Builder
	require.NoError(t, write(&out, "header", modules, false))
	require.NotContains(t, out.String(), "Permission")
	out.Reset()
	require.NoError(t, write(&out, "header", modules, true))
	require.Equal(t, 1, strings.Count(out.String(), "Permission is hereby granted"))
	require.Contains(t, out.String(), "a (LICENSE)\n  Copyright (c) 2020 Ann\n")
	require.Contains(t, out.String(), "b (LICENSE)\n  Copyright 2021 Bob. All rights reserved.\n")
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		"Redistribution and use in source and binary forms":                      "BSD-2-Clause",
		"Redistribution and use in source and binary forms, Neither the name of": "BSD-3-Clause",
		mit: "MIT", "do what you like": "",
		// The first licence in the text is that of the file: the MPL names others.
		"Mozilla Public License Version 2.0 ... GNU General Public License, Version 2.0": "MPL-2.0",
	} {
		require.Equal(t, want, classify("LICENSE", text))
	}
	require.Equal(t, notice, classify("below/NOTICE.txt", "anything"))
}

// The programs that the binary loads into the kernel are under another licence than the rest.
func TestNoticeListsGPL(t *testing.T) {
	text, err := os.ReadFile("../../../NOTICE")
	require.NoError(t, err)
	require.Regexp(t, `\ngo.opentelemetry.io/ebpf-profiler v[0-9.]+: Apache-2.0, GPL-2.0\n`, string(text))
}
