// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// The formats of merged profiles, by the suffix of the path and by what a client accepts.
const (
	formatPprof      = ".pb.gz"
	formatCollapsed  = ".collapsed"
	formatSpeedscope = ".speedscope.json"
)

// formatOf parts a suffix from the name of a profile.
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
	sel, err := r.params.selection(r.now, "", nil)
	if err != nil {
		return nil, err
	}
	var format string
	sel.Service = r.PathValue("service")
	sel.Profile, format = formatOf(r.Request, r.PathValue("profile"))
	return s.merged(r, sel, format)
}

// debugSeconds is the time that a scraper gets that names none: a minute, as scrapers mostly come.
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
	r.params.asked["debug"], r.params.asked["gc"] = true, true // which scrapers send
	if !r.params.values.Has("seconds") && !r.params.values.Has("from") {
		r.params.values.Set("seconds", strconv.Itoa(debugSeconds))
	}
	if !r.params.values.Has("state") {
		r.params.values.Set("state", "last")
	}
	sel, err := r.params.selection(r.now, "", nil)
	if err != nil {
		return nil, err
	}
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
	timestamps, err := r.params.oneOf("timestamps", "false", "true")
	if err != nil {
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
	zip, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // the level is one that there is
	_, _ = zip.Write(encoded[0].Bytes)                   // a buffer takes everything
	_ = zip.Close()
	return &answer{
		body: body.Bytes(), contentType: "application/octet-stream", gzipped: true,
		filename: safeName(sel.Service) + "." + safeName(sel.Profile) + formatPprof,
	}, nil
}

// nothingThen says when there would be something.
func nothingThen(s *server, sel store.Selection) error {
	for _, p := range s.Store.Profiles(sel.Service) {
		if p.Profile == sel.Profile {
			return &httpError{http.StatusNotFound, "no profile in the selected time has these attributes", fmt.Sprintf(
				"there are profiles from=%d to until=%d", millis(p.From), millis(p.Until))}
		}
	}
	return &httpError{http.StatusNotFound, "no such profiles", "GET /api/profiles lists what there is"}
}

// safeName makes a text fit for the name of a downloaded file.
func safeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, shorten(s))
}

// eachStack calls use with the frames, outermost first, of each node that has a value of its own.
func eachStack(g *store.Graph, use func(stack []int32, value int64) error) error {
	var path, frames []int32
	for i := 1; i < len(g.Frame); i++ {
		for len(path) > 0 && path[len(path)-1] != g.Parent[i] {
			path, frames = path[:len(path)-1], frames[:len(frames)-1]
		}
		path, frames = append(path, int32(i)), append(frames, g.Frame[i])
		if g.Self[i] > 0 {
			if err := use(frames, g.Self[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) collapsed(r *request, sel store.Selection) (*answer, error) {
	g, err := s.wholeGraph(r, sel)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(g.Frames))
	clean := strings.NewReplacer(";", ":", "\n", " ", "\r", " ")
	for i := range names {
		names[i] = clean.Replace(cut(g.Frames[i].Name))
	}
	var b []byte
	err = eachStack(g, func(stack []int32, value int64) error {
		for i, frame := range stack {
			if i > 0 {
				b = append(b, ';')
			}
			b = append(b, names[frame]...)
		}
		b = append(strconv.AppendInt(append(b, ' '), value, 10), '\n')
		return withinLimit(b)
	})
	return &answer{
		body: b, contentType: "text/plain; charset=utf-8",
		filename: safeName(sel.Service) + "." + safeName(sel.Profile) + formatCollapsed,
	}, err
}

func cut(s string) string {
	if len(s) > maxNameBytes {
		return strings.ToValidUTF8(s[:maxNameBytes], "") + "…"
	}
	return s
}

func withinLimit(b []byte) error {
	if len(b) > maxAnswerBytes {
		return fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, maxAnswerBytes)
	}
	return nil
}

// wholeGraph is the tree that formats without limits are made of.
func (s *server) wholeGraph(r *request, sel store.Selection) (*store.Graph, error) {
	g, err := s.Store.FlameGraph(r.Context(), sel, math.MaxInt32)
	if err == nil && g.Profiles == 0 {
		err = nothingThen(s, sel)
	}
	return g, err
}

// speedscope writes https://www.speedscope.app/file-format-schema.json.
func (s *server) speedscope(r *request, sel store.Selection) (*answer, error) {
	g, err := s.wholeGraph(r, sel)
	if err != nil {
		return nil, err
	}
	name := quote(sel.Service + " " + sel.Profile + " " + g.Type.Type)
	b := fmt.Appendf(nil, `{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"otelcol-profiles","name":%s,"shared":{"frames":[`, name)
	for i := range g.Frames {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":%s`, quote(g.Frames[i].Name))
		if g.Frames[i].File != "" {
			b = fmt.Appendf(b, `,"file":%s`, quote(g.Frames[i].File))
		}
		if g.Frames[i].Line > 0 {
			b = fmt.Appendf(b, `,"line":%d`, g.Frames[i].Line)
		}
		b = append(b, '}')
		if err := withinLimit(b); err != nil {
			return nil, err
		}
	}
	unit := "none"
	switch g.Type.Unit {
	case "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes":
		unit = g.Type.Unit
	}
	b = fmt.Appendf(b, `]},"profiles":[{"type":"sampled","name":%s,"unit":%q,"startValue":0,"endValue":%d,"samples":[`, name, unit, g.Total[0])
	var weights []byte
	err = eachStack(g, func(stack []int32, value int64) error {
		if len(weights) > 0 {
			b, weights = append(b, ','), append(weights, ',')
		}
		b = append(b, '[')
		for i, frame := range stack {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(frame), 10)
		}
		b = append(b, ']')
		weights = strconv.AppendInt(weights, value, 10)
		return withinLimit(b)
	})
	b = append(append(append(b, `],"weights":[`...), weights...), "]}]}"...)
	return &answer{
		body: b, contentType: "application/json",
		filename: safeName(sel.Service) + "." + safeName(sel.Profile) + formatSpeedscope,
	}, err
}
