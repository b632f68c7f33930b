// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
)

func init() {
	compact.DecodePprof = func(payload []byte) (pprofile.Profiles, error) {
		pd, _, err := decode.Decode(payload, decode.Options{})
		return pd, err
	}
}
