// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

func newStore(term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "List and check the blocks of a store's directory",
		GroupID: groupFiles,
		Long: `Store reads the directory in which a collector keeps profiles (storage.directory of the exporter profile_store). The collector may be
running: what it has in memory and in its log becomes a block within an hour. The reports read profiles of a directory
by -store=DIR, and write them as one: pprof -proto -output=shop.pb.gz -store=DIR -service=shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, c := range []struct {
		use, short string
		run        func(*terminal, *store.Store) error
	}{
		{"ls DIR", "List the blocks", listBlocks},
		{"check DIR", "Read all blocks and compare their checksums", checkBlocks},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: c.use, Short: c.short, Args: needDirectory,
			RunE: func(_ *cobra.Command, args []string) error {
				return withStore(term, args[0], func(s *store.Store) error { return c.run(term, s) })
			},
		})
	}
	return cmd
}

func needDirectory(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one directory: storage.directory of the exporter profile_store, found %d", len(args))
	}
	return nil
}

// withStore opens a directory without changing it, and closes it after use.
func withStore(term *terminal, directory string, use func(*store.Store) error) error {
	s := store.New(store.Config{
		Window: math.MaxInt64, Resolution: 10 * time.Second, MaxBytes: 1 << 30, MaxSeries: 1,
		Disk: store.DiskConfig{Directory: directory, Retention: math.MaxInt64, ReadOnly: true,
			Report: func(message string, err error) {
				term.logf("profiletool: %s: %v", message, err)
			}},
	})
	if err := s.Open(); err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	return use(s)
}

func listBlocks(term *terminal, s *store.Store) error {
	w := tabwriter.NewWriter(term.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "block\tfrom\tuntil\tservices\tprofiles\tsamples\tbytes\tstep")
	for _, b := range s.Blocks() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", b.Block, shownTime(b.From), shownTime(b.Until), len(b.Services),
			b.ProfileCount, b.SampleCount, b.Bytes(), time.Duration(b.Step))
	}
	return w.Flush()
}

func shownTime(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339) }

func checkBlocks(term *terminal, s *store.Store) error {
	damaged := s.Stats().Damaged
	for _, b := range s.Blocks() {
		if err := b.Check(); err != nil {
			damaged++
			term.logf("profiletool: %s: %v", b.Block, err)
		}
	}
	term.logf("%s, %d damaged", count(len(s.Blocks())+s.Stats().Damaged, "block"), damaged)
	if damaged > 0 {
		return errFound
	}
	return nil
}

// readStored returns the selected profiles of a store's directory, merged: process_cpu of the only service, unless
// others are wanted. Those from before since are left out, unless it is 0.
func (r *reader) readStored(directory string, since time.Duration) (p *profile.Profile, err error) {
	sel := model.Selection{Service: profilekind.CutName(r.wanted.service), // as it is kept
		Profile: profilekind.CutName(r.wanted.profile), Type: r.wanted.sampleType}
	if since > 0 {
		sel.From = time.Now().Add(-since).UnixNano()
	}
	ctx := cmp.Or(r.term.ctx, context.Background())
	err = withStore(r.term, directory, func(s *store.Store) (err error) {
		defer func() {
			if err == nil {
				r.term.logf("profiletool: %s", whatIsOnDisk(s, &sel))
			} else {
				err = fmt.Errorf("%w (%s)", err, whatIsOnDisk(s, &sel))
			}
		}()
		if err := complete(ctx, s, &sel); err != nil {
			return err
		}
		merged, err := s.Merge(ctx, sel)
		if err != nil {
			return err
		}
		encoded, _, err := encode.Encode(merged.Profiles)
		if err == nil && len(encoded) != 1 {
			err = errors.New("nothing is selected")
		}
		if err == nil {
			p, err = profile.ParseUncompressed(encoded[0].Bytes)
		}
		return err
	})
	return p, err
}

// whatIsOnDisk names the time for which a directory has profiles, and how to ask for what is newer.
func whatIsOnDisk(s *store.Store, sel *model.Selection) string {
	var from, until int64
	for i, b := range s.Blocks() {
		if i == 0 {
			from = b.From
		}
		from, until = min(from, b.From), max(until, b.Until)
	}
	service, profile := cmp.Or(sel.Service, "SERVICE"), cmp.Or(sel.Profile, "process_cpu")
	newer := fmt.Sprintf(
		"newer ones, up to an hour, are in the memory of the collector that writes there, if one runs; ask its page: "+
			"profiletool top 'http://localhost:4042/profiles/%s/%s?seconds=3600'", url.PathEscape(service),
		url.PathEscape(profile))
	if until == 0 {
		return "the directory has no profiles yet; " + newer
	}
	return fmt.Sprintf("the directory has profiles from %s to %s; %s", shownTime(from), shownTime(until), newer)
}

// complete chooses the service and the profile, if the selection names none.
func complete(ctx context.Context, s *store.Store, sel *model.Selection) error {
	services, err := s.Services(ctx, nil)
	if err != nil {
		return err
	}
	if len(services) == 0 {
		return model.ErrNothing
	}
	if sel.Service == "" {
		if len(services) != 1 {
			return fmt.Errorf("choose one of %d services by -service: %s", len(services), namesOf(services))
		}
		sel.Service = services[0].Service
	}
	if sel.Profile != "" {
		return nil
	}
	profiles, err := s.Catalog(ctx, sel.Service, nil)
	if err != nil {
		return err
	}
	if len(profiles) == 0 {
		return fmt.Errorf("there is no service %q; there are %s", sel.Service, namesOf(services))
	}
	sel.Profile = profiles[mainOf(profiles,
		func(p answers.ProfileInfo) candidate { return candidate{kind: kind{Profile: p.Profile}} })].Profile
	return nil
}

func namesOf(services []answers.ServiceInfo) (names string) {
	const most = 20
	for i, s := range services {
		switch {
		case i == most:
			return names + ", …"
		case i > 0:
			names += ", "
		}
		names += model.Shorten(s.Service)
	}
	return names
}
