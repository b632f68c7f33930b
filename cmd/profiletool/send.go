// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
)

func newSend(term *terminal) *cobra.Command {
	var config clientConfig
	var resource map[string]string
	var retime bool
	var repeat int
	var interval time.Duration
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "send FILE...",
		Short:   "Send profiles to a collector or a backend",
		GroupID: groupNetwork,
		Long: `Send sends each message of its files by OTLP over gRPC or HTTP.

With --retime, times are moved so that the latest of all is now, and profiles without a time get the present one. With
--repeat, everything is sent that many times, --interval apart; with --retime, each time with new times and profile ids.

It exits with 1 if something was not accepted. Nothing is retried.`,
		Example: `  profiletool send --resource service.name=shop --retime cpu.pb.gz
  profiletool send --protocol otlp_http --endpoint https://collector:4318 --header 'authorization=Bearer x' profiles.jsonl`,
		Args: needFile,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if repeat < 1 {
				return errors.New("--repeat must be at least 1")
			}
			messages, err := r.readAll(paths)
			if err != nil {
				return err
			}
			all, err := selectedOf(r, messages)
			if err != nil {
				return err
			}
			for _, pd := range all {
				setResource(pd, resource)
			}
			to, err := config.connect()
			if err != nil {
				return err
			}
			defer to.close()
			s := sending{term: term, to: to, retime: retime}
			for round := range repeat {
				if round > 0 && !await.Sleep(cmd.Context(), interval) {
					break
				}
				s.round(cmd.Context(), all, messages)
			}
			return s.report(cmd.Context())
		},
	}
	config.flags(cmd)
	addPairsFlag(cmd, &resource, "resource", "resource attribute to set, `KEY=VALUE`")
	cmd.Flags().BoolVar(&retime, "retime", false, "move times so that the latest is now")
	cmd.Flags().IntVar(&repeat, "repeat", 1, "how many times to send everything")
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "time between two rounds of --repeat")
	r.flags(cmd)
	return cmd
}

// selectedOf returns the selected part of each message, or an error if nothing is selected of any.
func selectedOf(r *reader, messages []message) ([]pprofile.Profiles, error) {
	all := make([]pprofile.Profiles, len(messages))
	var nothing error
	some := false
	for i, m := range messages {
		var err error
		if all[i], err = r.selected(m); err == nil {
			some = true
		} else if nothing == nil {
			nothing = fmt.Errorf("%s: %w", m.Source, err)
		}
	}
	if !some {
		return nil, nothing
	}
	return all, nil
}

func setResource(pd pprofile.Profiles, attributes map[string]string) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, key := range slices.Sorted(maps.Keys(attributes)) {
			rp.Resource().Attributes().PutStr(key, attributes[key])
		}
	}
}

// sending sends messages and counts what became of them.
type sending struct {
	term   *terminal
	to     sender
	retime bool
	// accepted and refused count messages.
	accepted, refused int
}

func (s *sending) round(ctx context.Context, all []pprofile.Profiles, messages []message) {
	if s.retime {
		retimed(all, time.Now())
	}
	for i, pd := range all {
		if ctx.Err() != nil {
			return
		}
		if pd.ResourceProfiles().Len() == 0 {
			continue // nothing in it was selected
		}
		// Sending moves strings of resources into the dictionary: a copy can be sent again.
		request := pprofile.NewProfiles()
		pd.CopyTo(request)
		if err := s.to.send(ctx, request); err != nil {
			s.refused++
			s.term.logf("%s: not accepted: %v%s", messages[i].Source, err, otherProtocol(err))
			continue
		}
		s.accepted++
	}
}

// otherProtocol names the protocol of a port if an error of gRPC shows that it is HTTP, or the other way round.
func otherProtocol(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "looked like an HTTP/1.1 header"):
		return "; the port speaks HTTP: --protocol otlp_http"
	case strings.Contains(text, `malformed HTTP response "\x00\x00`): // the first frame of HTTP/2
		return "; the port speaks gRPC: --protocol otlp_grpc"
	}
	return ""
}

func (s *sending) report(ctx context.Context) error {
	s.term.logf("%s accepted, %d not", count(s.accepted, "message"), s.refused)
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.refused > 0 {
		return errFound
	}
	return nil
}

// retimed shifts all times by the same duration, so that the latest becomes now, and sets new profile ids: a receiver
// must not mistake a profile that is sent again for a retry.
func retimed(all []pprofile.Profiles, now time.Time) {
	last := uint64(0)
	for _, pd := range all {
		for p := range otlp.Profiles(pd) {
			if p.Time() != 0 {
				last = max(last, uint64(p.Time())+p.DurationNano())
			}
			for _, s := range p.Samples().All() {
				for _, t := range s.TimestampsUnixNano().All() {
					last = max(last, t+1)
				}
			}
		}
	}
	shift := uint64(now.UnixNano()) - last // modulo 2^64, as the additions below
	for _, pd := range all {
		for p := range otlp.Profiles(pd) {
			if p.Time() == 0 {
				p.SetTime(pcommon.Timestamp(uint64(now.UnixNano()) - p.DurationNano()))
			} else {
				p.SetTime(pcommon.Timestamp(uint64(p.Time()) + shift))
			}
			if !p.ProfileID().IsEmpty() {
				var id pprofile.ProfileID
				_, _ = rand.Read(id[:]) // it never fails
				p.SetProfileID(id)
			}
			for _, s := range p.Samples().All() {
				for i, t := range s.TimestampsUnixNano().All() {
					s.TimestampsUnixNano().SetAt(i, t+shift)
				}
			}
		}
	}
}
