// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/folded"
	pyroscopewire "github.com/otelcol-profiles/otelcol-profiles/internal/formats/pyroscope"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// Where Pyroscope's clients push to. Alloy also calls the methods of debugInfoPath, which are not served: it continues
// without them if the answer is "unimplemented".
const (
	connectPath   = "/push.v1.PusherService/Push"
	debugInfoPath = "/debuginfo.v1alpha1.DebuginfoService/"
)

var ingestPaths = []string{"/ingest", "/pyroscope/ingest"}

// The formats of POST /ingest. A body whose sender states none is recognised by its content, a form is pprof.
const (
	formatPprof  = "pprof"
	formatJFR    = "jfr"
	formatFolded = "folded"
	formatLines  = "lines"
	formatGroups = "groups"

	formatSpeedscope = "speedscope"
)

var errFormat = errors.New("this format is not accepted")

var ingestFormats = []string{formatPprof, formatJFR, formatFolded, formatLines, formatGroups, formatSpeedscope}

func (s *Server) registerPyroscope(mux *http.ServeMux) {
	for _, path := range ingestPaths {
		mux.HandleFunc(path, s.handler(writePyroscopeError, s.handleIngest))
	}
	mux.HandleFunc(connectPath, s.handler(writePyroscopeError, func(w http.ResponseWriter, r *pushRequest) error {
		if isGRPC(r.Request) {
			return s.handleGRPC(w, r)
		}
		return s.handleConnect(w, r)
	}))
	mux.HandleFunc(debugInfoPath, func(w http.ResponseWriter, r *http.Request) {
		writePyroscopeError(w, r, http.StatusNotFound, errors.New("debug information is not stored here"))
	})
}

func isPyroscope(path string) bool {
	path = singleSlashes(path)
	return slices.Contains(ingestPaths, path) || path == connectPath || strings.HasPrefix(path, debugInfoPath)
}

// withoutDoubleSlashes replaces repeated slashes in a path by one: @pyroscope/nodejs sends them, and does not follow
// the redirect that a ServeMux answers with.
func withoutDoubleSlashes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := singleSlashes(r.URL.Path); path != r.URL.Path {
			r.URL.Path, r.URL.RawPath = path, ""
		}
		next.ServeHTTP(w, r)
	})
}

func singleSlashes(path string) string {
	if !strings.Contains(path, "//") {
		return path
	}
	return "/" + strings.Join(strings.FieldsFunc(path, func(c rune) bool { return c == '/' }), "/")
}

// handleIngest answers POST /ingest: 200 without a body, which pyroscope-go insists on.
func (s *Server) handleIngest(w http.ResponseWriter, r *pushRequest) error {
	query, err := url.ParseQuery(r.URL.RawQuery) // Query leaves out what it cannot read
	if err != nil {
		return ingest.Reject(ingest.BadRequest, fmt.Errorf("query: %w", err))
	}
	in, err := pyroscopewire.ParseQuery(query, time.Now())
	if err != nil {
		return ingest.Reject(ingest.BadRequest, err)
	}
	if in.Format == "" { // old clients state trie and tree by the content type
		_, in.Format, _ = strings.Cut(httpserver.ContentType(r.Request), "binary/octet-stream+")
	}
	var form ingestForm
	switch {
	case in.Format != "" && !s.acceptsFormat(in.Format): // before its body takes memory
	case r.isForm():
		in.Format = cmp.Or(in.Format, formatPprof)
		form, err = s.readIngestForm(r)
	default:
		if form.profile, err = s.readBody(r); err == nil && in.Format == "" {
			in.Format = formatOf(form.profile)
		}
	}
	if err != nil {
		return err
	}
	if !s.acceptsFormat(in.Format) {
		how := ""
		if in.Format == "trie" || in.Format == "tree" {
			how = "only agents from before Pyroscope 1.0 send it, so update the client, or "
		}
		return ingest.Reject(ingest.BadRequest, fmt.Errorf("%w: format=%q; %suse one of %s", errFormat, in.Format, how,
			strings.Join(s.cfg.Pyroscope.Formats, ", ")))
	}
	p, err := s.ingestPayload(r, &in, &form)
	if err == nil {
		err = s.ingest.Ingest(r.Context(), p, 0)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *Server) acceptsFormat(format string) bool {
	return slices.Contains(s.cfg.Pyroscope.Formats, format)
}

// formatOf returns the format of a body whose sender states none: folded stacks, as for Pyroscope, or the format of its
// content.
func formatOf(body []byte) string {
	switch ingest.SniffFormat(body) {
	case formats.Folded:
		return formatFolded
	case formats.JFR:
		return formatJFR
	case formats.Speedscope:
		return formatSpeedscope
	default:
		return formatPprof
	}
}

// ingestPayload returns the payload of a POST /ingest.
func (s *Server) ingestPayload(
	r *pushRequest, in *pyroscopewire.Ingest, form *ingestForm,
) (p ingest.Payload, err error) {
	isText := in.Format != formatPprof && in.Format != formatJFR
	var text pyroscopewire.TextType
	var isStated bool
	if isText {
		text, isStated = in.CutTextType()
	}
	if p, err = s.payload(r.reservation, s.tenant(r), &in.Source); err != nil {
		return p, err
	}
	p.Data, p.From, p.Until = form.profile, in.From, in.Until
	config := pyroscopewire.ParseSampleTypeConfig(form.config)
	if config.ProfileName != "" {
		p.ProfileName = config.ProfileName
	}
	p.Temporality = cmp.Or(in.Temporality, config.Temporality, p.Temporality)
	switch {
	case in.Format == formatSpeedscope:
		p.Format = formats.Speedscope
		if isStated { // otherwise the file states more
			p.Folded.SampleType, p.Folded.Unit = cmp.Or(text.PeriodType, text.SampleType), text.Unit
		}
	case isText:
		p.Format, p.Folded = formats.Folded, foldedOptions(&text, in)
	case in.Format == formatJFR:
		if p.Labels, err = s.ingest.Plain(r.Context(),
			&ingest.Payload{Data: form.labels, Reservation: r.reservation}); err != nil {
			return p, fmt.Errorf("labels: %w", err)
		}
		p.Format, p.ProfileName, p.IsNamedByTypes = formats.JFR, "", false // a recording holds several profiles with names
		p.Period = in.Period()
	case form.previous != nil:
		p.Baseline, err = s.baseline(r.Context(), p, form.previous)
	}
	return p, err
}

// ingestForm are the parts of a form that have a meaning.
type ingestForm struct{ profile, previous, config, labels []byte }

// readIngestForm reads the parts profile (or jfr), prev_profile, sample_type_config and labels, and ignores others.
func (s *Server) readIngestForm(r *pushRequest) (form ingestForm, err error) {
	err = s.readForm(r, func(part *multipart.Part) (*[]byte, error) {
		to := map[string]*[]byte{
			"profile": &form.profile, "jfr": &form.profile, "prev_profile": &form.previous,
			"sample_type_config": &form.config, "labels": &form.labels,
		}[part.FormName()]
		if to != nil && *to != nil { // the other would be lost
			return nil, ingest.Reject(ingest.BadRequest,
				fmt.Errorf("the form has a second part %q: send each profile in a request of its own", part.FormName()))
		}
		return to, nil
	})
	if err == nil && form.profile == nil {
		err = ingest.Reject(ingest.Empty, errors.New("the form has no part profile or jfr"))
	}
	return form, err
}

// baseline returns a Baseline with the totals of previous: old versions of pyroscope-go send the last totals beside the
// new ones.
func (s *Server) baseline(ctx context.Context, p ingest.Payload, previous []byte) (*decode.Baseline, error) {
	b := decode.NewBaseline(0)
	p.Data, p.Baseline = previous, b
	if p.Fetched = p.From; p.Fetched.IsZero() {
		p.Fetched = time.Now()
	}
	if _, _, err := s.ingest.Decode(ctx, p); err != nil {
		return nil, fmt.Errorf("prev_profile: %w", err)
	}
	b.Commit()
	return b, nil
}

// foldedOptions returns the types of folded stacks. The period of samples follows from the sampling rate in the query.
func foldedOptions(text *pyroscopewire.TextType, in *pyroscopewire.Ingest) folded.Options {
	o := folded.Options{SampleType: text.SampleType, Unit: text.Unit, WithoutValues: in.Format == formatLines}
	if text.PeriodType != "" {
		const defaultPeriod = time.Second / 100 // Pyroscope's
		o.PeriodType, o.PeriodUnit, o.Period = text.PeriodType, "nanoseconds", int64(cmp.Or(in.Period(), defaultPeriod))
	}
	if !in.From.IsZero() {
		o.TimeNanos = uint64(in.From.UnixNano())
	}
	return o
}

// maxLabelBytes bounds the labels of a sender: each of its profiles repeats them.
const maxLabelBytes = 64 << 10

// tenant returns the tenant of a request if it becomes an attribute.
func (s *Server) tenant(r *pushRequest) string {
	if s.cfg.Pyroscope.TenantAttribute == "" {
		return ""
	}
	return dictionary.ValidUTF8(r.Header.Get("X-Scope-OrgID"))
}

// payload returns a payload without data, with the identity of its sender.
func (s *Server) payload(reservation *budget.Reservation, tenant string, from *pyroscopewire.Source) (ingest.Payload,
	error) {
	size := len(tenant) + len(from.Service) + len(from.SessionID) + len(from.ProfileName) + len(from.ScopeName) +
		len(from.ScopeVersion)
	for _, l := range from.Labels {
		size += len(l.Name) + len(l.Value)
	}
	if size > maxLabelBytes {
		return ingest.Payload{},
			ingest.Reject(ingest.TooLarge, fmt.Errorf("labels of %d bytes: there can be %d at most", size, maxLabelBytes))
	}
	id := ingest.NewIdentity()
	put := func(key, value string) {
		if key != "" && value != "" {
			id.Stated.PutStr(dictionary.ValidUTF8(key), dictionary.ValidUTF8(value))
		}
	}
	rename := func(label, otherwise string) string {
		if key, ok := s.cfg.Pyroscope.Labels[label]; ok {
			return key
		}
		return otherwise
	}
	put(s.cfg.Pyroscope.SessionID, from.SessionID) // a label of that name wins
	for _, l := range from.Labels {
		put(rename(l.Name, l.Name), l.Value)
	}
	put(s.cfg.Pyroscope.TenantAttribute, tenant)
	put(rename(pyroscopewire.LabelService, ingest.AttributeServiceName), from.Service)
	return ingest.Payload{
		Identity: id, Reservation: reservation, Format: formats.Pprof, Temporality: from.Temporality,
		ProfileName: kind.Canonical(dictionary.ValidUTF8(from.ProfileName)), IsNamedByTypes: true,
		ScopeName: dictionary.ValidUTF8(from.ScopeName), ScopeVersion: dictionary.ValidUTF8(from.ScopeVersion),
	}, nil
}

// handleConnect answers push.v1 in Connect's unary form. Clients without Connect send the same messages.
func (s *Server) handleConnect(w http.ResponseWriter, r *pushRequest) error {
	if err := checkProtocol(r.Request); err != nil {
		return err
	}
	data, err := s.readBody(r)
	if err != nil {
		return err
	}
	parse, content, empty := pyroscopewire.ParsePush, "application/proto", ""
	if httpserver.ContentType(r.Request) == httpserver.ContentJSON {
		parse, content, empty = pyroscopewire.ParsePushJSON, httpserver.ContentJSON, "{}"
	}
	if err := s.push(r, data, parse); err != nil {
		return err
	}
	httpserver.Answer(w, content, []byte(empty), http.StatusOK)
	return nil
}

// push decodes and delivers the profiles of a message.
func (s *Server) push(r *pushRequest, message []byte, parse func([]byte) ([]pyroscopewire.Series, error)) error {
	series, err := parse(message)
	if err != nil {
		return ingest.Reject(ingest.BadRequest, err)
	}
	var payloads []namedPayload
	tenant := s.tenant(r)
	for _, one := range series {
		p, err := s.payload(r.reservation, tenant, &one.Source)
		if err != nil {
			return err
		}
		for _, p.Data = range one.Profiles {
			payloads = append(payloads, namedPayload{Payload: p})
		}
	}
	return s.ingestAll(r.Context(), payloads, &ingest.Shared{OtherBytes: len(message)})
}

const contentGRPC = "application/grpc"

func isGRPC(r *http.Request) bool {
	kind := httpserver.ContentType(r)
	return (kind == contentGRPC || kind == contentGRPC+"+proto") && r.ProtoMajor == 2
}

// checkProtocol returns an error for the protocols of RPC that are not served: the sender would not read the answer.
func checkProtocol(r *http.Request) error {
	kind := httpserver.ContentType(r)
	if strings.HasPrefix(kind, contentGRPC) || strings.HasPrefix(kind, "application/connect+") {
		return ingest.Reject(ingest.BadRequest, fmt.Errorf("%w: %s over HTTP/%d; use Connect, or gRPC over HTTP/2",
			errFormat, kind, r.ProtoMajor))
	}
	return nil
}

// handleGRPC answers push.v1 over gRPC, on the listener of HTTP.
func (s *Server) handleGRPC(w http.ResponseWriter, r *pushRequest) error {
	body, err := s.readBody(r)
	if err != nil {
		return err
	}
	// A byte of flags and four of length precede the message.
	if len(body) < 5 || body[0] > 1 || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-5) {
		return ingest.Reject(ingest.BadRequest, errors.New("not a gRPC message"))
	}
	message := body[5:]
	if isCompressed := body[0] == 1; isCompressed {
		if encoding := r.Header.Get("Grpc-Encoding"); encoding != "gzip" {
			return ingest.Reject(ingest.Encoding, fmt.Errorf("grpc-encoding %q: use gzip or identity", encoding))
		}
		if message, err = s.ingest.Plain(r.Context(),
			&ingest.Payload{Data: message, Reservation: r.reservation}); err != nil {
			return err
		}
	}
	if err := s.push(r, message, pyroscopewire.ParsePush); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(make([]byte, 5)) // a PushResponse has no fields
	w.Header().Set("Grpc-Status", "0")
	return nil
}

// grpcErrors answers calls over gRPC with a status only.
var grpcErrors = connect.NewErrorWriter()

// writePyroscopeError answers calls over gRPC, or as Connect's unary calls and Pyroscope's /ingest do.
func writePyroscopeError(w http.ResponseWriter, r *http.Request, status int, err error) {
	code, reason := connect.Code(otlpstatus.CodeOf(status)), otlpstatus.Reason(err)
	if isGRPC(r) {
		_ = grpcErrors.Write(w, r, connect.NewError(code, errors.New(reason))) // the sender may be gone
		return
	}
	body, _ := json.Marshal(map[string]string{"code": code.String(), "message": reason}) // strings always marshal
	httpserver.Answer(w, httpserver.ContentJSON, body, status)
}
