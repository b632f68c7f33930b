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
	// Start and End are the time of the upload's profiles.
	Start, End eventTime
	Info       struct {
		Application struct{ Service, Env, Version string } `json:"application"`
		Platform    struct{ Hostname string }              `json:"platform"`
	} `json:"info"`
}

// eventTime is a time as in RFC 3339, or none: an upload is not refused for its times.
type eventTime struct{ time.Time }

// UnmarshalJSON never fails.
func (t *eventTime) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &t.Time) != nil {
		t.Time = time.Time{}
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
		profiles[i].Identity, profiles[i].From, profiles[i].Until = identity, event.Start.Time, event.End.Time
	}
	if err := s.ingestAll(r.Context(), profiles, 0); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// readDatadogForm reads event.json, which the libraries send first or last, and the profiles. It ignores other
// attachments, such as metrics.json and code-provenance.json.
func (s *Server) readDatadogForm(r *pushRequest) (event datadogEvent, profiles []namedPayload, err error) {
	if !r.isForm() {
		return event, nil, ingest.Reject(ingest.BadRequest,
			errors.New("not a form of Datadog's libraries: use multipart/form-data with event.json and profiles"))
	}
	var data []byte
	err = s.readForm(r, func(part *multipart.Part) (*[]byte, error) {
		name := partName(part)
		switch {
		case part.FormName() == "event":
			return &data, nil
		case part.FileName() == "" || strings.HasSuffix(name, ".json"):
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
	case data == nil:
		return event, nil,
			ingest.Reject(ingest.BadRequest, errors.New("the form has no part event (event.json), which names the service"))
	case len(profiles) == 0:
		return event, nil, ingest.Reject(ingest.Empty, errors.New("the form has no profiles beside event.json"))
	}
	if err := json.Unmarshal(data, &event); err != nil {
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
	application := &e.Info.Application
	if n := strings.Count(e.Tags, ",") + 1; n > maxDatadogTags {
		return fmt.Errorf("%d tags: there can be %d at most", n, maxDatadogTags)
	}
	for _, tag := range append(strings.Split(e.Tags, ","), "service:"+application.Service, "env:"+application.Env,
		"version:"+application.Version, "host:"+e.Info.Platform.Hostname) {
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
