// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// FuzzPush sends any message, which may break every rule of OTLP: push does not panic, and does not change the message.
func FuzzPush(f *testing.F) {
	seed := func(pd pprofile.Profiles) {
		data := pt.Marshal(f, pd)
		f.Add(data)
	}
	seed(twoServices())
	sample := pt.Observed([]uint64{7, 8}, "leaf", "main").With(pt.Attr("thread.id", 8), pt.Attr("region", "eu")).
		Linked([16]byte{1}, [8]byte{2})
	seed(pt.New().Resource("service.name", "shop").Profile("samples", "count").Period(5, "cpu", "nanoseconds").
		Sample(sample).Build())
	seed(pt.New().Resource("service.name", "shop").Profile("cache-misses", "count").Sample(pt.Value(1, "f")).
		Break(func(pd pprofile.Profiles) {
			pt.SampleAt(pd, 0).AttributeIndices().Append(-1, 1<<30)
			pt.SampleAt(pd, 0).SetLinkIndex(-5)
			pt.SampleAt(pd, 0).SetStackIndex(99)
			pt.ProfileAt(pd, 0).SampleType().SetUnitStrindex(-7)
		}).Build())
	e := newTestExporter(f, pyroscopetest.New(f), func(c *Config) {
		c.MaxProfileSamples, c.MaxProfileBytes, c.Labels.TraceID = 4, minMaxProfileBytes, true
	})
	e.client.HTTP.Transport = accepting{}
	f.Fuzz(func(t *testing.T, data []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		if err != nil || len(data) > 64<<10 {
			t.Skip()
		}
		before := pt.Marshal(t, pd)
		_ = e.push(t.Context(), pd)
		after := pt.Marshal(t, pd)
		require.Equal(t, before, after)
	})
}
