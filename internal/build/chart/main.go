// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command chart prints the objects of config/kubernetes as a template of the Helm chart. Kustomize builds them with
// each choice of components, and the lines that only some choices have get a condition.
package main

import (
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// options are the components in the order of the overlays, and the values of the chart that choose them.
var options = []struct{ component, variable, value string }{
	{"gateway", "$gateway", `eq .mode "gateway"`},
	{"page", "$page", `eq .mode "page"`},
	{"gateway-volumes", "$volumes", `and $gateway .gateway.volumes`},
	{"backend-token", "$token", `and .backend.token (ne .mode "page")`},
	{"secure-ports", "$securePorts", `.securePorts`},
	{"host-ports", "$hostPorts", `.hostPorts`},
	{"ebpf", "$ebpf", `.ebpf`},
}

// choice has a bit for each option.
type choice int

const gateway, page, volumes, token choice = 1, 2, 4, 8

// choices returns those that the values of the options allow.
func choices() (all []choice) {
	for c := range choice(1 << len(options)) {
		if (c&page == 0 || c&(gateway|token) == 0) && (c&gateway != 0 || c&volumes == 0) {
			all = append(all, c)
		}
	}
	return all
}

// line is a line of an object, with the choices that have it.
type line struct {
	text    string
	choices []choice
}

func main() {
	objects := map[string][]line{}
	for _, c := range choices() {
		built, err := build(c)
		if err != nil {
			log.Fatal(err)
		}
		for name, text := range built {
			objects[name] = merge(objects[name], strings.Split(text, "\n"), c)
		}
	}
	fmt.Print("{{- /* Generated from config/kubernetes by `make generate`. */}}\n{{- define \"manifests\" }}\n")
	for _, option := range options {
		fmt.Printf("{{- %s := %s }}\n", option.variable, option.value)
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		fmt.Print(format(objects[name]))
	}
	fmt.Print("{{- end }}\n")
}

// build returns the objects with the chosen components, by their kinds and names.
func build(c choice) (map[string]string, error) {
	folder := filepath.Join("bin", "chart")
	text := "resources: [../../config/kubernetes/base]\ncomponents:\n"
	for i, option := range options {
		if c>>i&1 == 1 {
			text += "- ../../config/kubernetes/components/" + option.component + "\n"
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, object := range built.Resources() {
		if name := object.GetName(); object.GetKind() == "ConfigMap" {
			names = append(names, name, name[:len(name)-len("-0123456789")])
		}
	}
	withoutHash, objects := strings.NewReplacer(names...), map[string]string{}
	for _, object := range built.Resources() {
		id := withoutHash.Replace(object.GetKind() + " " + object.GetName())
		objects[id] = withoutHash.Replace("---\n" + strings.TrimSpace(object.MustYaml()))
	}
	return objects, nil
}

// merge adds the lines of a choice to those of the choices before.
func merge(merged []line, text []string, c choice) (result []line) {
	before := make([]string, len(merged))
	for i, line := range merged {
		before[i] = line.text
	}
	for _, op := range difflib.NewMatcherWithJunk(before, text, false, nil).GetOpCodes() {
		for _, old := range merged[op.I1:op.I2] {
			if op.Tag == 'e' {
				old.choices = append(old.choices, c)
			}
			result = append(result, old)
		}
		if op.Tag != 'e' {
			for _, added := range text[op.J1:op.J2] {
				result = append(result, line{added, []choice{c}})
			}
		}
	}
	return result
}

// format returns an object within the condition of its first line.
func format(lines []line) string {
	var object, block string
	within := lines[0].choices
	for i, line := range lines {
		block += line.text + "\n"
		if i+1 == len(lines) || !slices.Equal(line.choices, lines[i+1].choices) {
			object += conditional(block, line.choices, within)
			block = ""
		}
	}
	return conditional(object, within, choices())
}

// conditional returns a block for some of the possible choices.
func conditional(block string, some, possible []choice) string {
	if len(some) == len(possible) {
		return block
	}
	var terms []string
	for remaining := some; len(remaining) > 0; {
		// A term has the options of one of the choices, but for those without which it still excludes all other choices.
		first, relevant := remaining[0], choice(1<<len(options)-1)
		matches := func(c choice) bool { return (c^first)&relevant == 0 }
		var literals []string
		for i, option := range options {
			relevant &^= 1 << i
			if !slices.ContainsFunc(possible, func(c choice) bool { return matches(c) && !slices.Contains(some, c) }) {
				continue
			}
			relevant |= 1 << i
			if first>>i&1 == 1 {
				literals = append(literals, option.variable)
			} else {
				literals = append(literals, "(not "+option.variable+")")
			}
		}
		terms = append(terms, call("and", literals))
		remaining = slices.DeleteFunc(slices.Clone(remaining), matches)
	}
	return fmt.Sprintf("{{- if %s }}\n%s{{- end }}\n", call("or", terms), block)
}

// call returns a function's call. A function of one argument returns it.
func call(function string, arguments []string) string {
	if len(arguments) == 1 {
		return arguments[0]
	}
	return "(" + function + " " + strings.Join(arguments, " ") + ")"
}
