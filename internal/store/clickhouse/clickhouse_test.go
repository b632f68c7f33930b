// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// server answers each statement by answer, and keeps its parameters.
func server(t *testing.T, answer func(w http.ResponseWriter, query url.Values)) *Engine {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			assert.NoError(t, r.ParseMultipartForm(1<<20))
		}
		query := r.URL.Query()
		if strings.Contains(query.Get("query"), "system.columns") {
			_, _ = w.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 3), 30))
			return
		}
		answer(w, query)
	}))
	t.Cleanup(s.Close)
	e, err := New(Config{
		Client: s.Client(), Endpoint: s.URL, Database: "default", Table: "otel_profiles", Username: "me", Password: "secret",
		MaxResultRows: 7, MaxResultBytes: 99,
	})
	require.NoError(t, err)
	return e
}

// What a client chooses is a parameter, never a part of SQL.
func TestStringsAreParameters(t *testing.T) {
	evil := "x' OR 1=1 -- `\\\n\t{p0:String}"
	sent := map[string]bool{}
	e := server(t, func(_ http.ResponseWriter, query url.Values) {
		assert.NotContains(t, query.Get("query"), "OR 1=1", "%s", query.Get("query"))
		for key, values := range query {
			if strings.HasPrefix(key, "param_") {
				sent[values[0]] = true
			}
		}
		assert.Equal(t, "7", query.Get("max_result_rows"))
		assert.Equal(t, "99", query.Get("max_result_bytes"))
		assert.Equal(t, "throw", query.Get("result_overflow_mode"))
	})
	typ := model.SampleType{Type: evil, Unit: evil}
	require.NoError(t, e.Types(t.Context(), evil, 1, 2, nil))
	require.NoError(t, e.Series(t.Context(), evil, 1, 2, nil))
	require.NoError(t,
		e.Profiles(t.Context(), []answers.EngineType{{Service: evil, Stated: evil, Type: typ, PeriodType: typ}}, 1, 2, nil))
	require.NoError(t, e.Rows(t.Context(), &answers.EngineQuery{
		Types:      []answers.EngineType{{Service: evil, Stated: evil, Type: typ, PeriodType: typ}},
		Spans:      []answers.EngineSpan{{}},
		WholeUntil: 1, SumsWanted: model.SumsWanted{
			ColumnsWanted: model.ColumnsWanted{Timestamps: true, Links: true}, Stacks: true, From: 1, Until: 2,
			Keys: []model.AttributeKey{{Key: evil, Values: []string{evil, evil}}, {Key: evil}},
		},
	}, nil))
	types := []answers.EngineType{{Service: evil, Stated: evil, Type: typ, PeriodType: typ}}
	_, err := e.HasAttribute(t.Context(), types, 1, 2, evil, []string{evil})
	require.NoError(t, err)
	require.NoError(t, e.Stacks(t.Context(), evil, 1, 2, []answers.EngineID{{1}}, nil))
	assert.True(t, sent[`x' OR 1=1 -- `+"`"+`\\\n\t{p0:String}`], "%v", sent)
	assert.True(t, sent[`['x\' OR 1=1 -- `+"`"+`\\\n\t{p0:String}','x\' OR 1=1 -- `+"`"+`\\\n\t{p0:String}']`], "%v", sent)
	for _, name := range []string{"", "a b", "t`", "1", "t;", "a.b", strings.Repeat("a", 129)} {
		_, err := New(Config{Database: "default", Table: name})
		require.ErrorContains(t, err, "must be identifiers")
	}
}

// An error of the engine says what it was: that of the query, or of the engine.
func TestErrors(t *testing.T) {
	for text, want := range map[string]error{
		"Code: 159. DB::Exception: Timeout exceeded":             context.DeadlineExceeded,
		"Code: 396. DB::Exception: Limit for result exceeded":    model.ErrTooLarge,
		"Code: 241. DB::Exception: Memory limit exceeded":        model.ErrTooLarge,
		"Code: 516. DB::Exception: me: Authentication failed":    answers.ErrEngine,
		"Code: 60. DB::Exception: Table default.x doesn't exist": answers.ErrEngine,
	} {
		e := server(t, func(w http.ResponseWriter, _ url.Values) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, text)
		})
		err := e.Types(t.Context(), "", 1, 0, nil)
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, text)
	}
	login := server(t, func(w http.ResponseWriter, _ url.Values) { _, _ = io.WriteString(w, "<html>Log in</html>") })
	require.ErrorContains(t, login.Types(t.Context(), "", 1, 0, nil), "<html>Log in</html>", "a page is no row")
	e := server(t, func(w http.ResponseWriter, _ url.Values) { _, _ = w.Write([]byte{200}) })
	require.ErrorIs(t, e.Types(t.Context(), "", 1, 0, nil), answers.ErrEngine, "an answer that ends within a row")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	stuck := server(t, func(_ http.ResponseWriter, query url.Values) {
		assert.Equal(t, "1", query.Get("max_execution_time"))
		<-ctx.Done()
		time.Sleep(10 * time.Millisecond)
	})
	require.ErrorIs(t, stuck.Types(ctx, "", 1, 0, nil), context.DeadlineExceeded)
	away, err := New(Config{Client: http.DefaultClient, Endpoint: "http://127.0.0.1:1", Database: "d", Table: "t"})
	require.NoError(t, err)
	err = away.Types(t.Context(), "", 1, 0, nil)
	require.ErrorIs(t, err, answers.ErrEngine)
	require.NotContains(t, err.Error(), "param_")
}

// What an engine sends is read up to the limits, and what a query names is sent up to those of ClickHouse.
func TestBounds(t *testing.T) {
	read := func(e *Engine) error {
		return e.Stacks(t.Context(), "shop", 1, 2, nil, func(*answers.EngineStack) error { return nil })
	}
	row := append(make([]byte, 16), 0, 0, 0, 0, 0)
	for name, c := range map[string]struct {
		answer []byte
		want   string
	}{
		"as much as may be": {bytes.Repeat(row, 100), ""},
		"too much":          {bytes.Repeat(row, 8<<20/len(row)+1), "more than `max_result_bytes`"},
		"a long text":       {append(make([]byte, 16), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), "a length of"},
		"a long list":       {append(make([]byte, 16), 0xff, 0xff, 0xff, 0x7f), "a length of"},
		"a long row": {append(append(make([]byte, 16), 3),
			bytes.Repeat(append([]byte{0x80, 0x80, 0x80, 1}, make([]byte, 2<<20)...), 3)...), "a row of ClickHouse's answer"},
	} {
		e := server(t, func(w http.ResponseWriter, _ url.Values) { _, _ = w.Write(c.answer) })
		e.cfg.MaxResultBytes = 8 << 20
		err := read(e)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, model.ErrTooLarge, name)
		require.ErrorContains(t, err, c.want, name)
	}
	e := server(t, func(http.ResponseWriter, url.Values) { t.Error("this query is too long for ClickHouse") })
	require.ErrorIs(t, e.Types(t.Context(), strings.Repeat("x", maxParameterBytes+1), 1, 2, nil), model.ErrTooLarge)
	types := make([]answers.EngineType, 100)
	for i := range types {
		types[i] = answers.EngineType{Stated: strconv.Itoa(i) + strings.Repeat("x", maxParameterBytes/2)}
	}
	require.ErrorIs(t, e.Profiles(t.Context(), types, 1, 2, nil), model.ErrTooLarge)
}

// FuzzReader reads rows of all kinds of columns.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\x03abc\x02\x01a\x01b\x01c\x01d"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newReader(bytes.NewReader(data), 1<<20)
		for !r.atEnd() && r.err == nil {
			n := len(r.string()) + len(r.attributes(nil)) + len(list(r, nil, r.int32))
			r.id()
			r.bool()
			r.float64()
			require.LessOrEqual(t, n, 3*len(data))
		}
	})
}
