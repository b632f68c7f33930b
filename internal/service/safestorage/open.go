// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package safestorage

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Open returns the client for the key `storage` of a component: of the extension with the id, or one that stores
// nothing if id is nil.
func Open(ctx context.Context, host component.Host, id *component.ID, kind component.Kind, owner component.ID,
	name string) (storage.Client, error) {
	if id == nil {
		return storage.NewNopClient(), nil
	}
	extension, found := host.GetExtensions()[*id]
	if !found {
		return nil, fmt.Errorf("`storage`: extension %q is not among the service's extensions", id)
	}
	store, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("`storage`: extension %q is not a storage extension", id)
	}
	return store.GetClient(ctx, kind, owner, name)
}
