// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package safestorage keeps the Collector's persistent queue from losing items while the disk is full.
//
// To take an item, the queue reads it and writes in the same batch of operations that it has done so. Where the write
// fails, it deletes the item (exporterhelper v0.162, persistentQueue.getNextItem). Factories wraps storage extensions, so
// that such a batch returns the item: on the disk the item is then still in the queue. After a crash it is taken
// again, and may arrive twice.
//
// When it starts, the queue moves what was under way to its end: it deletes these items and puts them back. On a full disk
// both fail, and the items are forgotten. So a client is only handed out where there is room to begin with; deleting
// then makes room for putting back. Otherwise the start fails, and what is on the disk stays as it is.
package safestorage

import (
	"context"
	"errors"
	"fmt"

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

// A probe is larger than what a transaction that deletes items writes anew.
const (
	probeKey   = "otelcol_profiles_probe"
	probeBytes = 1 << 20
)

type client struct{ storage.Client }

// Batch returns what a batch reads even if it cannot write. A batch that only writes fails as ever.
func (c client) Batch(ctx context.Context, operations ...*storage.Operation) error {
	err := c.Client.Batch(ctx, operations...)
	if err == nil {
		return nil
	}
	var reads []*storage.Operation
	for _, operation := range operations {
		if operation.Type == storage.Get {
			reads = append(reads, operation)
		}
	}
	if len(reads) == 0 || len(reads) == len(operations) || c.Client.Batch(ctx, reads...) != nil {
		return err
	}
	return nil
}
