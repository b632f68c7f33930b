// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"
)

// sbom is a software bill of materials in CycloneDX 1.5: the program, and each module of which it has packages.
type sbom struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

type component struct {
	Type     string    `json:"type"`
	Name     string    `json:"name"`
	Version  string    `json:"version,omitempty"`
	PURL     string    `json:"purl,omitempty"`
	Licenses []license `json:"licenses"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

// writeSBOM writes the bill of a program. It has neither a time nor a serial number, so that the same modules result in
// the same bytes.
func writeSBOM(w io.Writer, name, version string, modules []*module) error {
	bill := sbom{Format: "CycloneDX", Spec: "1.5", Version: 1, Components: []component{}}
	bill.Metadata.Component = component{Type: "application", Name: name, Version: version,
		Licenses: licensesOf([]string{"Apache-2.0"})}
	for _, m := range modules {
		c := component{Type: "library", Name: m.path, Version: m.version, Licenses: licensesOf(m.licences())}
		if !strings.Contains(m.path, " ") { // the standard library is not a module
			c.PURL = "pkg:golang/" + m.path + "@" + m.version
		}
		bill.Components = append(bill.Components, c)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(bill)
}

func licensesOf(ids []string) []license {
	all := make([]license, len(ids))
	for i, id := range ids {
		all[i].License.ID = id
	}
	return all
}
