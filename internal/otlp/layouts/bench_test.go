// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// BenchmarkCurrent compares reading the current layout with pdata alone.
func BenchmarkCurrent(b *testing.B) {
	build := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds")
	for i := range 5000 {
		build.Sample(profiletest.Value(int64(i+1), "leaf", string(rune('a'+i%26)), "main"))
	}
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(build.Build())
	require.NoError(b, err)
	for name, unmarshal := range map[string]func([]byte) error{
		"impl=pdata": func(data []byte) error { _, err := unmarshalCurrent(data, nil); return err },
		"impl=ours":  func(data []byte) error { _, _, err := Unmarshal(data, nil); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				require.NoError(b, unmarshal(data))
			}
		})
	}
}

// BenchmarkOld reads a message of each older layout that holds the fixture's profile 200 times.
func BenchmarkOld(b *testing.B) {
	for name, layout := range fixtures {
		fixture := readFixture(b, name+".pb")
		data := fixture
		if layout < V1_6 {
			data = bytes.Repeat(fixture, 200)
		}
		b.Run("layout="+layout.String()+"/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				_, _, err := Unmarshal(bytes.Clone(data), nil)
				require.NoError(b, err)
			}
		})
	}
}
