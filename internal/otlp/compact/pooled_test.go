// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Batches of a Pool are used again and again, and keep nothing of their messages.
func TestBatchForgets(t *testing.T) {
	var batches Pool
	profiletest.RequireForgets(t, 0, func(text string) string {
		pd := profiletest.New().Resource("service.name", text).Scope("scope", "1").Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(1, text, "main").With(profiletest.Attr("key", text))).Build()
		b := batches.Get(all)
		defer batches.Put(b)
		b.Add(pd)
		n := 0
		for part := range b.Parts() {
			n += part.Profiles.SampleCount()
		}
		return fmt.Sprint(n, b.Stats())
	})
	runtime.KeepAlive(&batches)
}
