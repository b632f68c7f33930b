// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsSeriesAttribute(t *testing.T) {
	assert.True(t, IsSeriesAttribute("profiling.instrumentation.source"))
	assert.True(t, IsSeriesAttribute("pprof.profiles"))
	assert.False(t, IsSeriesAttribute("otlp.aggregation_temporality"))
	assert.False(t, IsSeriesAttribute("pprof.profile.comment"))
	assert.False(t, IsSeriesAttribute("pprof.profile.doc_url"))
}
