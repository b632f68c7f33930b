// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReturn(t *testing.T) {
	called := false
	assert.NoError(t, Return(t.Context(), func() { called = true }))
	assert.True(t, called)

	ended, end := context.WithCancel(t.Context())
	end()
	release, released := make(chan struct{}), make(chan struct{})
	assert.ErrorIs(t, Return(ended, func() { <-release; close(released) }), context.Canceled)
	close(release)
	<-released
}
