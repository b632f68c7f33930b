// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstatus

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

func TestIsPermanent(t *testing.T) {
	assert.False(t, IsPermanent(nil))
	assert.False(t, IsPermanent(errors.New("x")))
	assert.True(t, IsPermanent(fmt.Errorf("x: %w", consumererror.NewPermanent(errors.New("y")))))
	assert.True(t, IsPermanent(consumererror.NewOTLPHTTPError(errors.New("x"), 400)))
	assert.False(t, IsPermanent(consumererror.NewOTLPHTTPError(errors.New("x"), 503)))
}
