// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Bounds are those of a decoder.
type Bounds struct {
	Inputs Inputs
	// PerByte is how much memory an input may take for each of its bytes.
	PerByte float64
	Decode  func(data []byte, meter *size.Meter) (pprofile.Profiles, error)
}

// Test decodes the inputs.
func (b Bounds) Test(t *testing.T) {
	for name, data := range b.Inputs.All(1 << 20) {
		t.Run(name, func(t *testing.T) { b.Require(t, data) })
	}
}

// Fuzz decodes what the fuzzer makes of small inputs and of the seeds.
func (b Bounds) Fuzz(f *testing.F, seeds ...string) {
	for _, data := range b.Inputs.All(300) {
		f.Add(data)
	}
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(b.Require)
}

// Require decodes an input within the bounds.
func (b Bounds) Require(t *testing.T, data []byte) {
	t.Helper()
	_ = profiletest.RequireDecodeBounded(t, len(data), b.PerByte,
		func(reserve func(int) error) (pprofile.Profiles, error) {
			return b.Decode(data, &size.Meter{Reserve: reserve})
		})
}
