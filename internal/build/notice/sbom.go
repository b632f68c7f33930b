// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
)

type object = map[string]any

// writeSBOM writes the software bill of materials of a program in CycloneDX 1.5: the program, and each module of which
// it has packages. It has neither a time nor a serial number, so that the same modules result in the same bytes.
func writeSBOM(w io.Writer, name, version string, modules []*module) error {
	components := []object{}
	for _, m := range modules {
		c := object{"type": "library", "name": m.path, "licenses": licensesOf(m.licences()...)}
		if m.version != "" { // the standard library is not a module
			c["version"], c["purl"] = m.version, "pkg:golang/"+m.path+"@"+m.version
		}
		components = append(components, c)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components,
		"metadata": object{"component": object{
			"type": "application", "name": name, "version": version, "licenses": licensesOf("Apache-2.0"),
		}},
	})
}

func licensesOf(ids ...string) []object {
	all := make([]object, len(ids))
	for i, id := range ids {
		all[i] = object{"license": object{"id": id}}
	}
	return all
}
