// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package storeapi

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/flamefile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
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

// pprof answers /profiles/{service}/{profile}.
func (s *server) pprof(r *request) (*answer, error) {
	sel := r.params.selection(r.now, "", nil)
	var format string
	sel.Service = r.PathValue("service")
	sel.Profile, format = formatOf(r.Request, r.PathValue("profile"))
	return s.merged(r, sel, format)
}

// debugSeconds is the time if a scraper names none: most scrape once a minute.
const debugSeconds = 60

// debugPprof answers the paths of net/http/pprof. A scraper gets the last seconds at once.
func (s *server) debugPprof(r *request) (*answer, error) {
	kinds := map[string]string{
		"profile": "process_cpu", "allocs": "memory", "heap": "memory", "goroutine": "goroutine", "block": "block", "mutex": "mutex",
	}
	profile, ok := kinds[r.PathValue("kind")]
	if !ok {
		return nil, &httpError{http.StatusNotFound, fmt.Sprintf("there is no profile %q", shorten(r.PathValue("kind"))),
			"it is one of profile, allocs, heap, goroutine, block, mutex"}
	}
	r.params.used["debug"], r.params.used["gc"] = true, true // which scrapers send
	if !r.params.values.Has("seconds") && !r.params.values.Has("from") {
		r.params.values.Set("seconds", strconv.Itoa(debugSeconds))
	}
	if !r.params.values.Has("state") {
		r.params.values.Set("state", "last")
	}
	sel := r.params.selection(r.now, "", nil)
	sel.Service, sel.Profile = r.PathValue("service"), profile
	return s.merged(r, sel, formatPprof)
}

func (s *server) merged(r *request, sel store.Selection, format string) (*answer, error) {
	switch format {
	case formatCollapsed:
		return s.collapsed(r, sel)
	case formatSpeedscope:
		return s.speedscope(r, sel)
	}
	timestamps := r.params.oneOf("timestamps", "false", "true")
	if err := r.params.err; err != nil {
		return nil, err
	}
	merged, err := s.Store.Merge(r.Context(), sel, store.ProfilesOptions{Timestamps: timestamps == "true"})
	if err != nil {
		return nil, err
	}
	if merged.Count == 0 {
		return nil, nothingThen(s, sel)
	}
	encoded, _, err := pprofencode.Encode(merged.Profiles)
	if err != nil {
		return nil, err
	}
	if len(encoded) != 1 {
		return nil, errors.New("the profile's sample types do not make one pprof; choose one by `type`")
	}
	var body bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // the level is valid
	_, _ = zip.Write(encoded[0].Bytes)                   // writing to a buffer does not fail
	_ = zip.Close()
	return &answer{
		body: body.Bytes(), contentType: "application/octet-stream", gzipped: true,
		filename: safeName(sel.Service) + "." + safeName(sel.Profile) + formatPprof,
	}, nil
}

// nothingThen returns an error that names the time for which there are profiles.
func nothingThen(s *server, sel store.Selection) error {
	for _, p := range s.Store.Profiles(sel.Service) {
		if p.Profile == sel.Profile {
			return &httpError{http.StatusNotFound, "no profile in the selected time has these attributes", fmt.Sprintf(
				"there are profiles from=%d to until=%d", millis(p.From), millis(p.Until))}
		}
	}
	return &httpError{http.StatusNotFound, "no such profiles", "GET /api/profiles lists what there is"}
}

// safeName replaces what is not safe in the name of a downloaded file.
func safeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, shorten(s))
}

// limited is a buffer that refuses more than maxAnswerBytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxAnswerBytes {
		return 0, fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, maxAnswerBytes)
	}
	return l.Buffer.Write(p)
}

func (s *server) collapsed(r *request, sel store.Selection) (*answer, error) {
	g, err := s.wholeGraph(r, sel)
	if err != nil {
		return nil, err
	}
	var b limited
	if err := flamefile.Collapsed(&b, flamefile.OfGraph(g, cut)); err != nil {
		return nil, err
	}
	return &answer{
		body: b.Bytes(), contentType: "text/plain; charset=utf-8",
		filename: safeName(sel.Service) + "." + safeName(sel.Profile) + formatCollapsed,
	}, nil
}

// cut shortens a name, as quote does for JSON.
func cut(s string) string {
	if len(s) > maxNameBytes {
		return strings.ToValidUTF8(s[:maxNameBytes], "") + "…"
	}
	return s
}

// wholeGraph returns the tree without a bound on its nodes, for formats that have none.
func (s *server) wholeGraph(r *request, sel store.Selection) (*store.Graph, error) {
	if err := r.params.err; err != nil {
		return nil, err
	}
	g, err := s.Store.FlameGraph(r.Context(), sel, math.MaxInt32)
	if err == nil && g.Profiles == 0 {
		err = nothingThen(s, sel)
	}
	return g, err
}

func (s *server) speedscope(r *request, sel store.Selection) (*answer, error) {
	g, err := s.wholeGraph(r, sel)
	if err != nil {
		return nil, err
	}
	stacks := flamefile.OfGraph(g, cut)
	stacks.Name = cut(sel.Service + " " + sel.Profile + " " + g.Type.Type)
	var b limited
	if err := flamefile.Speedscope(&b, stacks.Name, stacks); err != nil {
		return nil, err
	}
	return &answer{
		body: b.Bytes(), contentType: "application/json",
		filename: safeName(sel.Service) + "." + safeName(sel.Profile) + formatSpeedscope,
	}, nil
}
