// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/querier"
)

// This file serves what Grafana's Pyroscope data source and its Profiles Drilldown app call: querier.v1.QuerierService
// by Connect, gRPC-Web and gRPC, as protobuf and as JSON, and the paths below /pyroscope/. Queries have the same limits
// as the page's.

// callPaths begin the paths of calls, which are POST requests.
var callPaths = []string{"/querier.v1.", "/settings.v1.", "/adhocprofiles.v1.", "/vcs.v1."}

// isCall reports whether a request is a call. Calls only read.
func isCall(r *http.Request) bool {
	return r.Method == http.MethodPost &&
		slices.ContainsFunc(callPaths, func(path string) bool { return strings.HasPrefix(r.URL.Path, path) })
}

// maxCallBytes bounds a call after decompression: 10,000 ids fit.
const maxCallBytes = 512 << 10

// answerFactor is how many times its bytes an answer takes: as a message, encoded, and compressed.
const answerFactor = 4

func (s *server) pyroscope(compress func(http.Handler) http.HandlerFunc) {
	q := &querier.Querier{Store: s.Store, Now: s.Now}
	path, calls := querierv1connect.NewQuerierServiceHandler(q, connect.WithReadMaxBytes(maxCallBytes),
		connect.WithCompressMinBytes(1<<10), connect.WithInterceptors(connect.UnaryInterceptorFunc(s.limit)))
	s.mux.Handle("POST "+path, s.claimed(calls))
	s.mux.Handle("GET /pyroscope/render", compress(s.query("render", rendered(q.Render))))
	s.mux.Handle("GET /pyroscope/render-diff", compress(s.query("render_diff", rendered(q.RenderDiff))))
	s.mux.HandleFunc("GET /api/v1/status/buildinfo", func(w http.ResponseWriter, _ *http.Request) {
		a, _ := jsonAnswer(map[string]any{"status": "success", "data": map[string]string{
			"version": s.Version, "revision": "", "branch": "", "buildUser": "", "buildDate": "", "goVersion": "",
		}})
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write(a.last)
	})
}

func rendered(render func(context.Context, url.Values, io.Writer) (string, error)) func(*request) (*answer, error) {
	return func(r *request) (*answer, error) {
		a := &answer{body: body{meter: r.meter}}
		var err error
		a.contentType, err = render(querier.WithMeter(r.Context(), r.meter), r.URL.Query(), a)
		return a, err
	}
}

type callKey struct{}

type call struct {
	reservation *budget.Reservation
	w           http.ResponseWriter
}

// parsedFactor is how many times its bytes a parsed call can take: those of a list of short ids.
const parsedFactor = 16

// readCall reads the body of a call into memory that the reservation holds. Connect would read it outside of the
// budget.
func readCall(w http.ResponseWriter, r *http.Request, reservation *budget.Reservation) error {
	data, err := httpserver.ReadBody(w, r, httpserver.BodyOptions{
		Reservation: reservation, LimitBytes: maxCallBytes, Encodings: []string{"gzip"},
	})
	if err == nil {
		err = reservation.ReserveBody(r.Context(), parsedFactor*int64(len(data)))
	}
	r.Header.Del("Content-Encoding")
	r.Body = io.NopCloser(bytes.NewReader(data))
	return err
}

// claimed holds a reservation until the answer to a call is written.
func (s *server) claimed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reservation := s.queries.Begin()
		defer reservation.Release()
		if err := readCall(w, r, reservation); err != nil {
			writeCallError(w, r, s.callError(err))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, &call{reservation, w})))
	})
}

// limit runs a call as a query.
func (s *server) limit(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, in connect.AnyRequest) (out connect.AnyResponse, err error) {
		c, ok := ctx.Value(callKey{}).(*call)
		if !ok {
			return nil, errors.New("the call has no reservation")
		}
		err = s.queries.Run(ctx, c.reservation, "querier", func(ctx context.Context, meter *size.Meter) (int, error) {
			if out, err = next(querier.WithMeter(ctx, meter), in); err != nil {
				return 0, err
			}
			message, _ := out.Any().(proto.Message)
			return answerFactor * proto.Size(message), nil
		})
		if err != nil {
			return nil, s.callError(err)
		}
		if s.ReadTimeout > 0 {
			_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(s.ReadTimeout))
		}
		return out, nil
	}
}

// callCodes are the codes of calls for statuses of HTTP other than 400.
var callCodes = map[int]connect.Code{
	http.StatusNotFound: connect.CodeNotFound, http.StatusRequestEntityTooLarge: connect.CodeResourceExhausted,
	http.StatusUnsupportedMediaType: connect.CodeUnimplemented, http.StatusServiceUnavailable: connect.CodeUnavailable,
	http.StatusForbidden: connect.CodePermissionDenied,
}

func (s *server) callError(err error) *connect.Error {
	if known, ok := errors.AsType[*connect.Error](err); ok {
		return known
	}
	e := s.queries.Error(err)
	code := cmp.Or(callCodes[e.Status], connect.CodeInvalidArgument)
	if errors.Is(err, context.DeadlineExceeded) {
		code = connect.CodeDeadlineExceeded
	}
	message, hint := e.Message, e.Hint
	if errors.Is(e, model.ErrTooLarge) {
		hint = "choose a shorter time, or add labels to the selector"
	}
	if hint != "" {
		message += "; " + hint
	}
	return connect.NewError(code, errors.New(message))
}

var errNotServed = connect.NewError(connect.CodeUnimplemented,
	errors.New("this is a store of profiles: it has no settings, recording rules, ad hoc profiles or source code"))

var callErrors = connect.NewErrorWriter()

// writeCallError answers a call with an error, in the protocol of the call.
func writeCallError(w http.ResponseWriter, r *http.Request, err *connect.Error) {
	if !callErrors.IsSupported(r) {
		// Connect in JSON regardless of the type: the app's own client sends none for some calls.
		r = r.Clone(r.Context())
		r.Header.Set("Content-Type", jsonType)
	}
	_ = callErrors.Write(w, r, err) // the client is gone
}
