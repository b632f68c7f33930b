// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Regrouping takes about as long if the attributes of processes are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	names := []string{"process.pid", "container.id", "process.executable.name", "process.executable.path"}
	profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
		pd := profiletest.New().Resource().Scope("s", "1").Profile("cpu", "ns").Build()
		d := pd.Dictionary()
		first := int32(d.AttributeTable().Len())
		for i, name := range names {
			d.StringTable().Append(name)
			for value := range n {
				a := d.AttributeTable().AppendEmpty()
				a.SetKeyStrindex(int32(d.StringTable().Len() - 1))
				a.Value().SetInt(int64(value + 1))
				if i > 0 {
					a.Value().SetStr(pcommon.NewValueInt(int64(value)).AsString())
				}
			}
		}
		for i := range uint64(n) {
			s := profiletest.ProfileAt(pd, 0).Samples().AppendEmpty()
			s.Values().Append(1)
			for role, number := range keys(i + 1) {
				s.AttributeIndices().Append(first + int32(role*n) + int32(number%uint64(n)))
			}
		}
		return func() {
			own := profiletest.Clone(pd)
			New(Options{Move: names}).Regroup(own, Group{Identify: nameAll, Admit: admitAll})
		}
	})
}
