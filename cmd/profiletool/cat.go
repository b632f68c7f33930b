// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

func newCat(term *terminal) *cobra.Command {
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "cat FILE...",
		Short:   "Print profiles as text, with names instead of indices",
		GroupID: groupFiles,
		Long: `Cat prints resources, scopes, profiles and samples, each sample with its values, value@timestamp or @timestamp,
its attributes and its stack, leaf first.`,
		Args: needFile,
		RunE: func(_ *cobra.Command, paths []string) error {
			pd, err := r.readSelected(paths)
			if err != nil {
				return err
			}
			return resolved.Write(term.out, pd)
		},
	}
	r.flags(cmd)
	return cmd
}
