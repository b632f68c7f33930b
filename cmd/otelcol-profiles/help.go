// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/otelcol"
)

// about returns the beginning of --help: the project's own components, and where the others are listed.
func about(info component.BuildInfo, makeFactories func() (otelcol.Factories, error)) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", info.Description)
	if slimNote != "" {
		fmt.Fprintf(&b, "%s\n\n", slimNote)
	}
	b.WriteString("Its own components:\n")
	factories, err := makeFactories()
	if err != nil {
		return b.String() // the collector reports the error
	}
	for _, kind := range []struct {
		name    string
		modules map[component.Type]string
	}{
		{"receivers", factories.ReceiverModules}, {"processors", factories.ProcessorModules},
		{"exporters", factories.ExporterModules}, {"connectors", factories.ConnectorModules},
	} {
		var own []string
		for id := range maps.Keys(kind.modules) {
			if strings.HasPrefix(kind.modules[id], "github.com/otelcol-profiles/") {
				own = append(own, id.String())
			}
		}
		slices.Sort(own)
		fmt.Fprintf(&b, "  %-12s%s\n", kind.name, strings.Join(own, ", "))
	}
	b.WriteString("\n`" + info.Command + " components` lists all of them, with their modules and versions.\n" +
		"profiletool has the same translators for files, at a terminal.")
	return b.String()
}
