// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Batches are used again and again, and keep nothing of a message.
func TestPooledForgets(t *testing.T) {
	e := newTestExporter(t, pyroscopetest.New(t), nil)
	e.client.HTTP.Transport = accepting{}
	pt.RequireForgets(t, 3, func(text string) string { // buffers of the pprof
		// Profiles of several resources go through a batch.
		pd := pt.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(1, 1).
			Sample(pt.Value(1, text, "main").With(pt.Attr("thread", text))).
			Sample(pt.Value(1, text, "main").With(pt.Attr("thread", "2"))).
			Resource("service.name", "cart").Profile("cpu", "nanoseconds").Time(1, 1).Sample(pt.Value(1, text)).Build()
		require.NoError(t, e.push(t.Context(), pd))
		return ""
	})
}
