// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package safestorage keeps the Collector's persistent queue from losing items while the disk is full.
//
// The queue reads its next item in a batch of operations that also records the reading. If that write fails, the queue deletes
// the item (exporterhelper v0.162, persistentQueue.getNextItem). Factories wraps storage extensions so that such a batch returns
// the item. On the disk the item is then still in the queue: after a crash it is read again, and may arrive twice.
//
// When it starts, the queue moves the items that were under way to its end: it deletes them and adds them again. On a full disk
// both fail, and the items are lost. So GetClient returns a client only if there is some room: deleting items then makes room
// for adding them. Otherwise the start fails, and the disk stays as it is.
package safestorage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Factories returns the factories with their storage extensions wrapped. Other extensions stay as they are.
func Factories(factories map[component.Type]extension.Factory) map[component.Type]extension.Factory {
	wrapped := make(map[component.Type]extension.Factory, len(factories))
	for name, wrap := range factories {
		wrapped[name] = factory{wrap}
	}
	return wrapped
}

type factory struct{ extension.Factory }

func (f factory) Create(ctx context.Context, set extension.Settings, config component.Config) (extension.Extension, error) {
	created, err := f.Factory.Create(ctx, set, config)
	if inner, ok := created.(storage.Extension); ok && err == nil {
		return safeExtension{inner}, nil
	}
	return created, err
}

type safeExtension struct{ storage.Extension }

func (e safeExtension) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	inner, err := e.Extension.GetClient(ctx, kind, id, name)
	if err != nil {
		return nil, err
	}
	err = inner.Set(ctx, probeKey, make([]byte, probeBytes))
	if err == nil {
		err = inner.Delete(ctx, probeKey)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("storage of %s has no room to start with; free some: %w", id, err), inner.Close(ctx))
	}
	return client{inner}, nil
}

// A probe is larger than what a transaction that deletes items writes.
const (
	probeKey   = "otelcol_profiles_probe"
	probeBytes = 1 << 20
)

type client struct{ storage.Client }

// Batch returns what a batch reads even if it cannot write. A batch that only writes fails.
func (c client) Batch(ctx context.Context, operations ...*storage.Operation) error {
	err := c.Client.Batch(ctx, operations...)
	if err == nil {
		return nil
	}
	isWrite := func(operation *storage.Operation) bool { return operation.Type != storage.Get }
	reads := slices.DeleteFunc(slices.Clone(operations), isWrite)
	if len(reads) == 0 || len(reads) == len(operations) || c.Client.Batch(ctx, reads...) != nil {
		return err
	}
	return nil
}
