// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command notice writes NOTICE: the licences of everything that is compiled or embedded into the binary, on any
// platform. The file in git has a table of modules; releases, packages and images have the texts, too.
//
// list asks the go command which packages the binary has, and which files they embed. collect reads the licence files
// of their folders, up to each module's root. classify names each licence; an unknown one is an error. write prints a
// table of modules, and with -texts each text once, with the copyright lines of all modules that use it. writeSBOM
// prints only the table, in a format for programs.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are those whose dependencies are listed.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}

// own begins the modules that are left out.
const own = "github.com/otelcol-profiles/otelcol-profiles"

type options struct {
	folders, tags, version string
	texts                  bool
}

func main() {
	var o options
	flag.StringVar(&o.folders, "C", "cmd/otelcol-profiles", "folders of the main packages, with commas between them")
	flag.StringVar(&o.tags, "tags", "", "build tags, as for the binary")
	flag.StringVar(&o.version, "sbom", "", "write a bill of materials instead, of this version of the program")
	flag.BoolVar(&o.texts, "texts", false, "write the texts of the licences, too")
	flag.Parse()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, o options) error {
	modules := map[string]*module{}
	for _, folder := range strings.Split(o.folders, ",") {
		for _, platform := range platforms {
			if err := list(modules, folder, o.tags, platform); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, m := range modules {
		errs = append(errs, m.collect())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	sorted := slices.SortedFunc(maps.Values(modules), func(a, b *module) int { return cmp.Compare(a.path, b.path) })
	if o.version != "" {
		return writeSBOM(w, filepath.Base(o.folders), o.version, sorted)
	}
	return write(w, header, sorted, o.texts)
}

// module is a module with packages in the binary.
type module struct {
	path, version, root string
	// folders are those of its packages and of the files that they embed.
	folders map[string]bool
	// files are its licences.
	files []licenceFile
}

// licenceFile is a licence's text, where it is in the module, and its identifier in SPDX's list.
type licenceFile struct{ name, spdx, text string }

// goList has the fields of `go list -json` that list uses.
type goList struct {
	Dir, Root  string
	Standard   bool
	EmbedFiles []string
	Module     *struct {
		Path, Version, Dir string
		Replace            *struct{ Path, Version, Dir string }
	}
}

// list adds the modules that the binary has on a platform.
func list(modules map[string]*module, folder, tags, platform string) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	command := exec.Command("go", "list", "-deps", "-tags="+tags, "-json=Dir,Root,Standard,EmbedFiles,Module", ".")
	command.Dir = folder
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=")
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("list packages for %s: %w\n%s", platform, err, &problems)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goList
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m := p.module()
		if m == nil || strings.HasPrefix(m.path, own) {
			continue
		}
		if known := modules[m.path]; known != nil {
			m = known
		}
		modules[m.path] = m
		m.folders[p.Dir] = true
		for _, file := range p.EmbedFiles {
			m.folders[filepath.Dir(filepath.Join(p.Dir, file))] = true
		}
	}
}

// module returns the module of a package, or nil if it has none. The standard library is treated as a module without a
// version: that depends on who builds.
func (p *goList) module() *module {
	switch {
	case p.Standard:
		return &module{path: "Go standard library", root: p.Root, folders: map[string]bool{}}
	case p.Module == nil, p.Module.Replace != nil && strings.HasPrefix(p.Module.Replace.Path, "."):
		return nil // without a module, or replaced by a folder of this project
	}
	m := &module{path: p.Module.Path, version: p.Module.Version, root: p.Module.Dir, folders: map[string]bool{}}
	if p.Module.Replace != nil {
		m.version, m.root = p.Module.Replace.Version, p.Module.Replace.Dir
	}
	return m
}

var licenceName = regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying|^notice`)

// collect reads the licence files of the module's folders and of the folders above them.
func (m *module) collect() error {
	folders := map[string]bool{}
	for folder := range m.folders {
		for strings.HasPrefix(folder, m.root) && !folders[folder] {
			folders[folder] = true
			folder = filepath.Dir(folder)
		}
	}
	for folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !licenceName.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
				continue
			}
			path := filepath.Join(folder, entry.Name())
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(m.root, path)
			if err != nil {
				return err
			}
			spdx := classify(name, string(text))
			if spdx == "" {
				return fmt.Errorf("%s %s: the licence in %s is not known here: read it, and add it to classify", m.path, m.version,
					name)
			}
			m.files = append(m.files, licenceFile{name: filepath.ToSlash(name), spdx: spdx, text: string(text)})
		}
	}
	slices.SortFunc(m.files, func(a, b licenceFile) int { return cmp.Compare(a.name, b.name) })
	if len(m.licences()) == 0 {
		return fmt.Errorf("%s %s has no licence file", m.path, m.version)
	}
	return nil
}

// licences returns the identifiers of the module's licences.
func (m *module) licences() []string {
	var found []string
	for _, file := range m.files {
		if file.spdx != notice && !slices.Contains(found, file.spdx) {
			found = append(found, file.spdx)
		}
	}
	return found
}

// notice is what classify returns for a NOTICE file (Apache License 2.0, section 4d).
const notice = "NOTICE"

// phrases identify licences. The one that comes first in the text decides.
var phrases = []struct{ text, spdx string }{
	{"apache license version 2.0", "Apache-2.0"},
	{"licensed under the apache license", "Apache-2.0"},
	{"gnu general public license version 2", "GPL-2.0"},
	{"mozilla public license version 2.0", "MPL-2.0"},
	{"mozilla public license, version 2.0", "MPL-2.0"},
	{"permission is hereby granted, free of charge, to any person obtaining a copy of this software", "MIT"},
	{"permission to use, copy, modify, and/or distribute this software for any purpose", "ISC"},
	{"permission to use, copy, modify, and distribute this software for any purpose", "ISC"},
	{"neither the name of", "BSD-3-Clause"},
	{"the names of its contributors may not be used", "BSD-3-Clause"},
	{"redistribution and use in source and binary forms", "BSD-2-Clause"},
	{"this is free and unencumbered software released into the public domain", "Unlicense"},
	{"cc0 1.0 universal", "CC0-1.0"},
	{"attribution-sharealike 4.0 international", "CC-BY-SA-4.0"},
}

// classify returns the licence that a file holds, or an empty string.
func classify(name, text string) string {
	if strings.HasPrefix(strings.ToLower(filepath.Base(name)), "notice") {
		return notice
	}
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	found, at := "", len(text)
	for _, phrase := range phrases {
		if i := strings.Index(text, phrase.text); i >= 0 && i < at {
			found, at = phrase.spdx, i
		}
	}
	// Both BSD licences begin alike.
	if found == "BSD-2-Clause" &&
		(strings.Contains(text, "neither the name of") || strings.Contains(text, "names of its contributors may not")) {
		return "BSD-3-Clause"
	}
	return found
}
