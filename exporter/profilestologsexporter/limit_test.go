// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// captured is a captured pprof as OTLP.
func captured(t *testing.T, name string, options decode.Options) pprofile.Profiles {
	t.Helper()
	payload := profiletest.FileBytes(t, "../../testdata/pprof/"+name)
	pd, _, err := decode.Decode(payload, options)
	require.NoError(t, err)
	return pd
}

// sizeOf is the encoded size of profiles.
func sizeOf(pd pprofile.Profiles) int { return new(pprofile.ProtoMarshaler).ProfilesSize(pd) }

// requireWhole expects that all accepted parts together are what was sent, and that each part is complete.
func (b *inbox) requireWhole(t *testing.T, want pprofile.Profiles) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var all compact.Batch
	all.Reset(compact.Options{})
	add := func(pd pprofile.Profiles) {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
		all.Add(pd)
	}
	for _, pd := range b.profiles {
		add(pd)
	}
	for _, ld := range b.logs {
		result := records.Translate(ld, records.Options{})
		require.Empty(t, result.Rejected)
		add(result.Profiles)
	}
	for got := range all.Parts() {
		require.NoError(t, profiletest.Equal(want, got.Profiles, profiletest.MergeProfiles()))
		return
	}
	require.Fail(t, "nothing was taken")
}

// A profile that is larger than a gRPC server's default limit arrives in parts.
func TestLargerThanGRPCTakes(t *testing.T) {
	profiletest.SkipLarge(t)
	huge := captured(t, "go-compile-nethttp-heap-huge.pb.gz", decode.Options{IncludeOriginalPayload: true})
	require.Greater(t, sizeOf(huge), 4<<20)
	b := &inbox{}
	begun := &atomic.Int64{}
	e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, true, countRequests(begun))})
	e.send(t, huge)
	assert.EqualValues(t, b.profilesSeen, begun.Load(), "no request was above the server's limit")
	assert.LessOrEqual(t, b.profilesSeen, sizeOf(huge)/e.maxRequestBytes+2, "at most one part more than necessary")
	want, got := map[string]int64{}, map[string]int64{}
	addTotals(huge, want)
	for _, pd := range b.profiles {
		addTotals(pd, got)
	}
	assert.Equal(t, want, got)
}

// countRequests counts those too that a server refuses before it has read them.
func countRequests(begun *atomic.Int64) grpc.ServerOption {
	return grpc.InTapHandle(func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		begun.Add(1)
		return ctx, nil
	})
}

// addTotals adds up samples, values and the bytes of payloads by sample type.
func addTotals(pd pprofile.Profiles, to map[string]int64) {
	texts := pd.Dictionary().StringTable()
	for _, rp := range pd.ResourceProfiles().All() {
		for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
			typ := texts.At(int(p.SampleType().TypeStrindex()))
			to[typ+" samples"] += int64(p.Samples().Len())
			to[typ+" payload"] += int64(p.OriginalPayload().Len())
			for _, sample := range p.Samples().All() {
				to[typ] += sample.Values().At(0)
			}
		}
	}
}

// Resources and scopes around the records count too.
func TestLargeResources(t *testing.T) {
	profiletest.SkipLarge(t)
	builder := profiletest.New()
	random := make([]byte, 50_000)
	for i := range 60 {
		_, _ = rand.Read(random)
		builder.Resource("service.name", fmt.Sprint("service-", i), "process.command_args", hex.EncodeToString(random)).
			Profile("samples", "count").Sample(profiletest.Value(1, fmt.Sprint("leaf", i)))
	}
	pd := builder.Build()
	for _, format := range []string{"pprof", "otlp"} {
		b := &inbox{}
		begun := &atomic.Int64{}
		e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, false, countRequests(begun)), "format": format})
		e.send(t, pd)
		assert.EqualValues(t, b.logsSeen, begun.Load()-1, "after that with profiles no request was above the server's limit")
		_, asLogs := b.samples(t)
		assert.Equal(t, 60, asLogs)
	}
}

// smallServer answers 413 to bodies above limit.
func smallServer(t *testing.T, b *inbox, limit int, profiles bool) map[string]any {
	t.Helper()
	return httpServerOf(t, b, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if strings.HasSuffix(r.URL.Path, "profiles") && !profiles {
			http.NotFound(w, r)
			return true
		}
		if len(body) > limit {
			b.tooLarge++
			http.Error(w, "too much", http.StatusRequestEntityTooLarge)
			return true
		}
		return false
	})
}

// A peer that accepts less than most gets halves, in each batch, until max_request_bytes is lowered.
func TestPeerThatTakesLess(t *testing.T) {
	profiletest.SkipLarge(t)
	large := captured(t, "go-build-merged-cpu-large.pb.gz", decode.Options{})
	for _, profiles := range []bool{true, false} {
		limit := sizeOf(large) / 3
		if !profiles {
			limit = 60_000 // the body is compressed
		}
		b := &inbox{}
		e := runExporter(t, map[string]any{"http": smallServer(t, b, limit, profiles), "format": "otlp"})
		e.send(t, large)
		b.requireWhole(t, large)
		asked := b.tooLarge
		assert.Positive(t, asked)
		assert.LessOrEqual(t, asked, 6, "each refusal halves the requests")
		assert.EqualValues(t, asked, e.metric(t, "too_large_requests"))
		e.send(t, large)
		assert.Equal(t, 2*asked, b.tooLarge)
		assert.Equal(t, 1, e.log.FilterMessageSnippet("lower max_request_bytes").Len(), "said once")

		b = &inbox{}
		e = runExporter(t,
			map[string]any{"http": smallServer(t, b, limit, profiles), "format": "otlp", "max_request_bytes": limit})
		e.send(t, large)
		b.requireWhole(t, large)
		assert.Zero(t, b.tooLarge)
	}
}

// If a part that cannot be split is refused permanently, only that part is lost.
func TestSingleSampleThatIsTooLarge(t *testing.T) {
	b := &inbox{}
	e := runExporter(t, map[string]any{"http": smallServer(t, b, 100_000, true)})
	pd := profiletest.New().Resource("service.name", "shop").
		Profile("samples", "count").Sample(profiletest.Value(1, strings.Repeat("x", 300_000))).
		Sample(profiletest.Value(2, "small"), profiletest.Value(3, "smaller")).Build()
	require.NoError(t, e.ConsumeProfiles(t.Context(), pd), "some were sent")
	assert.EqualValues(t, 1, collectortest.Sum(t, e.telemetry, "otelcol_exporter_send_failed_profile_samples"))
	samples := 0
	for _, pd := range b.profiles {
		samples += pd.SampleCount()
	}
	assert.Equal(t, 2, samples, "the others are delivered")
}

// Samples that share an entry larger than a request cannot be split usefully: they are sent together.
func TestSharedEntryThatIsTooLarge(t *testing.T) {
	profiletest.SkipLarge(t)
	random := make([]byte, 150_000)
	_, _ = rand.Read(random)
	name := hex.EncodeToString(random)
	pd := profiletest.New().Resource("service.name", "shop").Profile("samples", "count").
		Sample(profiletest.Value(1, "a", name), profiletest.Value(2, "b", name), profiletest.Value(3, "c", name)).Build()
	for _, profiles := range []bool{true, false} {
		for _, format := range []string{"otlp", "pprof"} {
			b := &inbox{}
			e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, profiles, grpc.MaxRecvMsgSize(8<<20)), "format": format,
				"max_request_bytes": 65536})
			e.send(t, pd)
			assert.Len(t, b.profiles, map[bool]int{true: 1}[profiles])
			assert.Equal(t, !profiles, len(b.logs) > 0)
			refusing := &inbox{}
			e = runExporter(t, map[string]any{"grpc": grpcServer(t, refusing, profiles, grpc.MaxRecvMsgSize(100_000)),
				"format": format})
			assert.Error(t, e.ConsumeProfiles(t.Context(), pd))
		}
	}
}

// The permitted cost.
const (
	partsConstantBytes = 64 << 20
	partsFactor        = 64
)

// The parts of profiles cost memory and time in proportion to the profiles, however much their samples share.
func TestPartsAreBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	for _, name := range []string{"samples of a deep stack", "samples of a stack of many frames",
		"timestamps of a stack of many frames"} {
		m := worst.NewMessage()
		worst.Profiles[name](m, 1<<19)
		pd := m.Profiles
		t.Run(name, func(t *testing.T) {
			size := sizeOf(pd)
			for _, limit := range []int{minRequestBytes, size * 3 / 4} {
				var bytes, observations int
				profiletest.RequireCost(t, profiletest.BoundOf(size, partsConstantBytes, partsFactor), func() {
					bytes, observations = 0, 0
					source := splitProfiles(pd, limit)
					for part, ok := source.next(); ok; part, ok = source.next() {
						bytes += part.bytes()
						for _, sample := range profiletest.ProfileAt(part.profiles, 0).Samples().All() {
							observations += max(1, sample.TimestampsUnixNano().Len())
						}
					}
				})
				want := 0
				for _, sample := range profiletest.ProfileAt(pd, 0).Samples().All() {
					want += max(1, sample.TimestampsUnixNano().Len())
				}
				assert.Equal(t, want, observations)
				assert.LessOrEqual(t, bytes, 8*size)

				var rest pprofile.Profiles
				profiletest.RequireCost(t, profiletest.BoundOf(size, partsConstantBytes, partsFactor), func() {
					source := splitProfiles(pd, limit)
					first, _ := source.next()
					rest = source.rest(first)
				})
				assert.Positive(t, rest.SampleCount())
			}
		})
	}
}

// A sample is not lost because its original payload is too large.
func TestPayloadThatIsTooLarge(t *testing.T) {
	random := make([]byte, 300_000)
	_, err := rand.Read(random)
	require.NoError(t, err)
	for _, profiles := range []bool{true, false} {
		b := &inbox{}
		e := runExporter(t, map[string]any{
			"http": smallServer(t, b, 100_000, profiles), "format": "otlp",
		})
		pd := batch("x", 500)
		profiletest.ProfileAt(pd, 0).SetOriginalPayloadFormat("pprof")
		profiletest.ProfileAt(pd, 0).OriginalPayload().FromRaw(random)
		e.send(t, pd)
		assert.Equal(t, !profiles, b.requireOnce(t, batch("x", 500)) > 0)
		assert.Equal(t, int64(1), e.metric(t, "dropped_payloads"))
		assert.Equal(t, 1, e.log.FilterMessageSnippet("payload was left out").Len())
	}
}

// A peer that finds every request too large has something else against them.
func TestPeerThatTakesNothing(t *testing.T) {
	b := &inbox{}
	e := runExporter(t, map[string]any{"http": smallServer(t, b, 0, true)})
	err := e.ConsumeProfiles(t.Context(), batch("x", 5))
	require.Error(t, err)
	assert.True(t, consumererror.IsPermanent(err))
	assert.Zero(t, e.log.FilterMessageSnippet("halved").Len(), "a request that is not halved")
	require.Error(t, e.ConsumeProfiles(t.Context(), batch("x", 500)))
	assert.Less(t, b.tooLarge, 30)
}

// Of a batch in parts only that is sent again which was not taken, and what comes after the service is gone goes out as
// log records.
func TestPartsThatAreNotTaken(t *testing.T) {
	large := batch("x", 3000)
	limit := grpc.MaxRecvMsgSize(sizeOf(large) / 3)
	for name, answer := range map[string]error{
		"later": status.Error(codes.Unavailable, "later"),
		"none":  status.Error(codes.Unimplemented, "unknown service"),
	} {
		t.Run(name, func(t *testing.T) {
			b := &inbox{refuseProfiles: func(n int) error {
				if n == 2 {
					return answer
				}
				return nil
			}}
			e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, true, limit), "format": "otlp"})
			e.send(t, large)
			b.requireWhole(t, large)
			assert.Equal(t, 1, e.log.FilterMessageSnippet("lower max_request_bytes").Len())
			if name == "none" {
				assert.Equal(t, 2, b.profilesSeen)
				assert.Positive(t, b.logsSeen)
				assert.Equal(t, int64(1), e.metric(t, "mode"))
			}
		})
	}
}

// The libraries' words for a message that is too large.
func TestNamesSize(t *testing.T) {
	for message, want := range map[string]bool{
		"grpc: received message larger than max (5000000 vs. 4194304)":                              true,
		"grpc: received message after decompression larger than max 4194304":                        true,
		"gRPC message exceeds maximum size 4194304: 5000000":                                        true,
		"Received message larger than max (5000000 vs 4194304)":                                     true,
		"Received message exceeds the maximum configured message size.":                             true,
		"Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304 bytes": true,
		"http: request body too large":                                                              true,
		"quota of tenant 12345678 is used up":                                                       false,
	} {
		assert.Equal(t, want, namesSize(strings.ToLower(message)), message)
	}
}
