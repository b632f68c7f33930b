// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A Regrouper is used again and again, and keeps nothing of a message.
func TestRegrouperForgets(t *testing.T) {
	r := New(Options{Move: []string{"process.pid", "process.executable.name", "moved"},
		Lower: []string{"process.executable.path"}})
	profiletest.RequireForgets(t, 0, func(text string) string {
		pd := profiletest.New().Resource("host.name", text).Scope("scope", "1").Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(1, text, "main").With(profiletest.Attr("process.pid", 1), profiletest.Attr("moved", text))).
			Sample(profiletest.Value(1, "main").With(profiletest.Attr("process.pid", 2),
				profiletest.Attr("process.executable.name", text))).
			Build()
		stats := r.Regroup(pd, Group{Identify: nameAll, Admit: admitAll})
		return fmt.Sprint(stats, pd.ResourceProfiles().Len())
	})
	runtime.KeepAlive(r)
}
