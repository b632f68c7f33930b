// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
)

// compacted is how the processor dictionary_dedup writes messages.
var compacted = compact.Options{OrderByFrequency: true, CombineSamples: true}

func newMerge(term *terminal) *cobra.Command {
	format := outOTLP
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "merge FILE...",
		Short:   "Write several messages as one, with one compact dictionary",
		GroupID: groupFiles,
		Long: `Merge writes all profiles of its files as one message in the smallest form: equal resources, scopes and samples
combined, each entry of the dictionary once, frequent entries first. Profiles stay apart: "convert -o pprof" adds them up.`,
		Args: needFile,
		RunE: func(_ *cobra.Command, paths []string) error {
			batch, err := gather(r, paths, compacted)
			if err != nil {
				return err
			}
			for part := range batch.Parts() {
				file, err := (&converter{term, format}).one(part.Profiles)
				if err != nil {
					return err
				}
				term.logf("%d profiles, %d samples, %d bytes", part.ProfileCount, part.SampleCount, len(file))
				if _, err := term.out.Write(file); err != nil {
					return err
				}
			}
			return nil
		},
	}
	addFormatFlag(cmd, &format, outOTLP, outJSON)
	r.flags(cmd)
	return cmd
}

func gather(r *reader, paths []string, options compact.Options) (*compact.Batch, error) {
	pd, err := r.readSelected(paths)
	if err != nil {
		return nil, err
	}
	var batch compact.Batch
	batch.Reset(options)
	batch.Consume(pd)
	return &batch, nil
}

func newSplit(term *terminal) *cobra.Command {
	format := outOTLP
	var out string
	var maxBytes int
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "split --max-bytes N FILE...",
		Short:   "Write messages as parts of limited size",
		GroupID: groupFiles,
		Long: `Split writes all profiles of its files as messages of at most --max-bytes each, for a backend with a limit. Each part has
the entries of the dictionary that it needs. Only a part with a single observation, or whose samples share an entry
that is too large, can be larger.

The parts are files part-0001, part-0002 … in the folder --out, or lines of JSON on standard output with -o otlp-json.`,
		Args: needFile,
		RunE: func(_ *cobra.Command, paths []string) error {
			switch {
			case maxBytes <= 0:
				return errors.New("--max-bytes must be positive")
			case out == "" && format != outJSON:
				return errors.New("--out must name a folder: parts of protobuf cannot share standard output")
			}
			options := compacted
			options.MaxBytes, options.MaxGrowth = maxBytes, math.MaxInt32 // parts may repeat as much as the limit takes
			batch, err := gather(r, paths, options)
			if err != nil {
				return err
			}
			return writeParts(term, batch, &converter{term, format}, out)
		},
	}
	cmd.Flags().IntVar(&maxBytes, "max-bytes", 0, "largest size of a part: `N` bytes of protobuf")
	cmd.Flags().StringVar(&out, "out", "", "write the parts to this `FOLDER`")
	addFormatFlag(cmd, &format, outOTLP, outJSON)
	r.flags(cmd)
	return cmd
}

func writeParts(term *terminal, batch *compact.Batch, c *converter, folder string) error {
	if folder != "" {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	n := 0
	for part := range batch.Parts() {
		n++
		bytes := (&pprofile.ProtoMarshaler{}).ProfilesSize(part.Profiles)
		file, err := c.one(part.Profiles)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("part %d", n)
		if folder == "" {
			_, err = term.out.Write(file)
		} else {
			name = filepath.Join(folder, fmt.Sprintf("part-%04d%s", n, extensions[c.format]))
			err = os.WriteFile(name, file, 0o644)
		}
		if err != nil {
			return err
		}
		oversized := ""
		if part.Oversized {
			oversized = ", larger than --max-bytes: it is a single observation"
		}
		term.logf("%s: %d profiles, %d samples, %d bytes%s", name, part.ProfileCount, part.SampleCount, bytes, oversized)
	}
	return nil
}
