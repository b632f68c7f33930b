// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

func newCheck(term *terminal) *cobra.Command {
	allow := []struct {
		flag, usage string
		option      resolved.CheckOption
		on          bool
	}{
		{"allow-duplicates", "accept tables that hold an entry twice", resolved.AllowDuplicates, false},
		{"allow-orphans", "accept entries that nothing refers to", resolved.AllowOrphans, false},
		{"allow-repeated-samples", "accept several samples of one identity", resolved.AllowRepeatedSamples, false},
	}
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "check FILE...",
		Short:   "Check that OTLP profiles keep the rules of the format",
		GroupID: groupFiles,
		Long: `Check lists every fault of OTLP profiles with its path, one on each line, and exits with 1 if there is one. An
older layout is upgraded first.

The rules: indices in range; entry 0 of each table its zero value; no resource or scope without profiles; no entry
twice, and none without a reference to it;
attribute keys once in a list; memory_start below memory_limit; lines, columns and ids that are valid;
one value, or as many values as timestamps, or timestamps alone, and the same for all samples of a profile; timestamps
within the profile's time; no two samples of one identity; strings in UTF-8; an original payload only with its format.

Mappings without a build id are a warning, which does not change the exit code.`,
		Example: `  profiletool check profiles.jsonl
  profiletool check --allow-orphans --allow-duplicates captured.otlp`,
		Args: needFile,
		RunE: func(_ *cobra.Command, paths []string) error {
			options := []resolved.CheckOption{resolved.RequireProfiles}
			for _, a := range allow {
				if a.on {
					options = append(options, a.option)
				}
			}
			messages, err := r.readAll(paths)
			if err != nil {
				return err
			}
			return check(term, messages, options)
		},
	}
	for i := range allow {
		cmd.Flags().BoolVar(&allow[i].on, allow[i].flag, false, allow[i].usage)
	}
	return cmd
}

func check(term *terminal, messages []message, options []resolved.CheckOption) error {
	found := false
	for _, m := range messages {
		of := ""
		if m.Format != formats.OTLP && m.Format != formats.OTLPJSON {
			of = ", as converted from " + string(m.Format)
		}
		for _, warning := range resolved.Warnings(m.Profiles) {
			term.logf("%s: warning: %s", m.Source, warning)
		}
		err := resolved.Check(m.Profiles, options...)
		if err == nil {
			term.logf("%s: conformant%s", m.Source, of)
			continue
		}
		found = true
		for fault := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(term.out, "%s: %s\n", m.Source, fault)
		}
		term.logf("%s: not conformant%s", m.Source, of)
	}
	if found {
		return errFound
	}
	return nil
}
