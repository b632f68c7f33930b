// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/page"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

func newServe(term *terminal) *cobra.Command {
	var endpoint string
	maxBytes := 1 << 30
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "serve FILE...",
		Short:   "Show files on the page of flame graphs",
		GroupID: groupNetwork,
		Long: `Serve shows files on the page of the exporter profile_store, with its JSON and pprof by URL, until it is interrupted. For the page,
the present is the end of the latest profile, so that "the last hour" is the last hour of the files. Profiles without a
service.name are shown under the name of their file, and profiles without a time under the present.`,
		Args: needFile,
		RunE: func(cmd *cobra.Command, paths []string) error {
			kept, now, err := keep(r, paths, maxBytes)
			if err != nil {
				return err
			}
			listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", endpoint)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), term, listener, api.Settings{
				Store: kept.Querier, Page: page.Files, Version: toolVersion, MaxBytes: maxBytes,
				Limits:      query.Limits{MaxConcurrent: 4, Timeout: time.Minute},
				ReadTimeout: time.Minute, Now: func() time.Time { return now },
			})
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "localhost:4042", "`ADDRESS` to listen on")
	cmd.Flags().IntVar(&maxBytes, "max-bytes", maxBytes, "memory for profiles, in bytes; the oldest ones make room")
	r.flags(cmd)
	return cmd
}

// keep puts files into a store, whose window has room for all of them. now is the end of the latest profile.
func keep(r *reader, paths []string, maxBytes int) (kept *store.Store, now time.Time, err error) {
	if r.at == 0 {
		r.at = pcommon.NewTimestampFromTime(time.Now())
	}
	messages, err := r.readAll(paths)
	if err != nil {
		return nil, now, err
	}
	var selected []pprofile.Profiles
	var failed []error
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, m := range messages {
		var pd pprofile.Profiles
		if pd, err = r.cleaned(m); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", nameOf(m.Path), err))
			continue
		}
		nameServices(pd, baseName(m.Path))
		if err = r.wanted.apply(pd); err != nil {
			continue // another file may match
		}
		selected = append(selected, pd)
		if c := countsOf(pd); c.profiles > 0 {
			first, last = min(first, c.first), max(last, c.last)
		}
	}
	if len(selected) == 0 {
		return nil, now, err
	}
	for _, err := range failed {
		r.term.logf("%v", err)
	}
	now = unixTime(last)
	kept = store.New(store.Config{
		Window: time.Duration(last-first) + time.Hour, Resolution: time.Second, MaxBytes: maxBytes,
	})
	profiles, samples := 0, 0
	for _, pd := range selected {
		added := kept.Add(pd, now)
		profiles, samples = profiles+added.Profiles, samples+added.Samples
	}
	r.term.logf("%s with %s", count(profiles, "profile"), count(samples, "sample"))
	for reason, n := range kept.Stats().Refused {
		if n > 0 {
			r.term.logf("%d not kept: %s", n, model.Refused(reason))
		}
	}
	if profiles == 0 {
		return nil, now, errors.New("there are no profiles to show")
	}
	return kept, now, nil
}

// nameServices names services without a name after their file.
func nameServices(pd pprofile.Profiles, name string) {
	for _, rp := range pd.ResourceProfiles().All() {
		if profilekind.Service(rp.Resource().Attributes()) == profilekind.UnknownService {
			rp.Resource().Attributes().PutStr("service.name", name)
		}
	}
}

func serve(ctx context.Context, term *terminal, listener net.Listener, settings api.Settings) error {
	failed := make(chan error, 1)
	server := httpserver.Start(&http.Server{
		Handler: api.New(settings), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: settings.ServerTimeout(), IdleTimeout: time.Minute,
	}, listener, httpserver.Options{
		Browsers: api.Browsers(nil, ""), OnFailure: func(err error) { failed <- err },
	})
	term.logf("open http://%s/ (interrupt to end)", listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return server.Shutdown(ctx)
	}
}
