// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// Requests that are nested without end are refused before they are unmarshalled, which would overflow the stack.
func TestNestedRequests(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	value := []byte(nil)
	field := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	for range 10_000 {
		value = field(5, field(1, value))
	}
	body := field(1, field(2, field(2, field(5, value))))
	response := post(t, "http://"+f.address("http")+logsPath, body, "Content-Type", httpserver.ContentProtobuf)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	text := `{"resourceLogs":` + strings.Repeat("[", 1<<20)
	response = post(t, "http://"+f.address("http")+logsPath, []byte(text), "Content-Type", httpserver.ContentJSON)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	refused, answer := f.postHEC(t, eventPath, `{"event":`+strings.Repeat("[", 1<<20))
	assert.Equal(t, http.StatusBadRequest, refused.StatusCode)
	assert.Equal(t, hec.InvalidData, answer.Code)
	assert.Equal(t, codes.InvalidArgument, status.Code(f.sendRaw(t, body)))
	assert.Equal(t, codes.InvalidArgument, status.Code(f.sendRaw(t, bytes.Repeat(field(1, nil), 1<<20))),
		"empty resources")
	assert.Equal(t, codes.InvalidArgument, status.Code(f.sendRaw(t, []byte{0xff})))
	assert.NoError(t, f.sendRaw(t, captured(t)["v3.1.2-001-cpu"]))
}

// sendRaw sends a message over gRPC as it is.
func (f *fixture) sendRaw(t testing.TB, message []byte) error {
	return f.dial(t).Invoke(t.Context(), "/"+logsService+"/Export", &message, new([]byte),
		grpc.ForceCodecV2(httpserver.RawCodec{}))
}

// Without room, senders are told to retry.
func TestBusy(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	defer collectortest.FillBudget(t, budget.Process())()
	var senders sync.WaitGroup
	senders.Go(func() {
		err := f.sendRaw(t, captured(t)["v3.1.2-001-cpu"])
		assert.Equal(t, codes.Unavailable, status.Code(err), err)
		assert.Equal(t, otlpstatus.DefaultRetryDelay, otlpstatus.RetryDelay(err))
	})
	seconds := strconv.Itoa(int(otlpstatus.DefaultRetryDelay / time.Second))
	// A body above what is reserved for small ones.
	body := bytes.Repeat([]byte(" "), 2<<20)
	senders.Go(func() {
		response := post(t, "http://"+f.address("http")+logsPath, body, "Content-Type", httpserver.ContentProtobuf)
		assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		assert.Equal(t, seconds, response.Header.Get("Retry-After"))
	})
	senders.Go(func() {
		response, answer := f.postHEC(t, eventPath, string(body))
		assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		assert.Equal(t, seconds, response.Header.Get("Retry-After"))
		assert.Equal(t, hec.Busy, answer.Code)
	})
	senders.Wait()
}

// An HEC body is admitted for what encoding/json takes to read it, which is many times its size.
func TestHECIsAdmitted(t *testing.T) {
	budget.SetMemoryLimit(0)
	defer budget.SetMemoryLimit(math.MaxInt64)
	f := startFixture(t, allOfThem, false)
	reservation := budget.Process().Begin()
	defer reservation.Release()
	require.NoError(t, reservation.Reserve(t.Context(), budget.Process().MaxProfileBytes()))
	for event, want := range map[string]hec.Code{
		`"` + strings.Repeat("x", 300_000) + `"`:    hec.Busy,
		"[0" + strings.Repeat(",[]", 100_000) + "]": hec.TooLarge,
	} {
		_, answer := f.postHEC(t, eventPath, `{"event":`+event+"}")
		assert.Equal(t, want, answer.Code, answer)
	}
}

// slowSenders begin a request to each server and leave it there.
func slowSenders(t testing.TB, f *fixture) map[string]func() string {
	t.Helper()
	begin := func(address, path, content string) func() string {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n{", path,
			content)
		require.NoError(t, err)
		return func() string {
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			answer := make([]byte, 12)
			_, _ = conn.Read(answer)
			return string(answer)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := f.dial(t).NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/"+logsService+"/Export", grpc.ForceCodecV2(httpserver.RawCodec{}))
	require.NoError(t, err)
	return map[string]func() string{
		"http": begin(f.address("http"), logsPath, httpserver.ContentProtobuf),
		"hec":  begin(f.address("hec"), eventPath, httpserver.ContentJSON),
		"grpc": func() string { return status.Code(stream.RecvMsg(new([]byte))).String() },
	}
}

// A sender that sends its body a byte a second holds neither a place nor a shutdown.
func TestSlowSenders(t *testing.T) {
	t.Run("shutdown", func(t *testing.T) {
		f := startFixture(t, allOfThem, false)
		answers := slowSenders(t, f)
		time.Sleep(100 * time.Millisecond) // so that the requests are under way
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.NoError(t, f.receiver.Shutdown(ctx))
		for name, want := range map[string]string{"http": "HTTP/1.1 503", "hec": "HTTP/1.1 503",
			"grpc": codes.Unavailable.String()} {
			assert.Equal(t, want, answers[name](), name)
		}
	})
	t.Run("read timeout", func(t *testing.T) {
		const at = "{endpoint: 'localhost:0', read_timeout: 200ms}"
		f := startFixture(t, "protocols: {grpc: "+at+", http: "+at+", hec: "+at+"}", false)
		answers := slowSenders(t, f)
		for name, want := range map[string]string{"http": "HTTP/1.1 503", "hec": "HTTP/1.1 503",
			"grpc": codes.DeadlineExceeded.String()} {
			assert.Equal(t, want, answers[name](), name)
		}
	})
}
