// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package safestorage keeps the Collector's persistent queue from losing items while the disk is full, from writing
// when it only reads, from standing still, and from false log lines.
//
// The queue reads its next item in a batch of operations that also records the reading. If that write fails, the queue
// deletes the item (exporterhelper v0.165, persistentQueue.getNextItem). Factories wraps storage extensions so that
// such a batch only reads. On the disk the item is still in the queue then, until its deletion: after a crash it is
// read again, as an item under way is anyway. The record is not missed, since each write of the queue has all of its
// indices. A third of the queue's transactions goes with it.
//
// When it starts, the queue moves the items that were under way to its end: it deletes all of them and adds them again,
// one by one. What it cannot add, on a full disk or since the process is killed, is lost. So GetClient makes them the
// next items of the queue before it starts (start.go).
//
// The queue counts an item before it writes it, and does not take it back if the write fails (persistentQueue.Offer).
// The count is corrected when the queue has been drained, but only a successful write wakes its consumers. So enough
// failed writes fill an empty queue forever. Enter returns an error until the disk has room again; whoever adds items
// calls it before.
//
// If two senders wait for room in a full queue and the contexts of both end, the next two items that are finished stop
// the queue forever (https://github.com/open-telemetry/opentelemetry-collector/issues/15700). So Enter lets only one
// sender wait there.
//
// The queue logs a legacy format when it starts for the first time, and that it drops data which it keeps when it
// stops. Logger corrects that (log.go).
package safestorage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// Storages are the clients of all wrapped storage extensions. The zero value has none.
type Storages struct{ clients sync.Map }

// user is the owner of a client: a component, and the name with which it asked for the client, for a queue its
// signal.
type user struct {
	id   component.ID
	name string
}

// Enter waits for the caller's turn to add an item to the queue of an exporter, if it has one. It returns an error if a
// write failed and one of the item's size, or of the failed one's if that is smaller, fails too. signal is the queue's,
// such as "logs"; size returns about the bytes of the item, and is called only after a failure. The caller calls leave
// after it has added the item.
func (s *Storages) Enter(
	ctx context.Context, id component.ID, signal string, size func() int,
) (leave func(), err error) {
	if c, ok := s.clients.Load(user{id, signal}); ok {
		return c.(*client).enter(ctx, size)
	}
	return func() {}, nil
}

// Factories returns the factories with their storage extensions wrapped. Other extensions stay as they are.
func (s *Storages) Factories(factories map[component.Type]extension.Factory) map[component.Type]extension.Factory {
	wrapped := make(map[component.Type]extension.Factory, len(factories))
	for name, wrap := range factories {
		wrapped[name] = factory{wrap, s}
	}
	return wrapped
}

type factory struct {
	extension.Factory
	storages *Storages
}

func (f factory) Create(
	ctx context.Context, set extension.Settings, config component.Config,
) (extension.Extension, error) {
	created, err := f.Factory.Create(ctx, set, config)
	if inner, ok := created.(storage.Extension); ok && err == nil {
		return safeExtension{inner, f.storages, set.Logger}, nil
	}
	return created, err
}

type safeExtension struct {
	storage.Extension
	storages *Storages
	logger   *zap.Logger
}

func (e safeExtension) GetClient(ctx context.Context, kind component.Kind, id component.ID,
	name string) (storage.Client, error) {
	inner, err := e.Extension.GetClient(ctx, kind, id, name)
	if err != nil {
		return nil, fmt.Errorf("open the storage of %s: %w%s", id, err, adviceFor(err))
	}
	c := &client{Client: inner, logger: e.logger.With(zap.Stringer("component", id)), turn: make(chan struct{}, 1)}
	if err := c.putBack(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("storage of %s has no room to start with; free some: %w", id, err),
			inner.Close(ctx))
	}
	of := user{id, name}
	c.forget = func() { e.storages.clients.CompareAndDelete(of, c) }
	e.storages.clients.Store(of, c)
	return c, nil
}

// adviceFor returns what to do about a storage that cannot be opened. Whoever moves away a file that another process
// uses loses what that has acknowledged.
func adviceFor(err error) string {
	switch {
	case err.Error() == "timeout": // of bbolt, for the lock of the file
		return ": another process uses its file; give each a directory of its own"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOSPC):
		return ""
	default:
		return "; if its file is damaged, move it away: the queue then starts without what the file has"
	}
}

const probeKey = "otelcol_profiles_probe"

// probeInterval is the least time between a probe that failed and the next.
const probeInterval = time.Second

type client struct {
	storage.Client
	logger *zap.Logger
	forget func()
	// failedBytes is the size of the largest batch that could not be written; 0 if one of that size could.
	failedBytes atomic.Int64

	// turn is full while somebody adds an item, who then has the last probe that failed: probes take the storage's lock,
	// which the queue needs to make room.
	turn         chan struct{}
	refused      error
	refusedAt    time.Time
	refusedBytes int64
}

func (c *client) Close(ctx context.Context) error {
	c.forget()
	return c.Client.Close(ctx)
}

func (c *client) probe(ctx context.Context, size int64) error {
	if err := c.Set(ctx, probeKey, make([]byte, size)); err != nil {
		return err
	}
	return c.Delete(ctx, probeKey)
}

func (c *client) enter(ctx context.Context, size func() int) (leave func(), err error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = func() { <-c.turn }
	if err := c.ready(ctx, size); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

func (c *client) ready(ctx context.Context, size func() int) error {
	failed := c.failedBytes.Load()
	if failed == 0 {
		return nil
	}
	// If there is room for all that failed, probes end. Otherwise there may be room for the item.
	for _, wanted := range []int64{failed, min(failed, int64(size()))} {
		if c.refused != nil && wanted >= c.refusedBytes && time.Since(c.refusedAt) < probeInterval {
			continue
		}
		err := c.probe(ctx, wanted)
		if err == nil {
			if wanted == failed && c.failedBytes.CompareAndSwap(failed, 0) && c.refused != nil {
				c.refused = nil
				c.logger.Info("the queue's storage has room again")
			}
			return nil
		}
		if c.refused == nil {
			c.logger.Error("the queue's storage has no room; refusing data that does not fit", zap.Error(err))
		}
		c.refused = fmt.Errorf("the queue's storage has no room: %w", err)
		c.refusedAt, c.refusedBytes = time.Now(), wanted
	}
	return c.refused
}

// Batch leaves the queue's indices out of a batch that reads.
func (c *client) Batch(ctx context.Context, operations ...*storage.Operation) error {
	reads, written := 0, int64(1)
	for _, operation := range operations {
		if operation.Type == storage.Get {
			reads++
		}
		written += int64(len(operation.Value))
	}
	if reads > 0 {
		operations = slices.DeleteFunc(slices.Clone(operations), func(operation *storage.Operation) bool {
			return operation.Type == storage.Set && operation.Key == queueMetadata
		})
	}
	err := c.Client.Batch(ctx, operations...)
	if err != nil && reads < len(operations) {
		c.failedBytes.Store(max(written, c.failedBytes.Load()))
	}
	return err
}
