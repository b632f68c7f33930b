// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// DatadogPath is where Datadog's libraries push to, in place of Datadog's agent.
const DatadogPath = "/profiling/v1/input"

// datadogEvent is the part event.json.
type datadogEvent struct {
	Tags string `json:"tags_profiler"`
	// fields are the tags of a form without the part.
	fields [][]byte
	// Start and End are the time of the upload's profiles.
	Start, End lenient[time.Time]
	Info       lenient[struct {
		Application lenient[struct{ Service, Env, Version lenient[string] }] `json:"application"`
		Platform    lenient[struct{ Hostname lenient[string] }]              `json:"platform"`
	}] `json:"info"`
}

// lenient is a value, or the zero value for one of another type: an upload is not refused for a version that is a
// number.
type lenient[T any] struct{ value T }

// UnmarshalJSON never fails.
func (l *lenient[T]) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &l.value) != nil {
		l.value = *new(T)
	}
	return nil
}

// handleDatadog answers POST /profiling/v1/input: 200 without a body, which older versions of dd-trace-go insist on.
func (s *Server) handleDatadog(w http.ResponseWriter, r *pushRequest) error {
	event, profiles, err := s.readDatadogForm(r)
	if err != nil {
		return err
	}
	identity := ingest.NewIdentity()
	if err := event.putTo(identity.Stated); err != nil {
		return ingest.Reject(ingest.BadRequest, err)
	}
	for i := range profiles {
		profiles[i].Identity, profiles[i].From, profiles[i].Until = identity, event.Start.value, event.End.value
	}
	if err := s.ingestAll(r.Context(), profiles, &ingest.Shared{}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func timeOf(field []byte) (t lenient[time.Time]) {
	t.value, _ = time.Parse(time.RFC3339, string(field)) // what is no time leaves the zero time
	return t
}

// readDatadogForm reads event.json, which the libraries send first or last, and the profiles. Libraries of before 2022
// send tags and times as fields of the form instead. It ignores other attachments, such as metrics.json and
// code-provenance.json.
func (s *Server) readDatadogForm(r *pushRequest) (event datadogEvent, profiles []namedPayload, err error) {
	if !r.isForm() {
		return event, nil, ingest.Reject(ingest.BadRequest,
			errors.New("not a form of Datadog's libraries: use multipart/form-data with event.json and profiles"))
	}
	var data, start, end []byte
	err = s.readForm(r, func(part *multipart.Part) (*[]byte, error) {
		name := partName(part)
		switch part.FormName() {
		case "event":
			return &data, nil
		case "recording-start", "start":
			return &start, nil
		case "recording-end", "end":
			return &end, nil
		case "tags[]", "tags":
			event.fields = append(event.fields, nil)
			return &event.fields[len(event.fields)-1], nil
		}
		if part.FileName() == "" || strings.HasSuffix(name, ".json") {
			return nil, nil
		}
		profiles = append(profiles, namedPayload{name, ingest.Payload{
			// dd-trace-go: delta-heap.pprof
			Reservation: r.reservation, IsNamedByTypes: true, Temporality: ingest.TemporalityOfPath(name),
		}})
		return &profiles[len(profiles)-1].Data, nil
	})
	switch {
	case err != nil:
		return event, nil, err
	case data == nil && len(event.fields) == 0:
		return event, nil, ingest.Reject(ingest.BadRequest,
			errors.New("the form has neither a part event (event.json) nor fields tags[], which name the service"))
	case len(profiles) == 0:
		return event, nil, ingest.Reject(ingest.Empty, errors.New("the form has no profiles beside event.json"))
	}
	if data == nil { // before version 4 of the form
		event.Start, event.End = timeOf(start), timeOf(end)
	} else if err := json.Unmarshal(data, &event); err != nil {
		return event, nil, ingest.Reject(ingest.BadRequest, fmt.Errorf("read event.json: %w", err))
	}
	return event, profiles, nil
}

const maxDatadogTags = 256

// datadogAttributes are the semantic conventions' attributes for tags. Tags with an empty name here do not describe the
// resource: they differ from one upload to the next, or are the same for all.
var datadogAttributes = map[string]string{
	"service":         ingest.AttributeServiceName,
	"env":             "deployment.environment.name",
	"version":         ingest.AttributeServiceVersion,
	"host":            "host.name",
	"runtime-id":      ingest.AttributeServiceInstanceID,
	"process_id":      "process.pid",
	"runtime":         "process.runtime.name",
	"runtime_version": "process.runtime.version",
	"format":          "",
	"profile_seq":     "",
	"snapshot":        "",
}

// putTo adds the tags of an upload to the attributes of its resource. If a tag is repeated, the first counts.
func (e *datadogEvent) putTo(attributes pcommon.Map) error {
	application := &e.Info.value.Application.value
	if n := strings.Count(e.Tags, ",") + 1 + len(e.fields); n > maxDatadogTags {
		return fmt.Errorf("%d tags: there can be %d at most", n, maxDatadogTags)
	}
	tags := strings.Split(e.Tags, ",")
	for _, field := range e.fields {
		tags = append(tags, string(field))
	}
	for _, tag := range append(tags, "service:"+application.Service.value, "env:"+application.Env.value,
		"version:"+application.Version.value, "host:"+e.Info.value.Platform.value.Hostname.value) {
		key, value, _ := strings.Cut(strings.TrimSpace(tag), ":")
		if attribute, isKnown := datadogAttributes[key]; isKnown {
			key = attribute
		}
		if key == "" || value == "" || value == "undefined" { // dd-trace for Node writes undefined for unset values
			continue
		}
		key = dictionary.ValidUTF8(key)
		if _, repeated := attributes.Get(key); repeated {
			continue
		}
		if pid, err := strconv.ParseInt(value, 10, 64); err == nil && key == "process.pid" {
			attributes.PutInt(key, pid)
			continue
		}
		attributes.PutStr(key, dictionary.ValidUTF8(value))
	}
	return nil
}
