// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Records of each format take about as long if the fields of their entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	for format, request := range map[string]func(n int, keys profiletest.Keys) plog.Logs{
		FormatPprof.String(): func(n int, keys profiletest.Keys) plog.Logs {
			body := base64.StdEncoding.EncodeToString(profiletest.KeyedPprof(n, keys, 1, false))
			ld, _ := newRecord(body, keyFormat, FormatPprof.String(), keyType, "cpu")
			return ld
		},
		FormatOTLP.String(): func(n int, keys profiletest.Keys) plog.Logs {
			body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(profiletest.KeyedProfiles(n, keys))
			require.NoError(t, err)
			ld, record := newRecord("", keyFormat, FormatOTLP.String())
			record.Body().SetEmptyBytes().FromRaw(body)
			return ld
		},
		FormatText.String(): func(n int, keys profiletest.Keys) plog.Logs {
			ld := plog.NewLogs()
			sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
			sl.Scope().SetName(ProfilingName)
			at := func(number uint64) int { return profiletest.KeyIndex(number, n) }
			for i := range uint64(n) {
				k := keys(i + 1)
				stack := fmt.Sprintf("\"thread-%d\" #%d\n\n\tat f%d(f%d:%d:%d)\n", at(k[0]), at(k[1]), at(k[0]), at(k[1]), at(k[2]),
					at(k[3]))
				appendRecord(sl, stack, keyFormat, FormatText.String(), keyType, "cpu")
			}
			return ld
		},
	} {
		t.Run(format, func(t *testing.T) {
			profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
				ld := request(n, keys)
				return func() {
					result := Translate(ld, Options{})
					require.Empty(t, result.Rejected)
					require.Zero(t, result.Dropped)
				}
			})
		})
	}
}
