// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// rowBinary is a row as ClickHouse sends it.
type rowBinary []byte

func (r rowBinary) texts(list ...string) rowBinary {
	for _, text := range list {
		r = append(binary.AppendUvarint(r, uint64(len(text))), text...)
	}
	return r
}

func (r rowBinary) ints(list ...int64) rowBinary {
	for _, n := range list {
		r = binary.LittleEndian.AppendUint64(r, uint64(n))
	}
	return r
}

func (r rowBinary) bytes(list ...byte) rowBinary { return append(r, list...) }

// id is a hash of n.
func (r rowBinary) id(n int) rowBinary { return r.ints(int64(n), 1) }

// list is an array of n elements, which are a string each.
func (r rowBinary) list(n int, text string) rowBinary {
	r = binary.AppendUvarint(r, uint64(n))
	for range n {
		r = r.texts(text)
	}
	return r
}

// pairs is a map of n entries.
func (r rowBinary) pairs(n int, key, value string) rowBinary {
	r = binary.AppendUvarint(r, uint64(n))
	for i := range n {
		r = r.texts(fmt.Sprint(key, i), value)
	}
	return r
}

// statement is what a page asks of ClickHouse.
type statement string

const (
	ofLayout   statement = "layout"
	ofTypes    statement = "types"
	ofSeries   statement = "series"
	ofProfiles statement = "profiles"
	ofRows     statement = "rows"
	ofStacks   statement = "stacks"
)

func statementOf(sql string) statement {
	for _, s := range []struct {
		part string
		statement
	}{
		{"system.columns", ofLayout}, {"uniqExact", ofTypes}, {"any(ResourceAttributes)", ofSeries},
		{"ORDER BY Timestamp", ofProfiles},
		{"FunctionNames", ofStacks},
	} {
		if strings.Contains(sql, s.part) {
			return s.statement
		}
	}
	return ofRows
}

// honestRow is row i of an honest answer.
func honestRow(of statement, i int) rowBinary {
	at := time.Now().Add(-time.Hour).UnixNano()
	r := rowBinary{}
	switch of {
	case ofLayout:
		return r.ints(3, 30)
	case ofTypes:
		return r.texts("shop", "process_cpu", fmt.Sprint("cpu", i), "nanoseconds", "cpu", "nanoseconds").ints(at, at+1e9, 1e9,
			1, 1).bytes(0).texts("")
	case ofSeries:
		return r.id(i).pairs(1, "pod", "shop").pairs(0, "", "")
	case ofProfiles:
		return r.texts("process_cpu", "cpu0", "nanoseconds", "cpu", "nanoseconds").id(0).ints(at+int64(i), 1e9, 1, 1, 1, 0,
			0).bytes(0, 0)
	case ofRows:
		return rowOfSum(0, i)
	default:
		r = r.id(i).list(1, fmt.Sprint("main.f", i)).list(1, "main.go")
		return append(append(append(r, 1), 7, 0, 0, 0, 1), rowBinary{}.ints(1).list(1, "/bin/shop")...)
	}
}

// rowOfSum is a value of 1 of stack i in a sum.
func rowOfSum(sum byte, i int) rowBinary {
	return rowBinary{}.bytes(sum, 0, 0, 0).ints(1, 0).id(i)
}

// hostileEngine is a server in place of ClickHouse. One statement gets a hostile answer, the others have one row.
type hostileEngine struct {
	mu     sync.Mutex
	at     statement
	answer func(ctx context.Context, w io.Writer)
}

func (e *hostileEngine) set(at statement, answer func(ctx context.Context, w io.Writer)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at, e.answer = at, answer
}

func (e *hostileEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	e.mu.Lock()
	at, answer := e.at, e.answer
	e.mu.Unlock()
	if of := statementOf(r.URL.Query().Get("query")); of != at {
		_, _ = w.Write(honestRow(of, 0))
		return
	}
	answer(r.Context(), w)
}

// endless returns an answer of rows without an end.
func endless(row func(i int) rowBinary) func(context.Context, io.Writer) {
	return func(ctx context.Context, w io.Writer) {
		var buffer []byte
		for i := 0; ctx.Err() == nil; i++ {
			if buffer = append(buffer, row(i)...); len(buffer) >= 64<<10 {
				if _, err := w.Write(buffer); err != nil {
					return
				}
				buffer = buffer[:0]
			}
		}
	}
}

// once returns an answer of some bytes.
func once(answer []byte) func(context.Context, io.Writer) {
	return func(_ context.Context, w io.Writer) { _, _ = w.Write(answer) }
}

// TestHostileEngine runs config/backends/clickhouse-page.yaml in front of a server that sends the worst that it can,
// and asks it the worst. The page stays below the memory of its container, and each answer is an error that says what
// it was.
func TestHostileEngine(t *testing.T) {
	if os.Getenv("LIMITS") == "" {
		t.Skip("`make limits` runs this, and `make test`")
	}
	const containerMiB, goMiB, senders = 1280, 1024, 3
	engine := &hostileEngine{}
	server := httptest.NewServer(engine)
	defer server.Close()
	n := newNode(t, "config/backends/clickhouse-page.yaml", "")
	n.flags = []string{"--config=yaml:exporters::profile_store::server::query_timeout: 4s"}
	n.env = append(n.env, fmt.Sprintf("GOMEMLIMIT=%dMiB", goMiB), "CLICKHOUSE_HTTP="+server.URL)
	n.start(t)
	w := watchMemory(n)
	defer w.stop()
	long := strings.Repeat("x", 500_000)
	same := func(of statement) func(int) rowBinary { return func(int) rowBinary { return honestRow(of, 0) } }
	of := func(of statement) func(int) rowBinary { return func(i int) rowBinary { return honestRow(of, i) } }
	const shop = "/api/flamegraph?service=shop&profile=process_cpu"
	for _, attack := range []struct {
		name   string
		at     statement
		answer func(context.Context, io.Writer)
		path   string
		status int
		text   string
	}{
		// The layout is asked for until it is known: it is the first.
		{"a broken layout", ofLayout, once([]byte{1}), shop, 503, "unexpected EOF"},
		{"layouts without an end", ofLayout, endless(same(ofLayout)), shop, 400, "max_result_bytes"},
		{"types without an end", ofTypes, endless(of(ofTypes)), shop, 400, "too large"},
		{"long types without an end", ofTypes, endless(func(i int) rowBinary {
			return rowBinary{}.texts("shop", fmt.Sprint(i, long), long, long, long, long).ints(1, 2, 3, 4, 5).bytes(0).texts(long)
		}), shop, 400, "too large"},
		{"series without an end", ofSeries, endless(of(ofSeries)), shop, 400, "too large"},
		{"series of many attributes", ofSeries, endless(func(i int) rowBinary {
			return rowBinary{}.id(i).pairs(60_000, fmt.Sprint(i), "x").pairs(60_000, fmt.Sprint(-i), "y")
		}), shop, 400, "too large"},
		{"long series without an end", ofSeries, endless(func(i int) rowBinary {
			return rowBinary{}.id(i).pairs(1, "key", fmt.Sprint(i, long)).pairs(2, fmt.Sprint(i, long), long)
		}), shop, 400, "too large"},
		{"profiles without an end", ofProfiles, endless(of(ofProfiles)), shop, 400, "too large"},
		{"sums without an end", ofRows, endless(of(ofRows)), shop, 400, "too large"},
		{"a sum that nobody asked for", ofRows, once(rowOfSum(0x7f, 0)), shop, 503, "nobody asked for"},
		{"stacks without an end", ofStacks, endless(of(ofStacks)), shop, 400, "too large"},
		{"one stack without an end", ofStacks, endless(same(ofStacks)), shop, 400, "max_result_bytes"},
		{"deep stacks without an end", ofStacks, endless(func(i int) rowBinary {
			r := rowBinary{}.id(i).list(60_000, fmt.Sprint(i)).list(60_000, fmt.Sprint(i))
			r = append(binary.AppendUvarint(r, 60_000), make([]byte, 4*60_000)...)
			r = append(binary.AppendUvarint(r, 60_000), make([]byte, 8*60_000)...)
			return r.list(60_000, fmt.Sprint(i))
		}), shop, 400, "too large"},
		{"a row that does not end", ofStacks, once(rowBinary{}.id(0).bytes(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)),
			shop, 400, "a length of"},
		{"noise", ofProfiles, once([]byte(strings.Repeat("\x7f\xff\x01\x80", 5000))), shop, 503, "does not answer"},
		{"an answer that stops", ofRows, func(ctx context.Context, w io.Writer) {
			_, _ = w.Write(honestRow(ofRows, 0)[:7])
			w.(http.Flusher).Flush()
			<-ctx.Done()
		}, shop, 503, "took longer"},
		{"an error without an end", ofRows, func(ctx context.Context, w io.Writer) {
			w.(http.ResponseWriter).WriteHeader(http.StatusInternalServerError)
			endless(func(int) rowBinary { return rowBinary(long) })(ctx, w)
		}, shop, 503, "refuses the query"},
		{"a long service", "", nil, "/api/flamegraph?profile=x&service=" + long, 414, "too long"},
		{"a long group", "", nil, shop + "&group_by=" + long, 414, "too long"},
	} {
		t.Run(attack.name, func(t *testing.T) {
			engine.set(attack.at, attack.answer)
			before := w.reset()
			began := time.Now()
			var all sync.WaitGroup
			for range senders {
				all.Go(func() {
					response, err := collectortest.TryAsk(http.MethodGet, "http://"+n.page+attack.path, http.NoBody)
					if !assert.NoError(t, err) {
						return
					}
					var answer struct{ Error string }
					assert.NoError(t, json.Unmarshal([]byte(response.Body), &answer), response.Body)
					// On a busy machine, time can end a query before another limit does.
					if !strings.Contains(answer.Error, "took longer") {
						assert.Equal(t, attack.status, response.StatusCode, "%.400s", response.Body)
						assert.Contains(t, answer.Error, attack.text)
					}
					assert.GreaterOrEqual(t, response.StatusCode, 400)
					assert.NotEmpty(t, answer.Error)
					assert.Less(t, len(response.Body), 2000)
				})
			}
			all.Wait()
			peak, anonymous := w.peak()
			t.Logf("resident %.0f → %.0f MiB (%.0f anonymous) of %d, %.2f s", before, peak, anonymous, containerMiB,
				time.Since(began).Seconds())
			assert.LessOrEqual(t, anonymous+hotPagesMiB, float64(containerMiB))
			require.Empty(t, w.why(), "the process has ended")
		})
	}
}
