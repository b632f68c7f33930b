// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/safestorage"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
)

// run replaces the one in main_others.go, which `make generate` removes. It runs the collector so that signals work
// from the start and so that it stops in time (internal/service/shutdown), that queues lose nothing while the disk is
// full and log what is so (internal/service/safestorage), and that what it receives fits into its memory
// (internal/service/budget).
func run(set otelcol.CollectorSettings) error {
	signals := shutdown.Listen()
	timeout, err := shutdown.Timeout()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return err
	}
	late := func() {
		fmt.Fprintf(os.Stderr, "Error: the collector did not stop in time (%s=%s)\n", shutdown.Variable, timeout)
		os.Exit(1)
	}
	signals.Forward(timeout, late)

	values := addConverters(&set)

	limit := shutdown.NewLimit(timeout, late)
	var storages safestorage.Storages
	makeFactories := set.Factories
	// The service asks for factories when it starts, and each time when the configuration is reloaded.
	set.Factories = func() (otelcol.Factories, error) {
		factories, err := makeFactories()
		limit.Renew()
		factories.Receivers = limit.Receivers(factories.Receivers)
		factories.Processors = limit.Processors(factories.Processors)
		factories.Connectors = limit.Connectors(factories.Connectors)
		factories.Exporters = limit.Exporters(factories.Exporters, &storages)
		factories.Extensions = storages.Factories(factories.Extensions)
		factories.Telemetry = lenient(factories.Telemetry)
		return factories, err
	}

	command := otelcol.NewCommand(set)
	command.Long = strings.TrimSpace(set.BuildInfo.Description+". "+slimNote) + "\n\n`" + set.BuildInfo.Command +
		" components` lists what it has, with modules and versions. " +
		"profiletool has the same translators for files, at a terminal."
	for _, other := range command.Commands() {
		other.PreRun = func(*cobra.Command, []string) { signals.Stop() }
	}
	if err := command.Execute(); err != nil {
		switch text := err.Error(); {
		case strings.Contains(text, `unknown type: "batch"`):
			fmt.Fprintln(os.Stderr, "The processor batch does not support profiles: dictionary_dedup makes the batches.")
		case slimNote != "" && strings.Contains(text, "unknown type"):
			fmt.Fprintln(os.Stderr, slimNote)
		}
		for _, line := range values.Explain(err.Error()) {
			fmt.Fprintln(os.Stderr, line)
		}
		return err
	}
	if err := limit.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return err
	}
	return nil
}
