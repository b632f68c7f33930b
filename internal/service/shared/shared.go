// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package shared makes one component of several: the Collector asks a factory for a receiver for each kind of pipeline
// that the receiver is in, always with the same configuration.
package shared

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
)

// Components are the components that are not shut down yet, by their configuration. The zero value has none.
type Components[K comparable, C component.Component] struct {
	mu  sync.Mutex
	all map[K]*Component[K, C]
}

// Component starts and stops a shared component once.
type Component[K comparable, C component.Component] struct {
	Shared C

	of                 *Components[K, C]
	key                K
	starting, stopping sync.Once
	startErr           error
}

// Get returns the component of a configuration, and creates it first if there is none. connect gives it one more
// consumer.
func (c *Components[K, C]) Get(key K, set receiver.Settings, create func(receiver.Settings, K) (C, error),
	connect func(C)) (component.Component, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.all[key]
	if !ok {
		created, err := create(set, key)
		if err != nil {
			return nil, err
		}
		if c.all == nil {
			c.all = map[K]*Component[K, C]{}
		}
		known = &Component[K, C]{Shared: created, of: c, key: key}
		c.all[key] = known
	}
	connect(known.Shared)
	return known, nil
}

// Start starts the component. Later calls return the error of the first.
func (c *Component[K, C]) Start(ctx context.Context, host component.Host) error {
	c.starting.Do(func() { c.startErr = c.Shared.Start(ctx, host) })
	return c.startErr
}

// Shutdown stops the component. Later calls do nothing.
func (c *Component[K, C]) Shutdown(ctx context.Context) (err error) {
	c.stopping.Do(func() {
		c.of.mu.Lock()
		delete(c.of.all, c.key)
		c.of.mu.Unlock()
		err = c.Shared.Shutdown(ctx)
	})
	return err
}
