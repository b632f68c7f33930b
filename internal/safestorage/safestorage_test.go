// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package safestorage

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var errFull = errors.New("no space left on device")

// fullDisk is a storage extension, and its client, that can be read but not written.
type fullDisk struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client
	unreadable bool
	// writable lets single values be written.
	writable bool
}

func (d fullDisk) Set(context.Context, string, []byte) error {
	if !d.writable {
		return errFull
	}
	return nil
}

func (d fullDisk) Delete(context.Context, string) error { return nil }
func (d fullDisk) Close(context.Context) error          { return nil }

func (d fullDisk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d fullDisk) Batch(_ context.Context, operations ...*storage.Operation) error {
	for _, operation := range operations {
		if operation.Type != storage.Get || d.unreadable {
			return errFull
		}
		operation.Value = []byte("item " + operation.Key)
	}
	return nil
}

func clientOf(t *testing.T, disk fullDisk) (storage.Client, error) {
	t.Helper()
	kind := component.MustNewType("disk")
	plain := extension.NewFactory(kind, func() component.Config { return nil },
		func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
			return disk, nil
		},
		component.StabilityLevelAlpha)
	wrapped := Factories(map[component.Type]extension.Factory{kind: plain})[kind]
	created, err := wrapped.Create(t.Context(), extension.Settings{
		ID: component.NewID(kind), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, nil)
	require.NoError(t, err)
	return created.(storage.Extension).GetClient(t.Context(), component.KindExporter, component.NewID(kind), "")
}

func TestNothingStartsOnAFullDisk(t *testing.T) {
	_, err := clientOf(t, fullDisk{})
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "storage of disk has no room to start with")
}

// TestItemsAreReadFromAFullDisk runs the queue's operations for reading and for adding an item.
func TestItemsAreReadFromAFullDisk(t *testing.T) {
	client, err := clientOf(t, fullDisk{writable: true})
	require.NoError(t, err)
	item := storage.GetOperation("7")
	require.NoError(t, client.Batch(t.Context(), storage.SetOperation("metadata", nil), item))
	require.Equal(t, "item 7", string(item.Value))
	require.ErrorIs(t, client.Batch(t.Context(), storage.SetOperation("metadata", nil), storage.SetOperation("8", nil)), errFull)
	require.ErrorIs(t, client.Batch(t.Context(), storage.DeleteOperation("7")), errFull)

	broken, err := clientOf(t, fullDisk{writable: true, unreadable: true})
	require.NoError(t, err)
	require.ErrorIs(t, broken.Batch(t.Context(), storage.SetOperation("metadata", nil), storage.GetOperation("7")), errFull)
	require.ErrorIs(t, broken.Batch(t.Context(), storage.GetOperation("7")), errFull)
}
