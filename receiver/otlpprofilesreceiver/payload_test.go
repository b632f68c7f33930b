// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"encoding/binary"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// light returns a message as dd-trace-java writes it in its mode light: a type, a time, and a payload.
func light(t *testing.T, format string, payload []byte) []byte {
	pd := profiletest.New().Resource("service.name", "shop").Profile("samples", "count").Build()
	p := profiletest.ProfileAt(pd, 0)
	p.SetTime(1700000000e9)
	p.SetDurationNano(60e9)
	p.SetOriginalPayloadFormat(format)
	p.OriginalPayload().FromRaw(payload)
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	return data
}

func TestProfilesThatAreOnlyPayloads(t *testing.T) {
	jfr := profiletest.FileBytes(t, "../../internal/formats/jfr/testdata/wall_tick_sample.jfr.gz")
	pprof := profiletest.FileBytes(t, "../../testdata/pprof/go-cpu-labels.pb.gz")
	own := profiletest.ParsePprof(t, pprof)
	sums := func(pd pprofile.Profiles) map[string]int64 {
		got := map[string]int64{}
		for o := range profiletest.Observations(pd) {
			got[o.SampleType] += o.Value
		}
		return got
	}
	var sink consumertest.ProfilesSink
	h := start(t, &sink, nil)
	send := func(format string, payload []byte) (int, string) {
		code, answer, _ := h.post(t, paths[0], "application/x-protobuf", light(t, format, payload))
		return code, answer
	}
	for format, payload := range map[string][]byte{"jfr": jfr, "pprof": pprof, "tomorrow's": jfr} {
		sink.Reset()
		code, answer := send(format, payload)
		require.Equal(t, http.StatusOK, code, answer)
		pd := sink.AllProfiles()[0]
		require.Equal(t, map[string]any{"service.name": "shop"}, pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
		switch format {
		case "pprof":
			want := map[string]int64{}
			for _, s := range own.Sample {
				for i, typ := range own.SampleType {
					want[typ.Type] += s.Value[i]
				}
			}
			require.Equal(t, want, sums(pd))
		case "jfr":
			require.NotZero(t, pd.SampleCount())
			name, _ := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Get("pprof.scope.profile_name")
			require.NotEmpty(t, name.Str())
		default:
			require.Equal(t, payload, profiletest.ProfileAt(pd, 0).OriginalPayload().AsRaw(), "it passes as it is")
			continue
		}
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
	}
	sink.Reset()
	code, answer := send("pprof", bomb(maxPayloadBytes+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
	require.Contains(t, answer, "exceeds a limit")
	code, answer = send("jfr", jfr[:len(jfr)/2])
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, answer, "original_payload (jfr) that cannot be read")
	require.Empty(t, sink.AllProfiles())
}

// The payloads of a request share the limit: otherwise a small one could unpack to any size.
func TestPayloadsAreBounded(t *testing.T) {
	pd := profiletest.New().Profile("a", "count").Profile("b", "count").Profile("c", "count").Build()
	for p := range otlp.Profiles(pd) {
		p.SetOriginalPayloadFormat("pprof")
		p.OriginalPayload().FromRaw(bomb(maxPayloadBytes / 2))
	}
	_, err := unpack(pd, nil)
	require.ErrorIs(t, err, scan.ErrTooLarge)
}

// bomb is a pprof with a string of zeros.
func bomb(size int) []byte {
	return profiletest.Gzip(append(binary.AppendUvarint([]byte{0x32}, uint64(size-5)), make([]byte, size-5)...))
}
