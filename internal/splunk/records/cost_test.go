// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The permitted cost: heap <= constant + factor × bytes, decompressed. A pprof with sample types becomes profiles, and
// these are merged into those of the request.
const (
	translateConstantBytes = 16 << 20
	translateFactor        = 72
)

// worstPprofs are payloads of about size bytes that cost most, before compression.
func worstPprofs(size int) map[string][]byte {
	all := maps.Collect(worst.SplunkPProf.All(size))
	maps.Insert(all, worst.PProf.Only("samples", "many keys of one sample", "text twice in one sample",
		"text as function names").All(size))
	return all
}

// requestOfMany is a request of a record for each body.
func requestOfMany(n int, body string, attributes ...any) plog.Logs {
	ld, _ := newRecord(body, attributes...)
	for range n - 1 {
		appendRecord(ld.ResourceLogs().At(0).ScopeLogs().At(0), body, attributes...)
	}
	return ld
}

// worstRequest is a request and its size, decompressed.
type worstRequest struct {
	logs  plog.Logs
	bytes int
}

func worstRequests(t testing.TB, size int) map[string]worstRequest {
	t.Helper()
	all := map[string]worstRequest{}
	add := func(name string, ld plog.Logs, unpacked int) {
		ld.MarkReadOnly()
		all[name] = worstRequest{ld, unpacked + new(plog.ProtoMarshaler).LogsSize(ld)}
	}
	for name, data := range worst.Logs.Only("many stacks", "a deep stack", "many lines", "many parentheses",
		"attributes of a stack",
		"invalid attributes of a stack").All(size) {
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(data)
		require.NoError(t, err)
		add(name, ld, 0)
	}
	pprofs := worstPprofs(size)
	for name, pprof := range pprofs {
		ld, _ := newRecord(encoded(pprof), keyFormat, FormatPprof.String(), keyType, "cpu")
		add("pprof: "+name, ld, len(pprof))
	}
	attributes := func(to plog.LogRecord, n int, value string) {
		var m xpdata.MapBuilder
		for i := range n {
			m.AppendEmpty("attribute" + strconv.Itoa(i)).SetStr(value)
		}
		m.UnsafeIntoMap(to.Attributes())
	}
	ld, record := newRecord(encoded(pprofs["a key of every sample's own"]))
	attributes(record, size/20, "x")
	add("many attributes of a pprof", ld, len(pprofs["a key of every sample's own"]))

	// Each sample is of a profile of its own, with all attributes of the record.
	ld, record = newRecord(encoded(pprofs["periods"]))
	attributes(record, size/100, "x")
	record.Attributes().PutStr(keyFormat, FormatPprof.String())
	record.Attributes().PutStr(keyType, "cpu")
	add("many periods and attributes", ld, len(pprofs["periods"]))
	add("many empty records", requestOfMany(size/10, ""), 0)
	return all
}

// Any request costs memory and time in proportion to its bytes.
func TestTranslateIsBounded(t *testing.T) {
	for name, request := range worstRequests(t, 1<<20) {
		t.Run(name, func(t *testing.T) {
			var result Result
			var body []byte
			bound := profiletest.BoundOf(request.bytes, translateConstantBytes, translateFactor)
			profiletest.RequireCostOfEach(t, bound, func() func() {
				body, result = nil, Result{}
				return func() {
					result = Translate(request.logs, Options{Limits: scan.Limits{MaxStackDepth: 1 << 20}})
					var err error
					body, err = new(pprofile.ProtoMarshaler).MarshalProfiles(result.Profiles)
					require.NoError(t, err)
				}
			})
			body, result = nil, Result{}
			profiletest.RequireReserved(t, profiletest.Bound{}, 16<<20, func(reserve func(int) error) {
				result = Translate(request.logs,
					Options{Limits: scan.Limits{MaxStackDepth: 1 << 20}, Meter: &pdatasize.Meter{Reserve: reserve}})
			})
			_ = body
		})
	}
}

// Many bombs in one request cost no more than two.
func TestManyBombsAreBounded(t *testing.T) {
	const limit = 1 << 20
	filler := make([]byte, 8*limit)
	for _, body := range [][]byte{profiletest.Gzip(filler), zstdEncoder.EncodeAll(filler, nil)} {
		ld := requestOfMany(2000, "", keyFormat, FormatOTLP.String())
		pprofs := requestOfMany(2000, "", keyFormat, FormatPprof.String(), keyType, "cpu")
		for _, request := range []plog.Logs{ld, pprofs} {
			eachRecord(request, func(r plog.LogRecord) { r.Body().SetStr(base64.StdEncoding.EncodeToString(body)) })
			size := new(plog.ProtoMarshaler).LogsSize(request)
			var result Result
			profiletest.RequireCost(t, profiletest.BoundOf(size+2*limit, translateConstantBytes, 8), func() {
				result = Translate(request, Options{Limits: scan.Limits{MaxProfileBytes: limit}})
			})
			require.Len(t, result.Rejected, 2000)
			for _, r := range result.Rejected {
				require.Equal(t, ReasonTooLarge, r.Reason)
			}
		}
	}
}

// Resources of an OTLP body that share a long text cannot become many times its size.
func TestSharedAttributesAreBounded(t *testing.T) {
	attribute := worst.Fields{1, worst.Fields{3, 1, 2, worst.Fields{8, 2}}}
	texts := worst.Fields{5, "", 5, "k", 5, strings.Repeat("x", 128<<10)}
	ld, record := newRecord("", keyFormat, FormatOTLP.String())
	record.Body().SetEmptyBytes().FromRaw(append(worst.Many(20_000, 1, worst.Fields{1, attribute}), 2, texts).Bytes())
	ld.MarkReadOnly()
	var result Result
	size := new(plog.ProtoMarshaler).LogsSize(ld)
	profiletest.RequireCost(t, profiletest.BoundOf(size, translateConstantBytes, translateFactor), func() {
		result = Translate(ld, Options{})
	})
	require.Len(t, result.Rejected, 1)
	require.Equal(t, ReasonTooLarge, result.Rejected[0].Reason, result.Rejected[0].Err)
}

// Many OTLP bodies may expand no more than one of their size.
func TestSharedAttributesOfManyBodiesAreBounded(t *testing.T) {
	for _, long := range []int{1000, 5 << 10} {
		ld := requestOfMany(200, "", keyFormat, FormatOTLP.String())
		i := 0
		eachRecord(ld, func(r plog.LogRecord) {
			var body worst.Fields
			for range 240 {
				i++
				attributes := worst.Fields{1, worst.Fields{3, 1, 2, worst.Fields{8, 2}},
					1, worst.Fields{3, 3, 2, worst.Fields{3, i}}}
				body = append(body, 1, worst.Fields{1, attributes, 2, worst.Fields{2, worst.Fields{}}}) // of one profile
			}
			body = append(body, 2, worst.Fields{5, "", 5, "k", 5, strings.Repeat("x", long), 5, "n"})
			r.Body().SetEmptyBytes().FromRaw(body.Bytes())
		})
		ld.MarkReadOnly()
		size := new(plog.ProtoMarshaler).LogsSize(ld)
		var result Result
		profiletest.RequireCost(t, profiletest.BoundOf(size, translateConstantBytes, translateFactor), func() {
			result = Translate(ld, Options{})
		})
		_ = result
	}
}

// FuzzRequestCost reads a request as the receiver does, and bounds the cost.
func FuzzRequestCost(f *testing.F) {
	for _, request := range worstRequests(f, 4<<10) {
		body, err := new(plog.ProtoMarshaler).MarshalLogs(request.logs)
		require.NoError(f, err)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 1 << 20
		var result Result
		profiletest.RequireCost(t, profiletest.BoundOf(len(body)+2*limit, translateConstantBytes, translateFactor), func() {
			if _, err := pdatasize.Logs(body); err != nil {
				return
			}
			ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
			if err == nil {
				result = Translate(ld, Options{Limits: scan.Limits{MaxProfileBytes: limit}})
			}
		})
		_ = result
	})
}

// Records of each format take about as long if the fields of their entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	for format, request := range map[string]func(n int, keys profiletest.Keys) plog.Logs{
		FormatPprof.String(): func(n int, keys profiletest.Keys) plog.Logs {
			body := base64.StdEncoding.EncodeToString(profiletest.KeyedPprof(n, keys, 1, false))
			ld, _ := newRecord(body, keyFormat, FormatPprof.String(), keyType, "cpu")
			return ld
		},
		FormatOTLP.String(): func(n int, keys profiletest.Keys) plog.Logs {
			body := profiletest.Marshal(t, profiletest.KeyedProfiles(n, keys))
			ld, record := newRecord("", keyFormat, FormatOTLP.String())
			record.Body().SetEmptyBytes().FromRaw(body)
			return ld
		},
		FormatText.String(): func(n int, keys profiletest.Keys) plog.Logs {
			ld := plog.NewLogs()
			sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
			sl.Scope().SetName(ProfilingName)
			at := func(number uint64) int { return profiletest.KeyIndex(number, n) }
			for i := range uint64(n) {
				k := keys(i + 1)
				stack := fmt.Sprintf("\"thread-%d\" #%d\n\n\tat f%d(f%d:%d:%d)\n", at(k[0]), at(k[1]), at(k[0]), at(k[1]), at(k[2]),
					at(k[3]))
				appendRecord(sl, stack, keyFormat, FormatText.String(), keyType, "cpu")
			}
			return ld
		},
	} {
		t.Run(format, func(t *testing.T) {
			profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
				ld := request(n, keys)
				return func() {
					result := Translate(ld, Options{})
					require.Empty(t, result.Rejected)
					require.Zero(t, result.Dropped)
				}
			})
		})
	}
}
