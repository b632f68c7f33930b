// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// What a body will take is known before it is read: the process's budget holds that many bytes meanwhile.
func TestReserved(t *testing.T) {
	profiletest.SkipLarge(t)
	for name, make := range worst.HEC {
		t.Run(name, func(t *testing.T) {
			body := make(4 << 20)
			memory, err := MemoryOf(body)
			if err != nil {
				return // refused before it is read
			}
			profiletest.RequireReserved(t, profiletest.Bound{}, 4<<20, func(reserve func(int) error) {
				require.NoError(t, reserve(memory))
				reader := Reader{}
				_, _ = reader.Read(body)
			})
		})
	}
}
