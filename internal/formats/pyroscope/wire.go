// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pyroscope reads what Pyroscope's clients send beside their profiles:
//
//	ParseQuery                the query of POST /ingest: application, labels, times, format
//	Ingest.CutTextType        what the values of a text format are
//	ParseSampleTypeConfig     what pyroscope-go sends about a pprof: which profile it is, and whether it counts from the start
//	ParsePush, ParsePushJSON  messages of push.v1.PusherService/Push: labels and pprofs
//
// The facts are from the clients' public sources and the API's definitions (push/v1/push.proto, types/v1/types.proto).
package pyroscope

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// Label is a label of a series.
type Label struct{ Name, Value string }

// The labels that have a meaning to clients.
const (
	LabelService      = "service_name"
	LabelProfileName  = "__name__"
	LabelSession      = "__session_id__"
	LabelDelta        = "__delta__"
	LabelScopeName    = "otel.scope.name"
	LabelScopeVersion = "otel.scope.version"
)

// Source identifies the sender, by its labels.
type Source struct {
	// Service is the label service_name, or the application's name, or empty.
	Service string
	// ProfileName is the label __name__.
	ProfileName             string
	ScopeName, ScopeVersion string
	SessionID               string
	// Temporality is delta with the label __delta__=false: the values are differences already, so the receiver must not
	// compute any.
	Temporality kind.Temporality
	// Labels are the other labels in the order in which they came, each name once.
	Labels []Label
}

// maxLabels bounds the labels of a source. Pyroscope itself accepts 30.
const maxLabels = 256

// newSource sorts labels by their meaning.
func newSource(application string, labels []Label) (Source, error) {
	if len(labels) > maxLabels {
		return Source{}, fmt.Errorf("%d labels: there can be %d at most", len(labels), maxLabels)
	}
	s := Source{Service: application}
	seen := make(map[string]bool, len(labels))
	for _, l := range labels {
		if l.Name == "" || seen[l.Name] {
			continue
		}
		seen[l.Name] = true
		switch l.Name {
		case LabelService:
			s.Service = cmp.Or(l.Value, application)
		case LabelProfileName:
			s.ProfileName = l.Value
		case LabelScopeName:
			s.ScopeName = l.Value
		case LabelScopeVersion:
			s.ScopeVersion = l.Value
		case LabelSession:
			s.SessionID = l.Value
		case LabelDelta:
			if l.Value == "false" {
				s.Temporality = kind.StatedDelta
			}
		default:
			if !strings.HasPrefix(l.Name, "__") { // __period_type__ and the like are for the server
				s.Labels = append(s.Labels, l)
			}
		}
	}
	return s, nil
}

// Ingest is the query of POST /ingest.
type Ingest struct {
	Source
	// From and Until are zero if they are missing or not from 2000 to 2100.
	From, Until time.Time
	// Format is pprof, jfr, folded, lines or groups. If it is empty, the body's content decides.
	Format string
	// Units and SampleRate, in hertz, are those of the samples in formats without types.
	Units      string
	SampleRate float64
	// Temporality is what the query states about the values, or empty.
	Temporality kind.Temporality
	// IsAverage means that the values are a state, which the client would have averaged.
	IsAverage bool

	// application is the name of the application, which can end in a type.
	application string
}

// Period returns the time from one sample to the next, or 0 if the client states no rate.
func (in *Ingest) Period() time.Duration {
	if in.SampleRate == 0 {
		return 0
	}
	return max(time.Duration(float64(time.Second)/in.SampleRate), 1)
}

// ParseQuery reads the query of POST /ingest, which arrived at now.
func ParseQuery(query url.Values, now time.Time) (Ingest, error) {
	name := query.Get("name")
	if name == "" {
		return Ingest{}, errors.New("the query has no name=application{label=value,…}")
	}
	application, labels, err := parseName(name)
	if err != nil {
		return Ingest{}, err
	}
	source, err := newSource(application, labels)
	if err != nil {
		return Ingest{}, err
	}
	in := Ingest{
		Source: source, From: parseTime(query.Get("from"), now), Until: parseTime(query.Get("until"), now),
		Format: query.Get("format"), Units: query.Get("units"), application: application,
		IsAverage: query.Get("aggregationType") == "average",
	}
	if rate := query.Get("sampleRate"); rate != "" {
		const least = 1e-6
		in.SampleRate, err = strconv.ParseFloat(rate, 64)
		if err != nil || in.SampleRate != 0 && !(in.SampleRate >= least && in.SampleRate <= math.MaxInt64) {
			return Ingest{}, fmt.Errorf("sampleRate=%q is not a number", rate)
		}
	}
	if query.Has("temporality") {
		if in.Temporality, err = kind.ParseTemporality(query.Get("temporality")); err != nil {
			return Ingest{}, fmt.Errorf("temporality %w", err)
		}
	}
	return in, nil
}

// parseName reads application{label=value,label=value}.
func parseName(name string) (application string, labels []Label, err error) {
	application, rest, hasLabels := strings.Cut(name, "{")
	application = strings.TrimSpace(application)
	if !hasLabels {
		return application, nil, nil
	}
	rest, closed := strings.CutSuffix(strings.TrimSpace(rest), "}")
	if !closed {
		return "", nil, errors.New("name=application{label=value,…} has no closing brace")
	}
	// value is where that of the last label begins, end where the next pair does.
	value, end := 0, 0
	for pair := range strings.SplitSeq(rest, ",") {
		begin := end
		end += len(pair) + 1
		key, content, ok := strings.Cut(pair, "=")
		switch {
		case ok:
			labels, value = append(labels, Label{key, content}), begin+len(key)+1
		case strings.TrimSpace(pair) == "":
		case len(labels) > 0: // clients do not escape a comma in a value
			labels[len(labels)-1].Value = rest[value : end-1]
		default:
			return "", nil, errors.New("name=application{label=value,…} has a label without a value")
		}
	}
	for i, l := range labels {
		labels[i] = Label{strings.TrimSpace(l.Name), strings.Trim(strings.TrimSpace(l.Value), `"`)}
	}
	return application, labels, nil
}

// parseTime reads a Unix time in any unit, with a fraction or without, or one relative to now, such as now-1h. Anything
// else, and any time before 2000 or after 2100, becomes the zero time.
func parseTime(s string, now time.Time) time.Time {
	if difference, isRelative := strings.CutPrefix(s, "now"); isRelative {
		d, err := time.ParseDuration(cmp.Or(difference, "0s"))
		if err != nil {
			return time.Time{}
		}
		s = strconv.FormatInt(now.Add(d).UnixNano(), 10)
	}
	whole, fraction, ok := events.ParseDecimal(s)
	nanos := int64(events.UnixNanos(whole))
	if !ok || nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos+fraction/(1e9/(nanos/whole)))
}

// maxConfigBytes bounds a sample_type_config: pyroscope-go sends a few hundred bytes.
const maxConfigBytes = 64 << 10

// SampleTypeConfig is the content of the part sample_type_config, which pyroscope-go sends beside a pprof.
type SampleTypeConfig struct {
	// ProfileName is mutex, block or empty. Nothing else distinguishes the two.
	ProfileName string
	// Temporality is cumulative if values count from the start of the process, as those of old versions do, and delta if
	// the client has described its values, and none do.
	Temporality kind.Temporality
}

// ParseSampleTypeConfig reads a sample_type_config. It ignores what it does not understand.
func ParseSampleTypeConfig(config []byte) (c SampleTypeConfig) {
	if len(config) > maxConfigBytes {
		return c
	}
	var types map[string]struct {
		DisplayName string `json:"display-name"`
		Cumulative  bool   `json:"cumulative"`
	}
	if json.Unmarshal(config, &types) != nil {
		return c
	}
	for _, name := range []string{"contentions", "delay"} {
		switch display := types[name].DisplayName; {
		case strings.HasPrefix(display, "block"):
			c.ProfileName = kind.Block
		case strings.HasPrefix(display, "mutex"):
			c.ProfileName = kind.Mutex
		}
	}
	for _, t := range types {
		if t.Cumulative {
			c.Temporality = kind.StatedCumulative
			return c
		}
		c.Temporality = kind.StatedDelta
	}
	return c
}

// Series is one series of a push: its sender, and pprofs, each compressed with gzip or not.
type Series struct {
	Source
	Profiles [][]byte
}

// maxSeries bounds the series and the profiles of one push: each needs its own tables, however small it is.
const maxSeries = 1024

var errNotPush = errors.New("not a PushRequest of push.v1; a bare profile goes to /v1/pprof or /ingest")

// push collects the series of a PushRequest.
type push struct {
	series   []Series
	profiles int
}

func (p *push) add(labels []Label, profiles [][]byte) error {
	source, err := newSource("", labels)
	if err != nil {
		return err
	}
	p.series = append(p.series, Series{Source: source, Profiles: profiles})
	if p.profiles += len(profiles); p.profiles > maxSeries {
		return fmt.Errorf("there can be %d profiles at most in one request", maxSeries)
	}
	if len(p.series) > maxSeries {
		return fmt.Errorf("there can be %d series at most in one request", maxSeries)
	}
	return nil
}

// ParsePush reads a PushRequest in protobuf. The profiles are parts of body.
func ParsePush(body []byte) ([]Series, error) {
	var p push
	isPush := false
	r := wire.New(body)
	for r.Next() {
		if r.Number != 1 || r.Wire != protowire.BytesType {
			continue
		}
		labels, profiles, err := parseSeries(r.Content)
		if err == nil {
			isPush = isPush || len(labels)+len(profiles) > 0
			err = p.add(labels, profiles)
		}
		if err != nil {
			return nil, err
		}
	}
	// What has fields and nothing of a PushRequest is another message, such as a bare pprof.
	if r.IsMalformed() || !isPush && len(body) > 0 {
		return nil, errNotPush
	}
	return p.series, nil
}

// parseSeries reads a RawProfileSeries. It ends when there are too many labels or profiles.
func parseSeries(data []byte) (labels []Label, profiles [][]byte, err error) {
	r := wire.New(data)
	for len(labels) <= maxLabels && len(profiles) <= maxSeries && r.Next() {
		if r.Wire != protowire.BytesType || r.Number > 2 {
			continue
		}
		first, second, ok := wire.Pair(r.Content)
		switch {
		case !ok:
			return nil, nil, errNotPush
		case r.Number == 1:
			labels = append(labels, Label{Name: string(first.Content), Value: string(second.Content)})
		default: // a sample without a profile is an empty one, in proto3
			profiles = append(profiles, first.Content)
		}
	}
	if r.IsMalformed() && len(labels) <= maxLabels && len(profiles) <= maxSeries {
		return nil, nil, errNotPush
	}
	return labels, profiles, nil
}

// ParsePushJSON reads a PushRequest in JSON, with pprofs in base64.
func ParsePushJSON(body []byte) ([]Series, error) {
	var request struct {
		Series []struct {
			Labels  []Label
			Samples []struct {
				RawProfile base64Text `json:"rawProfile"`
				Snake      base64Text `json:"raw_profile"`
			}
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotPush, err)
	}
	if request.Series == nil && bytes.IndexByte(body, ':') >= 0 && !bytes.Contains(body, []byte(`"series"`)) {
		return nil, errNotPush // another object
	}
	var p push
	for _, series := range request.Series {
		var profiles [][]byte
		for _, sample := range series.Samples {
			profiles = append(profiles, append(sample.RawProfile, sample.Snake...))
		}
		if err := p.add(series.Labels, profiles); err != nil {
			return nil, err
		}
	}
	return p.series, nil
}

// base64Text is base64 with either alphabet, padded or not, as protobuf's mapping to JSON has it.
type base64Text []byte

// UnmarshalText decodes text.
func (b *base64Text) UnmarshalText(text []byte) (err error) {
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	*b, err = encoding.AppendDecode(nil, bytes.TrimRight(text, "="))
	return err
}
