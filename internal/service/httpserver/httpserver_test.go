// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const mib = 1 << 20

// zstdAtOnce is zstd by a sender that knows the size of the body: all of it is the window.
const zstdAtOnce = "zstd at once"

func encode(t testing.TB, encoding string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib", "deflate":
		w = zlib.NewWriter(&b)
	case "zstd":
		var err error
		w, err = zstd.NewWriter(&b)
		require.NoError(t, err)
	case zstdAtOnce:
		encoder, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		return encoder.EncodeAll(data, nil)
	case "lz4":
		w = lz4.NewWriter(&b)
	case "x-snappy-framed":
		w = s2.NewWriter(&b, s2.WriterSnappyCompat())
	case "snappy":
		return s2.EncodeSnappy(nil, data)
	default:
		return data
	}
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// listen listens on a port that is free.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}

// serve starts a server that answers with the size of the body that it read, or with the error.
func serve(t *testing.T, budget *budget.Budget, limit int64, then func(*http.Request),
	change ...func(*http.Server)) (*Server, string) {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reservation := budget.Begin()
		defer reservation.Release()
		body, err := OpenBody(w, r, BodyOptions{Reservation: reservation, LimitBytes: limit, Encodings: Encodings})
		var data []byte
		if err == nil {
			data, err = body.ReadAll()
		}
		var fault *BodyError
		if errors.As(err, &fault) {
			http.Error(w, err.Error(), fault.Status)
			return
		}
		if then != nil {
			then(r)
		}
		fmt.Fprint(w, len(data))
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	for _, f := range change {
		f(server)
	}
	listener := listen(t)
	s := Start(server, listener, Options{OnFailure: func(err error) { t.Error(err) }})
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	return s, listener.Addr().String()
}

// post returns the answer's status and text. The status is 0 if the server closed the connection while the body was
// being sent.
func post(t testing.TB, address, encoding string, body io.Reader) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, "http://"+address, body)
	require.NoError(t, err)
	if encoding != "" {
		request.Header.Set("Content-Encoding", encoding)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

func TestBodiesInEveryEncoding(t *testing.T) {
	profiletest.SkipLarge(t)
	const limit = 300_000
	budget := budget.New(128 << 20)
	_, address := serve(t, budget, limit, nil)
	for _, name := range append([]string{"", "identity", zstdAtOnce}, Encodings...) {
		t.Run(name, func(t *testing.T) {
			encoding, _, _ := strings.Cut(name, " ")
			for size, want := range map[int]int{1: 200, 100: 200, 100_000: 200, limit: 200, limit + 1: 413} {
				body := encode(t, name, bytes.Repeat([]byte("0123456789"), size/10+1)[:size])
				// with a length, and chunked
				for _, reader := range []io.Reader{bytes.NewReader(body), io.MultiReader(bytes.NewReader(body))} {
					code, text := post(t, address, encoding, reader)
					assert.Equal(t, want, code, "%d bytes: %s", size, text)
					if want == 200 {
						assert.Equal(t, fmt.Sprint(size), text)
					} else {
						assert.Contains(t, text, fmt.Sprintf("larger than %d bytes", limit))
					}
				}
			}
			if encoding != "" && encoding != "identity" {
				code, text := post(t, address, encoding, strings.NewReader("this is not "+encoding))
				assert.Equal(t, http.StatusBadRequest, code, text)
				truncated := encode(t, name, bytes.Repeat([]byte("0123456789"), 1000))
				code, text = post(t, address, encoding, bytes.NewReader(truncated[:len(truncated)/2]))
				assert.Equal(t, http.StatusBadRequest, code, text)
			}
		})
	}
	code, text := post(t, address, "br", strings.NewReader("x"))
	assert.Equal(t, http.StatusUnsupportedMediaType, code)
	assert.Contains(t, text, `"br"; use one of gzip, zstd`)
	require.Eventually(t, func() bool { return budget.HeldBytes() == 0 }, 30*time.Second, time.Millisecond)
}

// Bodies of a few kilobytes that unpack to many megabytes, eight at a time and in every encoding.
func TestBombsStayWithinTheLimit(t *testing.T) {
	profiletest.SkipLarge(t)
	const limit = 8 * mib
	bombs := map[string][]byte{}
	for _, encoding := range Encodings {
		bombs[encoding] = encode(t, encoding, make([]byte, 64*mib))
	}
	_, address := serve(t, budget.New(128<<20), limit, nil)
	client := serveGRPC(t, 0)
	requireCost := func(send func()) {
		profiletest.RequireCost(t, profiletest.Bound{HeapBytes: 100 * mib}, func() {
			var senders sync.WaitGroup
			for range 8 {
				senders.Go(send)
			}
			senders.Wait()
		})
	}
	for encoding, bomb := range bombs {
		requireCost(func() {
			code, _ := post(t, address, encoding, bytes.NewReader(bomb))
			assert.Contains(t, []int{http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable}, code)
		})
	}
	zeros := make([]byte, 64*mib)
	for _, encoding := range []string{"gzip", "zstd", "snappy"} {
		requireCost(func() {
			err := client.Invoke(t.Context(), "/test/Export", &zeros, new([]byte), grpc.UseCompressor(encoding))
			assert.Contains(t, []codes.Code{codes.ResourceExhausted, codes.Unavailable}, status.Code(err), err)
		})
	}
}

// dribble sends the head of a request, and then one byte per tick until the connection ends.
func dribble(t *testing.T, address string, start []byte, length int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", address, length, start)
	require.NoError(t, err)
	go func() {
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Large bodies that arrive slowly hold what is for large bodies, until the read timeout. Small ones are received
// meanwhile.
func TestSlowSendersLeaveRoomForSmallBodies(t *testing.T) {
	budget := budget.New(16 * mib) // of which bodies have 4, and one may have 3
	_, address := serve(t, budget, 4*mib, nil)
	for range 3 {
		dribble(t, address, make([]byte, 900_000), mib)
	}
	require.Eventually(t, func() bool { return budget.HeldBytes() >= 3*mib }, 30*time.Second, time.Millisecond)
	for range 3 {
		code, _ := post(t, address, "", bytes.NewReader(make([]byte, 200_000)))
		require.Equal(t, http.StatusOK, code)
	}
	code, text := post(t, address, "", bytes.NewReader(make([]byte, mib)))
	assert.Equal(t, http.StatusServiceUnavailable, code, text)
}

func TestShutdownEnds(t *testing.T) {
	const drain = 400 * time.Millisecond
	shutdown := func(t *testing.T, s *Server) error {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		err := s.Shutdown(ctx)
		assert.Less(t, time.Since(began), drain+5*time.Second) // generous: nothing here may take forever
		return err
	}
	budget := budget.New(16 * mib)
	t.Run("idle", func(t *testing.T) {
		s, _ := serve(t, budget, 1000, nil)
		require.NoError(t, s.Shutdown(t.Context()))
	})
	t.Run("a client that sends a byte at a time", func(t *testing.T) {
		s, address := serve(t, budget, mib, nil)
		c := dribble(t, address, []byte("begin"), 1_000_000)
		require.Eventually(t, func() bool { return s.requests.count() == 1 }, 30*time.Second, time.Millisecond)
		require.NoError(t, shutdown(t, s))
		text, _ := io.ReadAll(c)
		assert.Contains(t, string(text), "HTTP/1.1 503")
		assert.Contains(t, string(text), ErrStopping.Error())
	})
	t.Run("a handler that waits for its context", func(t *testing.T) {
		s, address := serve(t, budget, mib, func(r *http.Request) { <-r.Context().Done() })
		code := make(chan int, 1)
		go func() {
			got, _ := post(t, address, "", strings.NewReader("x"))
			code <- got
		}()
		require.Eventually(t, func() bool { return s.requests.count() == 1 }, 30*time.Second, time.Millisecond)
		require.NoError(t, shutdown(t, s))
		assert.Equal(t, http.StatusOK, <-code, "it was answered after its context ended")
	})
	t.Run("a handler that reads nothing", func(t *testing.T) {
		for _, waits := range []bool{true, false} { // the server stops before the rest of the body is received, or meanwhile
			s, address := serve(t, budget, mib, nil, func(server *http.Server) {
				server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if waits {
						<-r.Context().Done()
					}
					w.WriteHeader(http.StatusUnauthorized)
				})
			})
			c := dribble(t, address, []byte("begin"), 1_000_000)
			require.Eventually(t, func() bool { return s.requests.count() == 1 }, 30*time.Second, time.Millisecond)
			require.NoError(t, shutdown(t, s))
			text, _ := io.ReadAll(c)
			assert.Contains(t, string(text), "HTTP/1.1 401")
		}
	})
	t.Run("a handler that waits forever", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		s, address := serve(t, budget, mib, func(*http.Request) { <-release })
		c := dribble(t, address, make([]byte, 1_000_000), 1_000_000)
		require.Eventually(t, func() bool { return s.requests.count() == 1 }, 30*time.Second, time.Millisecond)
		err := shutdown(t, s)
		require.ErrorContains(t, err, "1 requests had not ended")
		_, _ = io.ReadAll(c)
	})
	t.Run("the caller's context ends first", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		s, address := serve(t, budget, mib, func(*http.Request) { <-release })
		dribble(t, address, make([]byte, 1_000_000), 1_000_000)
		require.Eventually(t, func() bool { return s.requests.count() == 1 }, 30*time.Second, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.Error(t, s.Shutdown(ctx))
	})
}

// An answer is written even if the pipeline needs longer than write_timeout.
func TestContextEndsBeforeTheWriteTimeout(t *testing.T) {
	listener := listen(t)
	s := Start(&http.Server{WriteTimeout: 2 * time.Second, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusServiceUnavailable)
		})}, listener, Options{})
	defer func() { _ = s.Shutdown(t.Context()) }()
	code, _ := post(t, listener.Addr().String(), "", strings.NewReader(""))
	assert.Equal(t, http.StatusServiceUnavailable, code)
}

func TestFailureIsReported(t *testing.T) {
	listener := listen(t)
	var failed atomic.Int32
	s := Start(&http.Server{ReadHeaderTimeout: time.Minute}, listener, Options{
		OnFailure: func(error) { failed.Add(1) },
	})
	require.NoError(t, listener.Close())
	require.Eventually(t, func() bool { return failed.Load() == 1 }, 30*time.Second, time.Millisecond)
	_ = s.Shutdown(t.Context())
}

func TestSetRetryAfter(t *testing.T) {
	for delay, want := range map[time.Duration]string{0: "", time.Millisecond: "1", 1500 * time.Millisecond: "2",
		5 * time.Second: "5", math.MaxInt64: "9223372037"} {
		w := httptest.NewRecorder()
		SetRetryAfter(w, delay)
		assert.Equal(t, want, w.Header().Get("Retry-After"))
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	delay := func(value string) time.Duration { return RetryAfter(http.Header{"Retry-After": {value}}, now) }
	assert.Equal(t, 7*time.Second, delay("7"))
	assert.Equal(t, 9*time.Second, delay("Fri, 02 Jan 2026 03:04:14 GMT"))
	assert.Zero(t, delay("soon"))
	assert.Zero(t, RetryAfter(nil, now))
	for _, long := range []string{"9223372036854775807", "99999999999999999999", "86400",
		"Fri, 31 Dec 9999 23:59:59 GMT"} {
		assert.Greater(t, delay(long), time.Hour, long)
	}
	assert.LessOrEqual(t, delay("-5"), time.Duration(0))
}

func TestRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request arrived at another origin")
	}))
	defer elsewhere.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Referer"))
		switch r.URL.Path {
		case "/see-other":
			http.Redirect(w, r, "/here", http.StatusSeeOther)
		case "/temporary":
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		}
	}))
	defer s.Close()
	for _, test := range []struct {
		method, path string
		check        func(*http.Request, []*http.Request) error
		status       int
		err          string
	}{
		{"GET", "/see-other", SameOriginOnly, http.StatusOK, ""},
		{"POST", "/see-other", KeepMethod, http.StatusSeeOther, ""},
		{"POST", "/temporary", KeepMethod, http.StatusOK, ""},
		{"GET", "/away", SameOriginOnly, 0, "redirects to another scheme, host or port"},
		{"POST", "/away", KeepMethod, 0, "redirects to another scheme, host or port"},
		{"POST", "/loop", KeepMethod, 0, "redirects in a loop"},
	} {
		request, err := http.NewRequest(test.method, s.URL+test.path+"?secret", strings.NewReader("data"))
		require.NoError(t, err)
		response, err := (&http.Client{CheckRedirect: test.check}).Do(request)
		if test.err != "" {
			require.ErrorContains(t, err, test.err, test)
			continue
		}
		require.NoError(t, err, test)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, test.status, response.StatusCode, test)
	}
}

// Over HTTP/2, too, a body that has not arrived is refused when the server stops, and handlers that wait are answered.
func TestShutdownOfHTTP2(t *testing.T) {
	unencrypted := new(http.Protocols)
	unencrypted.SetUnencryptedHTTP2(true)
	s, address := serve(t, budget.New(16*mib), mib, func(r *http.Request) { <-r.Context().Done() },
		func(s *http.Server) { s.Protocols = unencrypted })
	client := &http.Client{Transport: &http.Transport{Protocols: unencrypted}}
	answers := make(chan string, 20)
	for i := range cap(answers) {
		var body io.Reader = strings.NewReader("x")
		if i%2 == 0 {
			reader, writer := io.Pipe()
			defer writer.Close()
			go func() { _, _ = writer.Write([]byte("x")) }()
			body = reader
		}
		go func() {
			response, err := client.Post("http://"+address, "", body)
			if err != nil {
				answers <- err.Error()
				return
			}
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			answers <- fmt.Sprint(response.StatusCode, " ", string(text))
		}()
	}
	require.Eventually(t, func() bool { return s.requests.count() == cap(answers) }, 30*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.NoError(t, s.Shutdown(ctx))
	got := map[string]int{}
	for range cap(answers) {
		got[<-answers]++
	}
	assert.Equal(t, map[string]int{"200 1": cap(answers) / 2, "503 " + ErrStopping.Error() + "\n": cap(answers) / 2}, got)
}

func TestCheckConfig(t *testing.T) {
	config := confighttp.NewDefaultServerConfig()
	config.NetAddr.Endpoint = "localhost:0"
	require.NoError(t, CheckConfig(&config))
	config.ReadTimeout, config.ReadHeaderTimeout, config.WriteTimeout, config.MaxRequestBodySize = -1, -1, -1, -1
	config.Keepalive = configoptional.Some(confighttp.KeepaliveServerConfig{IdleTimeout: -1})
	err := CheckConfig(&config)
	for _, key := range []string{"read_timeout", "read_header_timeout", "write_timeout", "keepalive.idle_timeout",
		"max_request_body_size"} {
		require.ErrorContains(t, err, "`"+key+"` must not be negative")
	}
}

// OTLP's senders retry after a late body, and its error does not name addresses.
func TestALateBody(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reservation := budget.New(16 * mib).Begin()
		defer reservation.Release()
		body, err := OpenBody(w, r, BodyOptions{Reservation: reservation, LimitBytes: mib, Encodings: Encodings})
		if err == nil {
			_, err = body.ReadAll()
		}
		AnswerOTLPFailure(w, r, err)
	}))
	s.Config.ReadTimeout = 300 * time.Millisecond
	s.Start()
	defer s.Close()
	for _, encoding := range []string{"identity", "gzip"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: %s\r\nContent-Length: 100\r\n\r\n{",
			encoding)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		assert.NotEmpty(t, response.Header.Get("Retry-After"))
		assert.Contains(t, string(text), "did not arrive in time")
		assert.NotContains(t, string(text), "127.0.0.1")
	}
}

// Many clients read the answer only once they have sent everything, which a slow one has not when its body is refused.
// The rest is received for them, within bounds of bytes and time.
func TestRefusedBodiesAreReceived(t *testing.T) {
	for name, tc := range map[string]struct {
		size  int
		waits time.Duration
		isCut bool
		want  int
	}{
		"soon":     {size: 2 * mib},
		"slowly":   {size: 2 * mib, waits: time.Second}, // net/http closes the connection after half a second
		"nobody":   {size: 8 * mib, waits: time.Second, want: http.StatusUnauthorized},
		"too late": {size: 2 * mib, waits: 4 * time.Second, isCut: true},
		"too much": {size: 64 * mib, waits: time.Second, isCut: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held := budget.New(16 * mib)
			_, address := serve(t, held, mib, nil, func(s *http.Server) {
				s.WriteTimeout = 3 * time.Second
				if tc.want == http.StatusUnauthorized {
					s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.want) })
				}
			})
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", tc.size)
			require.NoError(t, err)
			half := make([]byte, tc.size/2)
			if tc.size < 64*mib { // a client whose body is not received waits for room in the connection's buffers
				_, err = conn.Write(half)
				require.NoError(t, err)
			}
			time.Sleep(tc.waits)
			assert.Zero(t, held.HeldBytes(), "nothing is reserved for what is discarded")
			_, err = conn.Write(half)
			if tc.isCut {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, cmp.Or(tc.want, http.StatusRequestEntityTooLarge), response.StatusCode)
		})
	}
}

// A client that waits for "100 Continue" gets the refusal in its place.
func TestRefusedBodiesAreNotAskedFor(t *testing.T) {
	_, address := serve(t, budget.New(16*mib), mib, nil)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", 2*mib)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(discardTime)))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
}

// HTTP/2 has no connection to close: the refusal of one body, however long, is read, and other requests go on.
func TestRefusedBodiesOfHTTP2(t *testing.T) {
	unencrypted := new(http.Protocols)
	unencrypted.SetUnencryptedHTTP2(true)
	_, address := serve(t, budget.New(16*mib), mib, nil, func(s *http.Server) { s.Protocols = unencrypted })
	connections := atomic.Int32{}
	client := &http.Client{Transport: &http.Transport{Protocols: unencrypted,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}}}
	for range 5 {
		for size, want := range map[int]int{1000: http.StatusOK, 2 * mib: http.StatusRequestEntityTooLarge,
			64 * mib: http.StatusRequestEntityTooLarge} {
			response, err := client.Post("http://"+address, "", bytes.NewReader(make([]byte, size)))
			require.NoError(t, err)
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, want, response.StatusCode)
			assert.NotEmpty(t, text)
		}
	}
	assert.Equal(t, int32(1), connections.Load())
}
