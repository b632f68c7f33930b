// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/protobuf/encoding/protowire"

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
	body    []byte
}

func (p *rawPprof) str(s string) uint64 {
	for i, known := range p.strings {
		if known == s {
			return uint64(i)
		}
	}
	p.strings = append(p.strings, s)
	return uint64(len(p.strings) - 1)
}

func message(number protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), body)
}

// varintField is a field of varint type.
func varintField(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

// frame adds a function and a location of this id.
func (p *rawPprof) frame(id uint64, function, file string, line int64) {
	f := bytes.Join([][]byte{varintField(1, id), varintField(2, p.str(function)), varintField(4, p.str(file))}, nil)
	p.body = append(p.body, message(5, f)...)
	l := append(varintField(1, id), message(4, append(varintField(1, id), varintField(2, uint64(line))...))...)
	p.body = append(p.body, message(4, l)...)
}

func (p *rawPprof) sampleType(name, unit string) {
	p.body = append(p.body, message(1, append(varintField(1, p.str(name)), varintField(2, p.str(unit))...))...)
}

// sample adds a sample with labels (key, value, ...) whose values are string, int or int64.
func (p *rawPprof) sample(locations []uint64, values []int64, labels ...any) {
	var s []byte
	for _, l := range locations {
		s = append(s, varintField(1, l)...)
	}
	for _, v := range values {
		s = append(s, varintField(2, uint64(v))...)
	}
	for i := 0; i < len(labels); i += 2 {
		label := varintField(1, p.str(labels[i].(string)))
		switch v := labels[i+1].(type) {
		case string:
			label = append(label, varintField(2, p.str(v))...)
		case int:
			label = append(label, varintField(3, uint64(v))...)
		case int64:
			label = append(label, varintField(3, uint64(v))...)
		}
		s = append(s, message(3, label)...)
	}
	p.body = append(p.body, message(2, s)...)
}

// encode returns the body as agents send it.
func (p *rawPprof) encode() string {
	body := p.body
	for _, s := range p.strings {
		body = append(body, message(6, []byte(s))...)
	}
	return encoded(body)
}

func encoded(plain []byte) string { return base64.StdEncoding.EncodeToString(profiletest.Gzip(plain)) }

// decoded undoes base64 and gzip.
func decoded(t testing.TB, body string) []byte {
	t.Helper()
	payload, err := base64.StdEncoding.DecodeString(body)
	require.NoError(t, err)
	return profiletest.Gunzip(t, payload)
}
