// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/flamefile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// The formats of merged profiles, by the suffix of the path and by what a client accepts.
const (
	formatPprof      = ".pb.gz"
	formatCollapsed  = ".collapsed"
	formatSpeedscope = ".speedscope.json"
)

// formatOf cuts the suffix of a format off the name of a profile.
func formatOf(r *http.Request, profile string) (name, format string) {
	for _, format := range []string{formatCollapsed, formatSpeedscope, formatPprof} {
		if name, found := strings.CutSuffix(profile, format); found && name != "" {
			return name, format
		}
	}
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, "speedscope"):
		return profile, formatSpeedscope
	case strings.HasPrefix(accept, "text/plain"), strings.Contains(accept, "collapsed"):
		return profile, formatCollapsed
	default:
		return profile, formatPprof
	}
}

// pprof answers /profiles/{service}/{profile}, and /profiles with both as parameters.
func (s *server) pprof(r *request) (*answer, error) {
	sel := r.selection()
	var format string
	sel.Service = cmp.Or(kind.CutName(r.PathValue("service")), sel.Service)
	sel.Profile, format = formatOf(r.Request, cmp.Or(r.PathValue("profile"), sel.Profile))
	if format != formatPprof {
		return s.stacks(r, sel, format)
	}
	return s.pprofOf(r, sel, nil)
}

// debugSeconds is the duration if a scraper does not state one: most scrape once a minute.
const debugSeconds = 60

// debugPprof answers the paths of net/http/pprof, at once: the last seconds of what the store has. A store forgets, so
// that it has no totals since a process began: without a time, heap has states alone, and allocs, block and mutex have
// nothing. With a time there is what happened in it, but no states, since net/http/pprof has their differences there.
func (s *server) debugPprof(r *request) (*answer, error) {
	kinds := map[string]string{
		"profile": "process_cpu", "allocs": "memory", "heap": "memory", "goroutine": "goroutine", "block": "block",
		"mutex": "mutex",
	}
	profile, ok := kinds[r.PathValue("kind")]
	if !ok {
		return nil, &query.Error{Status: http.StatusNotFound,
			Message: fmt.Sprintf("there is no profile %q", model.Shorten(r.PathValue("kind"))),
			Hint:    "use one of profile, allocs, heap, goroutine, block, mutex"}
	}
	_, _ = r.params.Get("debug"), r.params.Get("gc") // scrapers send them; they change nothing
	hasTime := r.params.Get("from") != "" || r.params.Get("seconds") != ""
	if name := r.PathValue("kind"); !hasTime && (name == "allocs" || name == "block" || name == "mutex") {
		return nil, &query.Error{Status: http.StatusBadRequest,
			Message: "there are no totals since the process began: the store has what happened in a time",
			Hint: fmt.Sprintf(
				"add seconds=%d for the last minute; the receiver pprof does that with an interval of a minute and "+
					"`profiles.memory: {delta: false, seconds: 59}`", debugSeconds)}
	}
	if r.params.Get("from") == "" {
		r.params.SetDefault("seconds", strconv.Itoa(debugSeconds))
	}
	r.params.SetDefault("state", "last")
	sel := r.selection()
	sel.Service, sel.Profile = kind.CutName(r.PathValue("service")), profile
	if profile != "memory" {
		return s.pprofOf(r, sel, nil)
	}
	return s.pprofOf(r, sel, func(v kind.Values) bool { return (v == kind.Gauge) != hasTime })
}

// withValues removes the sample types whose values are not wanted.
func withValues(pd pprofile.Profiles, isWanted func(kind.Values) bool) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			all := sp.Profiles().Len()
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool { return !isWanted(kind.ValuesOfProfile(p, pd.Dictionary())) })
			if sp.Profiles().Len() < all { // they describe all types
				sp.Scope().Attributes().Remove(kind.AttributeSampleTypeOrder)
				sp.Scope().Attributes().Remove(kind.AttributeDefaultSampleType)
			}
		}
	}
}

// pprofOf answers with the pprof of a selection, of the types whose values are wanted; nil wants all.
func (s *server) pprofOf(r *request, sel model.Selection, isWanted func(kind.Values) bool) (*answer, error) {
	sel.Timestamps = r.params.OneOf("timestamps", "false", "true") == "true"
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	var a *answer
	err := s.Store.MergeTo(r.Context(), sel, func(merged *answers.Merged) (err error) {
		if isWanted != nil {
			withValues(merged.Profiles, isWanted)
		}
		if merged.Count == 0 || merged.Profiles.ProfileCount() == 0 {
			return s.nothingFound(r, sel)
		}
		a, err = pprofAnswer(r, merged)
		return err
	})
	if err != nil {
		return nil, err
	}
	a.filename = filename(sel, formatPprof)
	return a, nil
}

// leftOutHeader has the number of samples that a pprof lacks, if there are any.
const leftOutHeader = "X-Profile-Left-Out"

func pprofAnswer(r *request, merged *answers.Merged) (*answer, error) {
	if err := r.meter.Grow(encode.Bytes(merged.Profiles)); err != nil {
		return nil, err
	}
	encoded, stats, err := encode.Encode(merged.Profiles)
	if err != nil {
		return nil, err
	}
	if stats.Dropped > 0 {
		// Its sums would be wrong, and pprof's tools show nothing but the profile.
		return nil, fmt.Errorf("%w: the pprof would be many times as large as what was sent, and had to leave out %d samples",
			model.ErrTooLarge, stats.Dropped)
	}
	if len(encoded) != 1 {
		return nil, errors.New("the profile's sample types do not make one pprof; choose one by `type`")
	}
	a := &answer{body: body{meter: r.meter}, contentType: "application/octet-stream", gzipped: true,
		leftOut: merged.LeftOut}
	zip, _ := gzip.NewWriterLevel(a, gzip.BestSpeed) // the level is valid
	_, err = zip.Write(encoded[0].Bytes)
	return a, cmp.Or(err, zip.Close())
}

// nothingFound returns an error that names the time for which there are profiles, as parameters have it.
func (s *server) nothingFound(r *request, sel model.Selection) error {
	return query.NothingFound(r.Context(), s.Store, &sel, func(from, until int64) string {
		second := func(nanos int64) string { return time.Unix(0, nanos).UTC().Truncate(time.Second).Format(time.RFC3339) }
		return fmt.Sprintf("from=%s&until=%s", second(from), second(until+int64(time.Second)))
	})
}

// filename returns the name of a downloaded file, in which other characters than letters, digits, _ and - are replaced.
func filename(sel model.Selection, suffix string) string {
	safe := func(s string) string { return unsafeCharacter.ReplaceAllString(model.Shorten(s), "_") }
	return safe(sel.Service) + "." + safe(sel.Profile) + suffix
}

var unsafeCharacter = regexp.MustCompile(`[^0-9A-Za-z_-]`)

// stacks answers in one of the formats that are text. They have no bound on nodes.
func (s *server) stacks(r *request, sel model.Selection, format string) (*answer, error) {
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	g, err := s.Store.FlameGraph(r.Context(), sel, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if g.Profiles == 0 {
		return nil, s.nothingFound(r, sel)
	}
	if err := r.meter.Grow(stacksBytes * (len(g.Frames) + len(g.Frame))); err != nil {
		return nil, err
	}
	a := &answer{body: body{meter: r.meter}, contentType: "text/plain; charset=utf-8", filename: filename(sel, format)}
	stacks := flamefile.OfGraph(g, shorten)
	if format == formatCollapsed {
		err = flamefile.Collapsed(a, stacks)
	} else {
		a.contentType = jsonType
		stacks.Name = shorten(sel.Service + " " + sel.Profile + " " + g.Type.Type)
		err = flamefile.Speedscope(a, stacks.Name, stacks)
	}
	return a, err
}

// stacksBytes is what flamefile takes for a frame or a node.
const stacksBytes = 80
