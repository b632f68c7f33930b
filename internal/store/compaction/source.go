// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// Source is where profiles come from: a block on disk, or what is in memory. One of its services is read at a time.
type Source interface {
	// Services returns the names of its services, each once.
	Services() []string
	// Step returns the interval of a coarser block, or 0.
	Step() time.Duration
	// Begin begins to read a service. It adds the stacks and the sets of attributes to dict. End ends the reading.
	Begin(service string, dict *dictionary.Dictionary) ([]Series, error)
	End()
}

// Series is a series of a source, with the fields that identify it and, over the dictionary of the new block, its sets
// of attributes.
type Series struct {
	model.BlockSeries
	Labels map[string]string
	// Profiles are those of the series, by start. They end with an error.
	Profiles iter.Seq2[Profile, error]
}

// Profile is a profile over the dictionary of the new block, with its rows.
type Profile struct {
	blockfile.Profile
	Rows iter.Seq2[blockfile.Row, error]
}

// BlockError is an error of a source that is a block on disk.
type BlockError struct {
	Block string
	Err   error
}

func (e *BlockError) Error() string { return fmt.Sprintf("block %s: %s", e.Block, e.Err) }
func (e *BlockError) Unwrap() error { return e.Err }

// FromDisk returns the source that a block on disk is.
func FromDisk(r *blockfile.Reader) Source { return &diskSource{r: r} }

type diskSource struct {
	r       *blockfile.Reader
	scan    *blockfile.Scan
	service *blockfile.Service
	moves   *mover.Mover
	// stacks and sets are how many its dictionary has.
	stacks, sets int
	columns      blockfile.Columns
}

// Services returns the names of its services.
func (d *diskSource) Services() (names []string) {
	for i := range d.r.Services {
		names = append(names, d.r.Services[i].Name)
	}
	return names
}

// Step returns the block's.
func (d *diskSource) Step() time.Duration { return time.Duration(d.r.Step) }

// Begin moves all of the service's dictionary, which is not needed afterwards.
func (d *diskSource) Begin(service string, dict *dictionary.Dictionary) (list []Series, err error) {
	i := slices.IndexFunc(d.r.Services, func(s blockfile.Service) bool { return s.Name == service })
	d.service, d.scan = &d.r.Services[i], d.r.Scan()
	from, err := d.r.Dictionary(d.service)
	if err != nil {
		return nil, d.fault(err)
	}
	d.stacks, d.sets = from.Stacks.Len(), from.AttributeSets.Len()
	series, err := d.r.Series(d.service)
	if err != nil {
		return nil, d.fault(err)
	}
	labels, err := d.r.Labels(d.service)
	if err != nil {
		return nil, d.fault(err)
	}
	d.moves = mover.New(from, dict)
	stacks := make([]dictionary.StackIndex, d.stacks)
	for i := range stacks {
		stacks[i] = dictionary.StackIndex(i)
	}
	d.moves.Stacks(stacks)
	for i := range d.sets {
		d.moves.Set(dictionary.AttributeSetIndex(i))
	}
	d.moves.End()
	for i := range series {
		sr := Series{BlockSeries: series[i], Labels: labels[i], Profiles: d.profiles(&series[i])}
		if sr.IsOutside(d.sets) {
			return nil, d.fault(model.ErrRange)
		}
		sr.Resource, sr.Attributes = d.moves.Set(sr.Resource), d.moves.Set(sr.Attributes)
		list = append(list, sr)
	}
	return list, nil
}

// End ends the reading of the service.
func (d *diskSource) End() {
	d.scan.Close()
	d.moves, d.columns = nil, blockfile.Columns{}
}

func (d *diskSource) fault(err error) error { return &BlockError{d.r.Block, err} }

const (
	// profilesAtOnce and rowsAtOnce are how many are read at once.
	profilesAtOnce = 256
	rowsAtOnce     = 1 << 12
)

// profiles reads those of a series.
func (d *diskSource) profiles(in *model.BlockSeries) iter.Seq2[Profile, error] {
	return func(yield func(Profile, error) bool) {
		list := make([]blockfile.Profile, min(profilesAtOnce, in.Profiles))
		sample := in.FirstSample
		for done := 0; done < in.Profiles; done += len(list) {
			list = list[:min(len(list), in.Profiles-done)]
			first := in.First + int64(done)
			if err := errors.Join(
				d.scan.ProfileTimes(first, list), d.scan.ProfileKinds(first, list), d.scan.ProfileMetas(d.service, first, list),
			); err != nil {
				yield(Profile{}, d.fault(err))
				return
			}
			for _, p := range list {
				if p.Samples < 0 || p.IsOutside(d.sets) {
					yield(Profile{}, d.fault(model.ErrRange))
					return
				}
				d.moves.Meta(&p.Meta)
				if !yield(Profile{p, d.rows(&p, sample)}, nil) {
					return
				}
				sample += int64(p.Samples)
			}
		}
	}
}

// rows reads those of a profile, of which the first is given.
func (d *diskSource) rows(p *blockfile.Profile, first int64) iter.Seq2[blockfile.Row, error] {
	want, samples := model.AllColumns.Of(p.Flags), int(p.Samples)
	return func(yield func(blockfile.Row, error) bool) {
		c := &d.columns
		for done := 0; done < samples; done += rowsAtOnce {
			n, first := min(samples-done, rowsAtOnce), first+int64(done)
			if err := d.scan.Samples(d.service, first, n, want, c); err != nil {
				yield(blockfile.Row{}, d.fault(err))
				return
			}
			for i := range n {
				row := c.Row(i)
				if model.IsOutside(row.Stack, d.stacks) || model.IsOutside(row.Attributes, d.sets) {
					yield(row, d.fault(model.ErrRange))
					return
				}
				d.moves.Key(&row.RowKey.RowKey)
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
