// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

func init() {
	compact.DecodePprof = func(payload []byte) (pprofile.Profiles, error) {
		pd, _, err := pprofconv.Decode(payload, pprofconv.DecodeOptions{})
		return pd, err
	}
}
