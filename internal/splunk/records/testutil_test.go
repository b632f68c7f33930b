// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// captured returns the requests of testdata by name.
func captured(t testing.TB) map[string]plog.Logs {
	t.Helper()
	const suffix = ".otlp-logs.pb"
	files := profiletest.Glob(t, filepath.Join("..", "..", "..", "testdata", "splunk", "*"+suffix))
	require.Len(t, files, 9)
	requests := map[string]plog.Logs{}
	for _, file := range files {
		body := profiletest.FileBytes(t, file)
		request := plogotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		requests[strings.TrimSuffix(filepath.Base(file), suffix)] = request.Logs()
	}
	return requests
}

// translated expects every profiling record to be read, and the result to be conformant.
func translated(t testing.TB, ld plog.Logs, opts Options) Result {
	t.Helper()
	ld.MarkReadOnly()
	result := Translate(ld, opts)
	require.Empty(t, result.Rejected)
	require.NoError(t, profiletest.Check(result.Profiles))
	return result
}

// newRecord starts a request of one record with these attributes (key, value, ...).
func newRecord(body string, attributes ...any) (plog.Logs, plog.LogRecord) {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "shop")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(ProfilingName)
	return ld, appendRecord(sl, body, attributes...)
}

func appendRecord(sl plog.ScopeLogs, body string, attributes ...any) plog.LogRecord {
	record := sl.LogRecords().AppendEmpty()
	record.Body().SetStr(body)
	for i := 0; i < len(attributes); i += 2 {
		if err := record.Attributes().PutEmpty(attributes[i].(string)).FromRaw(attributes[i+1]); err != nil {
			panic(err)
		}
	}
	return record
}

// rawPprof writes the messages of a pprof as an agent might, without the rules that profile.Profile imposes.
type rawPprof struct {
	strings []string
	index   map[string]int64
	body    profiletest.PprofWire
	// isPacked reports that locations of samples are one field.
	isPacked bool
}

func (p *rawPprof) str(s string) int64 {
	i, ok := p.index[s]
	if !ok {
		if i = int64(len(p.strings)); i == 0 {
			p.index = map[string]int64{}
		}
		p.strings, p.index[s] = append(p.strings, s), i
	}
	return i
}

// frame adds a function and a location of this id.
func (p *rawPprof) frame(id uint64, function, file string, line int64) {
	p.body = p.body.Function(profiletest.PprofFunctionFields{ID: id, Name: p.str(function), File: p.str(file)}).
		Location(profiletest.PprofLocationFields{ID: id, Lines: []profiletest.PprofLine{{Function: id, Line: line}}})
}

func (p *rawPprof) sampleType(name, unit string) {
	p.body = p.body.ValueType(profiletest.PprofSampleType, p.str(name), p.str(unit))
}

// sample adds a sample with labels (key, value, ...) whose values are string, int or int64.
func (p *rawPprof) sample(locations []uint64, values []int64, labels ...any) {
	s := profiletest.PprofWire(nil).Unpacked(profiletest.PprofSampleLocation, locations...)
	if p.isPacked {
		s = profiletest.PprofWire(nil).Packed(profiletest.PprofSampleLocation, locations...)
	}
	for _, v := range values {
		s = s.Int(profiletest.PprofSampleValue, v)
	}
	for i := 0; i < len(labels); i += 2 {
		label := profiletest.PprofLabel{Key: p.str(labels[i].(string))}
		switch v := labels[i+1].(type) {
		case string:
			label.Str = p.str(v)
		case int:
			label.Num = int64(v)
		case int64:
			label.Num = v
		}
		s = s.Label(label)
	}
	p.body = p.body.Message(profiletest.PprofSample, s)
}

// encode returns the body as agents send it.
func (p *rawPprof) encode() string { return encoded(p.body.Strings(p.strings...)) }

func encoded(plain []byte) string { return base64.StdEncoding.EncodeToString(profiletest.Gzip(plain)) }

// decoded undoes base64 and gzip.
func decoded(t testing.TB, body string) []byte {
	t.Helper()
	payload, err := base64.StdEncoding.DecodeString(body)
	require.NoError(t, err)
	return profiletest.Gunzip(t, payload)
}
