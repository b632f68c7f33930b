// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestEncoderForgets(t *testing.T) {
	pt.RequireForgets(t, 3, func(text string) string {
		pd := pt.New().Resource("service.name", text).Scope("scope", "1").Profile("cpu", "nanoseconds").
			Sample(pt.Value(1, text, "main").With(pt.Attr("key", text))).Build()
		payloads, stats, err := Encode(pd)
		require.NoError(t, err)
		return fmt.Sprint(len(payloads), stats)
	})
}

// What compresses is used again and again, too.
func TestCompressorForgets(t *testing.T) {
	pt.RequireForgets(t, 0, func(text string) string {
		incompressible := make([]byte, len(text))
		_, err := rand.NewChaCha8([32]byte{}).Read(incompressible)
		require.NoError(t, err)
		return fmt.Sprint(len(Gzip(incompressible)) > len(text))
	})
}
