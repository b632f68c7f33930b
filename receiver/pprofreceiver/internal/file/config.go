// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/worker"
)

// Config configures the reading of files.
type Config struct {
	// Include is a glob; `**` stands for any number of folders.
	Include string `mapstructure:"include"`
	// CollectionInterval is the time between two looks at the folder.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// InitialDelay is the time from the receiver's start to the first look.
	InitialDelay time.Duration `mapstructure:"initial_delay"`
	// Timeout bounds the delivery of one file to the pipeline; 0 sets no bound.
	Timeout time.Duration `mapstructure:"timeout"`
	// Storage is the storage extension that remembers what was read.
	Storage *component.ID `mapstructure:"storage"`
	// AfterRead is what becomes of a file that the pipeline took: keep, delete or move.
	AfterRead string `mapstructure:"after_read"`
	// MoveTo is the folder that read files are moved to.
	MoveTo string `mapstructure:"move_to"`
}

// What becomes of a file that was read.
const (
	AfterReadKeep   = "keep"
	AfterReadDelete = "delete"
	AfterReadMove   = "move"
)

// Validate names every fault.
func (c *Config) Validate() error {
	errs := []error{worker.ValidateIntervals(c.CollectionInterval, c.InitialDelay, c.Timeout)}
	switch {
	case c.Include == "":
		errs = append(errs, errors.New("`include` must be set"))
	case !doublestar.ValidatePathPattern(c.Include):
		errs = append(errs, fmt.Errorf("`include` must be a glob, found %q", c.Include))
	}
	if !slices.Contains([]string{AfterReadKeep, AfterReadDelete, AfterReadMove}, c.AfterRead) {
		errs = append(errs, fmt.Errorf("`after_read` must be keep, delete or move, found %q", c.AfterRead))
	}
	if (c.AfterRead == AfterReadMove) != (c.MoveTo != "") {
		errs = append(errs, fmt.Errorf("`move_to` must be set with `after_read: move` and only then, found %q with %q", c.MoveTo, c.AfterRead))
	}
	return errors.Join(errs...)
}
