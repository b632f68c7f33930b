// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpserver receives OTLP: a gRPC server and an HTTP server, each for all signals of a receiver.
//
//	StartOTLP       starts the servers, which receive messages within the budget
//	Signal.Export   reads a message that has arrived, and passes it on
//	Logs            the signal of OTLP logs
//	Servers         the servers of a receiver, which start and stop together
package otlpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
)

// Signal is a kind of message that a server receives.
type Signal struct {
	// Name is what senders send: logs.
	Name string
	// Services are the names of its gRPC services, Paths those of its HTTP paths.
	Services, Paths []string
	// Export reads a message and passes on its data. The error is that of the pipeline, or a *httpserver.BodyError if
	// the message itself is at fault.
	Export func(context.Context, *Message) (Response, error)
}

// Message is a message that has arrived.
type Message struct {
	// Data may be changed. It is valid until Export returns.
	Data   []byte
	IsJSON bool
	// Reservation holds the size of Data. What the message becomes is added to it.
	Reservation *budget.Reservation
	// Header returns the values of an HTTP header, or of a key of gRPC's metadata.
	Header func(key string) []string
}

// Format is the name of the message's encoding in the Collector's own traces.
func (m *Message) Format() string {
	if m.IsJSON {
		return "json"
	}
	return "protobuf"
}

// Response is the answer to a message that was accepted, in whole or in part.
type Response interface {
	MarshalProto() ([]byte, error)
	MarshalJSON() ([]byte, error)
}

// Logs returns the signal of OTLP logs. deliver passes on the records of a message, and returns how many were rejected,
// and why.
func Logs(deliver func(context.Context, *Message, plog.Logs) (rejected int, reasons string, err error)) Signal {
	export := func(ctx context.Context, m *Message) (Response, error) {
		request, response := plogotlp.NewExportRequest(), plogotlp.NewExportResponse()
		check, unmarshal := size.Logs, request.UnmarshalProto
		if m.IsJSON {
			check, unmarshal = size.JSON, request.UnmarshalJSON
		}
		if err := Admit(ctx, m.Reservation, m.Data, check); err != nil {
			return nil, err
		}
		err := unmarshal(m.Data)
		if err == nil && m.IsJSON && bytes.ContainsRune(m.Data, '"') && !logsKey.Match(m.Data) {
			err = errOtherSignal
		}
		if err != nil {
			return nil, BadRequest(fmt.Errorf("not an ExportLogsServiceRequest: %w; "+
				"profiles go to /v1development/profiles of the receiver otlp_profiles", err))
		}
		rejected, reasons, err := deliver(ctx, m, request.Logs())
		if rejected > 0 {
			response.PartialSuccess().SetRejectedLogRecords(int64(rejected))
			response.PartialSuccess().SetErrorMessage(reasons)
		}
		return response, err
	}
	return Signal{
		Name: "logs", Services: []string{"opentelemetry.proto.collector.logs.v1.LogsService"}, Paths: []string{"/v1/logs"},
		Export: export,
	}
}

// A message of another signal in JSON has keys, but none that is known here.
var (
	logsKey        = regexp.MustCompile(`"resource_?[lL]ogs"`)
	errOtherSignal = errors.New("these are not log records")
)

// Admit adds the memory that check estimates for a message to its reservation. If check refuses the message, the error
// is a *httpserver.BodyError.
func Admit(ctx context.Context, reservation *budget.Reservation, data []byte,
	check func([]byte) (memoryBytes int, err error)) error {
	memory, err := check(data)
	switch {
	case errors.Is(err, size.ErrExpands):
		return &httpserver.BodyError{Status: http.StatusRequestEntityTooLarge, Err: err}
	case err != nil:
		return BadRequest(err)
	}
	err = reservation.Reserve(ctx, int64(memory))
	if errors.Is(err, size.ErrFull) {
		return &httpserver.BodyError{Status: http.StatusRequestEntityTooLarge, Err: err}
	}
	return err
}

// BadRequest returns the error for a message that is itself at fault.
func BadRequest(err error) error {
	return &httpserver.BodyError{Status: http.StatusBadRequest, Err: err}
}

// Server is a running server.
type Server interface {
	Addr() net.Addr
	Shutdown(context.Context) error
}

// Protocols are the servers that receive OTLP. One that is nil is not started.
type Protocols struct {
	GRPC *GRPCConfig
	HTTP *HTTPConfig
	// MaxBytes bounds messages in addition to their configuration, as sent and decompressed; 0 adds no bound.
	MaxBytes int64
	// Signals returns the signals of a protocol's server.
	Signals func(protocol string) ([]Signal, error)
}

// Servers are the running servers of a receiver, by their keys in the configuration.
type Servers map[string]Server

// StartOTLP starts the servers of OTLP and adds them.
func (s *Servers) StartOTLP(ctx context.Context, env httpserver.Env, p Protocols) error {
	if p.GRPC != nil {
		if err := s.Start("grpc", func() (Server, error) { return p.startGRPC(ctx, env) }); err != nil {
			return err
		}
	}
	if p.HTTP != nil {
		return s.Start("http", func() (Server, error) { return p.startHTTP(ctx, env) })
	}
	return nil
}

// Start starts a server and adds it.
func (s *Servers) Start(protocol string, start func() (Server, error)) error {
	started, err := start()
	if err != nil {
		return fmt.Errorf("start `%s`: %w", protocol, err)
	}
	if *s == nil {
		*s = Servers{}
	}
	(*s)[protocol] = started
	return nil
}

// Shutdown stops all servers at once, since they share the time.
func (s *Servers) Shutdown(ctx context.Context) error {
	err := shutdown.All(ctx, *s)
	*s = nil
	return err
}

func (p *Protocols) startGRPC(ctx context.Context, env httpserver.Env) (Server, error) {
	signals, err := p.Signals("grpc")
	if err != nil {
		return nil, err
	}
	server := &httpserver.GRPC{
		Config: &p.GRPC.Server, MaxBytes: p.MaxBytes, ReadTimeout: p.GRPC.ReadTimeout,
		Services: map[string]httpserver.Export{},
	}
	var names []string
	for _, signal := range signals {
		names = append(names, signal.Name)
		for _, name := range signal.Services {
			server.Services[name] = signal.exportGRPC
		}
	}
	server.Elsewhere = ": this port is for " + strings.Join(names, " and ") + elsewhere
	if err := server.Start(ctx, env); err != nil {
		return nil, err
	}
	env.Telemetry.Logger.Info("ready for OTLP over gRPC", zap.Stringer("endpoint", server.Addr()))
	return server, nil
}

func (s *Signal) exportGRPC(ctx context.Context, data []byte, reservation *budget.Reservation) ([]byte, error) {
	return s.answer(ctx, &Message{Data: data, Reservation: reservation, Header: func(key string) []string {
		return metadata.ValueFromIncomingContext(ctx, key)
	}})
}

// answer exports a message, and returns the response in its encoding.
func (s *Signal) answer(ctx context.Context, m *Message) ([]byte, error) {
	response, err := s.Export(ctx, m)
	switch {
	case err != nil:
		return nil, err
	case m.IsJSON:
		return response.MarshalJSON()
	}
	return response.MarshalProto()
}

// unknownBodyBytes is how much is read of a body that was sent to an unknown path.
const unknownBodyBytes = 4 << 20

// elsewhere names the ports of others, as the shipped configurations have them.
const elsewhere = ". Pprof, Pyroscope's and Datadog's profiles go to the receiver pprof, by default on port 4040, OTLP over gRPC " +
	"to 4317, and log records of Splunk's agents to 4328, in config/splunk.yaml to 4318; the page of flame graphs is on 4042"

func (p *Protocols) startHTTP(ctx context.Context, env httpserver.Env) (Server, error) {
	signals, err := p.Signals("http")
	if err != nil {
		return nil, err
	}
	server := &httpserver.HTTP{Config: &p.HTTP.Server, MaxBodyBytes: p.MaxBytes, AnswerError: httpserver.AnswerOTLPError}
	mux := http.NewServeMux()
	var hints []string
	for _, signal := range signals {
		for _, path := range signal.Paths {
			mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { signal.exportHTTP(server, w, r) })
		}
		hints = append(hints, signal.Name+" to "+strings.Join(signal.Paths, " or "))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// A client that is still sending would see a reset connection instead of the answer.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, unknownBodyBytes))
		httpserver.AnswerOTLPError(w, r, "nothing is here: send "+strings.Join(hints, ", ")+elsewhere, http.StatusNotFound)
	})
	running, err := server.Start(ctx, mux, env)
	if err != nil {
		return nil, err
	}
	env.Telemetry.Logger.Info("ready for OTLP over HTTP", zap.Stringer("endpoint", running.Addr()))
	return running, nil
}

// exportHTTP answers one request, a POST of protobuf or JSON, in its content type: 200 once the pipeline has accepted
// what the message has.
func (s *Signal) exportHTTP(server *httpserver.HTTP, w http.ResponseWriter, r *http.Request) {
	content := httpserver.ContentType(r)
	isJSON := content == httpserver.ContentJSON
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		httpserver.AnswerOTLPError(w, r, "method "+r.Method+" is not allowed here: use POST", http.StatusMethodNotAllowed)
		return
	case !isJSON && content != httpserver.ContentProtobuf:
		httpserver.AnswerOTLPError(w, r, fmt.Sprintf("Content-Type %q is not accepted: use %s or %s",
			r.Header.Get("Content-Type"), httpserver.ContentProtobuf, httpserver.ContentJSON), http.StatusUnsupportedMediaType)
		return
	}
	reservation := budget.Process().Begin()
	defer reservation.Release()
	m := &Message{IsJSON: isJSON, Reservation: reservation, Header: r.Header.Values}
	var answer []byte
	var err error
	if m.Data, err = server.ReadBody(w, r, reservation); err != nil {
		err = fmt.Errorf("read the body: %w", err)
	} else {
		answer, err = s.answer(r.Context(), m)
	}
	if err != nil {
		httpserver.AnswerOTLPFailure(w, r, err)
		return
	}
	httpserver.Answer(w, content, answer, http.StatusOK)
}
