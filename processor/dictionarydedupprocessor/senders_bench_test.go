// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/processor/dictionarydedupprocessor/internal/metadata"
)

// BenchmarkSenders has as many senders as there are cores. Run it with -cpu 1,2,…: each core should add as much as the
// first, as far as it is free; where others use it, the processor time of an operation should at least not grow, which it
// would if senders got in each other's way. Beside it stand senders that only make their messages, as all of them do.
func BenchmarkSenders(b *testing.B) {
	payload, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pprof", "go-build-merged-cpu-large.pb.gz"))
	require.NoError(b, err)
	pd, _, err := decode.Decode(payload, decode.Options{})
	require.NoError(b, err)
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(b, err)
	b.Run("unmarshal", func(b *testing.B) {
		send(b, wire, func(context.Context, pprofile.Profiles) error { return nil })
	})
	b.Run("unmarshal+consume", func(b *testing.B) {
		p, err := NewFactory().(xprocessor.Factory).CreateProfiles(
			b.Context(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
		require.NoError(b, err)
		send(b, wire, p.ConsumeProfiles)
		require.NoError(b, p.Shutdown(context.Background()))
	})
}

func send(b *testing.B, wire []byte, to func(context.Context, pprofile.Profiles) error) {
	before := cpuTime(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
			if err == nil {
				err = to(context.Background(), pd)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime is the CPU time of the process, including the garbage collector.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
