// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
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
		name string
		own  []string
	}{
		{"receivers", own(factories.Receivers, factories.ReceiverModules)},
		{"processors", own(factories.Processors, factories.ProcessorModules)},
		{"exporters", own(factories.Exporters, factories.ExporterModules)},
		{"connectors", own(factories.Connectors, factories.ConnectorModules)},
		{"extensions", own(factories.Extensions, factories.ExtensionModules)},
	} {
		if len(kind.own) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %-12s%s\n", kind.name, strings.Join(kind.own, ", "))
	}
	b.WriteString("\n`" + info.Command + " components` lists all of them, with their modules and versions.\n" +
		"profiletool has the same translators for files, at a terminal.")
	return b.String()
}

// own returns the names of the project's components, without other names that they are also known by.
func own[F component.Factory](factories map[component.Type]F, modules map[component.Type]string) (names []string) {
	for id, factory := range factories {
		if factory.Type() == id && strings.HasPrefix(modules[id], "github.com/otelcol-profiles/") {
			names = append(names, id.String())
		}
	}
	slices.Sort(names)
	return names
}
