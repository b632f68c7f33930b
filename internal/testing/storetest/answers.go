// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pprofencode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// History sends profiles of all kinds to stores, with random values: some instances come and go, and some processes
// restart.
type History struct {
	Rand *rand.Rand
	// Strings makes all attributes strings: some engines have no others.
	Strings bool
	totals  map[string]int64
}

// Send sends what happened in ten seconds.
func (h *History) Send(now time.Time, add ...func(pd pprofile.Profiles, arrived time.Time)) {
	if h.totals == nil {
		h.totals = map[string]int64{}
	}
	attribute := func(n int) any {
		if h.Strings {
			return strconv.Itoa(n)
		}
		return int64(n)
	}
	for _, service := range []string{"shop", "cart"} {
		for pod := range 3 {
			if h.Rand.IntN(10) == 0 {
				continue
			}
			id := fmt.Sprint(service, pod)
			if h.Rand.IntN(50) == 0 {
				clear(h.totals)
			}
			h.totals[id] += 1 + h.Rand.Int64N(50_000)
			start := uint64(now.UnixNano())
			stack := func() profiletest.Sample {
				s := profiletest.Value(1000*h.Rand.Int64N(1000), fmt.Sprint("leaf", h.Rand.IntN(20)), service, "main")
				if h.Rand.IntN(3) == 0 {
					s = s.With(profiletest.Attr("endpoint", fmt.Sprint("/", h.Rand.IntN(3))))
				}
				if h.Rand.IntN(5) == 0 {
					s = s.Linked([16]byte{byte(h.Rand.IntN(3)), 1}, [8]byte{2})
				}
				return s
			}
			b := profiletest.New().Resource("service.name", service, "service.instance.id", fmt.Sprint(pod), "version",
				attribute(h.Rand.IntN(2))).
				Profile("cpu", "nanoseconds").Time(start, 10e9).Sample(stack(), stack(), stack()).
				Profile("inuse_space", "bytes").Time(start, 0).Sample(stack(), stack()).
				Profile("alloc_space", "bytes").Time(start, 0).Sample(profiletest.Value(h.totals[id], "leaf1", service, "main")).
				Profile("off_cpu", "nanoseconds").Time(start, 10e9).
				Sample(profiletest.Observed([]uint64{start + 1e9, start + 3e9}, "wait", "main").
					With(profiletest.Attr("thread.id", attribute(h.Rand.IntN(2)))))
			pd := b.Build()
			for _, add := range add {
				add(pd, now.Add(10*time.Second))
			}
		}
	}
}

// Answers are what a source returns to many queries, as text.
func Answers(t testing.TB, source answers.Source, from, until int64) string {
	t.Helper()
	var out strings.Builder
	s := answers.NewQuerier(source)
	services, err := s.Services(t.Context(), nil)
	require.NoError(t, err)
	fmt.Fprintln(&out, services)
	profiles, err := s.Catalog(t.Context(), "", nil)
	require.NoError(t, err)
	// Some engines do not know the order of a pprof's types.
	slices.SortStableFunc(profiles, func(a, b answers.ProfileInfo) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Profile, b.Profile),
			strings.Compare(a.Type.Type, b.Type.Type))
	})
	for _, in := range profiles {
		in.Bytes, in.Instances = 0, 0
		fmt.Fprintln(&out, in)
		for _, sel := range []model.Selection{
			{From: from, Until: until}, {From: from, Until: until, GroupBy: "endpoint"},
			{From: from, Until: until, GroupBy: "version"},
			{From: from + 5e9, Until: until - 7e9, Attributes: []model.Attribute{{Key: "endpoint", Value: "/1"}}},
			{From: from, Until: until, LastState: true, Attributes: []model.Attribute{{Key: "service.instance.id", Value: "1"}}},
		} {
			sel.Service, sel.Profile, sel.Type = in.Service, in.Profile, in.Type.String()
			g, err := s.FlameGraph(t.Context(), sel, 1000)
			require.NoError(t, err)
			for i := range g.Frame {
				name := ""
				if i > 0 {
					name = g.Frames[g.Frame[i]].Name
				}
				fmt.Fprint(&out, name, " ", g.Self[i], " ", g.Total[i], "; ")
			}
			if sel.Attributes == nil { // that no profile has one of them is known for a block on disk alone
				fmt.Fprintln(&out, g.Summary)
			}
			tl, err := s.Timeline(t.Context(), sel, 50, Noon.Add(48*time.Hour))
			require.NoError(t, err)
			for _, group := range tl.Groups {
				for i := range group.Values {
					group.Values[i] += 0.0012 // so that sums in another order are not rounded to another text
				}
				fmt.Fprintf(&out, "%s %.2f\n", group.Name, group.Values)
			}
			if sel.Attributes == nil {
				a, err := s.Attributes(t.Context(), sel, 100)
				require.NoError(t, err)
				fmt.Fprintln(&out, a)
			}
			merged, err := s.Merge(t.Context(), sel)
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(merged.Profiles))
			fmt.Fprintln(&out, resolved(t, merged.Profiles))
			h, err := s.HeatMap(t.Context(), sel, 10, 10)
			require.NoError(t, err)
			fmt.Fprintln(&out, h)
		}
		e, err := s.Events(t.Context(), model.Selection{Service: in.Service, From: from, Until: until}, 1000)
		require.NoError(t, err)
		fmt.Fprintln(&out, e.Lanes, e.States, len(e.List))
	}
	return out.String()
}

// resolved returns the samples of profiles, as lines.
func resolved(t testing.TB, pd pprofile.Profiles) string {
	if pd.SampleCount() == 0 {
		return ""
	}
	var lines []string
	encoded, _, err := pprofencode.Encode(pd)
	require.NoError(t, err)
	require.Len(t, encoded, 1)
	p, err := profile.ParseUncompressed(encoded[0].Bytes)
	require.NoError(t, err)
	for _, sample := range p.Sample {
		var line strings.Builder
		for _, l := range sample.Location {
			for _, in := range l.Line {
				line.WriteString(in.Function.Name + " ")
			}
		}
		lines = append(lines, fmt.Sprint(line.String(), sample.Label, sample.NumLabel, sample.Value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
