// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver"
)

// counter counts its consumers, starts and stops.
type counter struct{ consumers, starts, stops int }

func (c *counter) Start(context.Context, component.Host) error {
	c.starts++
	return errors.New("no start")
}
func (c *counter) Shutdown(context.Context) error { c.stops++; return errors.New("no stop") }

func TestOneComponentForEachConfiguration(t *testing.T) {
	var components Components[*int, *counter]
	create := func(_ receiver.Settings, key *int) (*counter, error) {
		if key == nil {
			return nil, errors.New("not created")
		}
		return &counter{}, nil
	}
	get := func(key *int) *Component[*int, *counter] {
		c, err := components.Get(key, receiver.Settings{}, create, func(c *counter) { c.consumers++ })
		require.NoError(t, err)
		return c.(*Component[*int, *counter])
	}
	_, err := components.Get(nil, receiver.Settings{}, create, nil)
	require.EqualError(t, err, "not created")
	one, other := new(int), new(int)
	first := get(one)
	require.Same(t, first, get(one))
	require.NotSame(t, first, get(other))

	for range 2 {
		assert.EqualError(t, first.Start(t.Context(), componenttest.NewNopHost()), "no start")
	}
	assert.EqualError(t, first.Shutdown(t.Context()), "no stop")
	assert.NoError(t, first.Shutdown(t.Context()))
	assert.Equal(t, counter{consumers: 2, starts: 1, stops: 1}, *first.Shared)
	assert.Len(t, components.all, 1, "the other one")
	assert.NotSame(t, first, get(one), "after a reload")
}
