// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Disk is a storage extension, and its clients, in memory. It is also a host that has no other extension.
// Whoever locks it holds up its clients.
type Disk struct {
	component.StartFunc
	component.ShutdownFunc
	sync.Mutex
	content map[string][]byte
	reads   error
	writes  error
	written int
	// Owner is the component, by its kind and id, and the name of the client that was opened last. Open is how many are.
	Owner string
	Open  int
}

// NewDisk returns a disk with a content.
func NewDisk(content map[string][]byte) *Disk {
	d := &Disk{content: map[string][]byte{}}
	maps.Copy(d.content, content)
	return d
}

// Fail sets the errors of reads and of writes, such as that of a full disk; nil lets them pass.
func (d *Disk) Fail(reads, writes error) {
	d.Lock()
	defer d.Unlock()
	d.reads, d.writes = reads, writes
}

// Content returns a copy of the content.
func (d *Disk) Content() map[string][]byte {
	d.Lock()
	defer d.Unlock()
	return maps.Clone(d.content)
}

// Written returns the number of batches with a write.
func (d *Disk) Written() int {
	d.Lock()
	defer d.Unlock()
	return d.written
}

// GetExtensions returns the disk by the id disk.
func (d *Disk) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("disk"): d}
}

// GetClient returns the disk.
func (d *Disk) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	d.Lock()
	defer d.Unlock()
	d.Owner = fmt.Sprintf("%s/%s/%s", kind, id, name)
	d.Open++
	return d, nil
}

// Close closes a client.
func (d *Disk) Close(context.Context) error {
	d.Lock()
	defer d.Unlock()
	d.Open--
	return nil
}

// Get returns the value of a key, or nil.
func (d *Disk) Get(ctx context.Context, key string) ([]byte, error) {
	get := storage.GetOperation(key)
	err := d.Batch(ctx, get)
	return get.Value, err
}

// Set sets the value of a key.
func (d *Disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

// Delete removes a key.
func (d *Disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

// Batch runs operations until one fails.
func (d *Disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	d.Lock()
	defer d.Unlock()
	if slices.ContainsFunc(operations, func(operation *storage.Operation) bool { return operation.Type != storage.Get }) {
		d.written++
	}
	for _, operation := range operations {
		switch {
		case operation.Type == storage.Get && d.reads != nil:
			return d.reads
		case operation.Type == storage.Get:
			operation.Value = d.content[operation.Key]
		case d.writes != nil:
			return d.writes
		case operation.Type == storage.Set:
			d.content[operation.Key] = operation.Value
		default:
			delete(d.content, operation.Key)
		}
	}
	return nil
}
