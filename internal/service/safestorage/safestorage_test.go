// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package safestorage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

var errFull = errors.New("no space left on device")

func clientOf(t *testing.T, disk *collectortest.Disk) (storage.Client, error) {
	t.Helper()
	kind := component.MustNewType("disk")
	plain := extension.NewFactory(kind, func() component.Config { return nil },
		func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
			return disk, nil
		},
		component.StabilityLevelAlpha)
	wrapped := new(Storages).Factories(map[component.Type]extension.Factory{kind: plain})[kind]
	created, err := wrapped.Create(t.Context(), extension.Settings{
		ID: component.NewID(kind), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, nil)
	require.NoError(t, err)
	return created.(storage.Extension).GetClient(t.Context(), component.KindExporter, component.NewID(kind), "")
}

type notOpened struct {
	*collectortest.Disk
	err error
}

func (s notOpened) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return nil, s.err
}

// Only a file that is damaged is to be moved away: not one that another process uses, or that is somebody else's.
func TestFileThatCannotBeOpened(t *testing.T) {
	id := component.MustNewID("otlp")
	for cause, advice := range map[error]string{
		errors.New("invalid database"): "; if its file is damaged, move it away: the queue then starts without what the file has",
		errors.New("timeout"):          ": another process uses its file; give each a directory of its own",
		syscall.EACCES:                 "",
		syscall.ENOSPC:                 "",
	} {
		_, err := safeExtension{notOpened{err: cause}, new(Storages), zap.NewNop()}.GetClient(t.Context(),
			component.KindExporter, id, "profiles")
		require.EqualError(t, err, "open the storage of otlp: "+cause.Error()+advice)
	}
}

// TestItemsAreReadFromAFullDisk runs the queue's operations for reading and for adding an item.
func TestItemsAreReadFromAFullDisk(t *testing.T) {
	disk := collectortest.NewDisk(map[string][]byte{"7": []byte("item 7")})
	client, err := clientOf(t, disk)
	require.NoError(t, err)
	disk.Fail(nil, errFull)
	item := storage.GetOperation("7")
	require.NoError(t, client.Batch(t.Context(), storage.SetOperation(queueMetadata, nil), item))
	require.Equal(t, "item 7", string(item.Value))
	require.ErrorIs(t, client.Batch(t.Context(), storage.SetOperation(queueMetadata, nil), storage.SetOperation("8", nil)),
		errFull)
	require.ErrorIs(t, client.Batch(t.Context(), storage.SetOperation("another's", nil), storage.GetOperation("7")),
		errFull)
	require.ErrorIs(t, client.Batch(t.Context(), storage.DeleteOperation("7")), errFull)

	disk.Fail(errFull, errFull)
	require.ErrorIs(t, client.Batch(t.Context(), storage.SetOperation(queueMetadata, nil), storage.GetOperation("7")),
		errFull)
	require.ErrorIs(t, client.Batch(t.Context(), storage.GetOperation("7")), errFull)
}

// TestProbesEnd has small items after a large one that did not fit: once the disk has room for that, they cost nothing.
func TestProbesEnd(t *testing.T) {
	var storages Storages
	disk := collectortest.NewDisk(nil)
	id := component.MustNewID("nop")
	client, err := safeExtension{disk, &storages, zap.NewNop()}.GetClient(t.Context(), component.KindExporter, id, "logs")
	require.NoError(t, err)
	enter := func() error {
		leave, err := storages.Enter(t.Context(), id, "logs", func() int { return 10 })
		if err == nil {
			leave()
		}
		return err
	}
	disk.Fail(nil, errFull)
	require.ErrorIs(t, client.Batch(t.Context(), storage.SetOperation("1", make([]byte, 1000))), errFull)
	disk.Fail(nil, nil)
	require.NoError(t, enter())
	written := disk.Written()
	require.NoError(t, enter())
	require.Equal(t, written, disk.Written())
	require.Empty(t, disk.Content(), "probes leave nothing behind")
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// startQueue starts an exporter with a queue of nine messages on the disk.
func startQueue(t *testing.T, storages *Storages, disk *collectortest.Disk, logger *zap.Logger,
	push func(pprofile.Profiles)) xexporter.Profiles {
	t.Helper()
	exporter := newQueue(t, push)
	require.NoError(t, exporter.Start(t.Context(), host{diskID: safeExtension{disk, storages, logger}}))
	return exporter
}

func newQueue(t *testing.T, push func(pprofile.Profiles)) xexporter.Profiles {
	t.Helper()
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.StorageID, queue.BlockOnOverflow = &diskID, true
	queue.Sizer, queue.QueueSize = exporterhelper.RequestSizerTypeBytes, 10_000
	queue.Batch = configoptional.None[exporterhelper.BatchConfig]()
	exporter, err := xexporterhelper.NewProfiles(t.Context(), settings, &struct{}{},
		func(_ context.Context, pd pprofile.Profiles) error {
			if pd.ResourceProfiles().Len() > 0 {
				push(pd)
			}
			return nil
		}, xexporterhelper.WithQueueBatch(configoptional.Some(queue), xexporterhelper.NewProfilesQueueBatchSettings()))
	require.NoError(t, err)
	return exporter
}

var diskID = component.MustNewID("disk")

var settings = exportertest.NewNopSettings(component.MustNewType("nop"))

func message() pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", strings.Repeat("x", 1000))
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	return pd
}

// send adds a message to the queue of an exporter as the collector does.
func send(ctx context.Context, storages *Storages, exporter xexporter.Profiles, pd pprofile.Profiles) error {
	leave, err := storages.Enter(ctx, settings.ID, "profiles", func() int {
		return new(pprofile.ProtoMarshaler).ProfilesSize(pd)
	})
	if err != nil {
		return err
	}
	defer leave()
	return exporter.ConsumeProfiles(ctx, pd)
}

// TestQueueGoesOnAfterSendersGaveUp fills a queue, and lets the contexts of two senders end while two messages are
// being deleted. The times only have to be long enough for goroutines to wait where the queue would stand still.
func TestQueueGoesOnAfterSendersGaveUp(t *testing.T) {
	const soon = 50 * time.Millisecond
	var storages Storages
	disk := collectortest.NewDisk(nil)
	finish, sending := make(chan struct{}), make(chan struct{}, 20)
	exporter := startQueue(t, &storages, disk, zap.NewNop(), func(pprofile.Profiles) {
		sending <- struct{}{}
		<-finish
	})
	for range 9 {
		require.NoError(t, send(t.Context(), &storages, exporter, message()))
		<-sending
	}
	givenUp, giveUp := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for range 2 {
		senders.Go(func() { assert.ErrorIs(t, send(givenUp, &storages, exporter, message()), context.Canceled) })
	}
	time.Sleep(soon)
	disk.Lock() // a message is deleted slowly, and another is next
	finish <- struct{}{}
	finish <- struct{}{}
	time.Sleep(soon)
	giveUp()
	time.Sleep(soon)
	disk.Unlock()

	done := make(chan error)
	go func() { done <- send(t.Context(), &storages, exporter, message()) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the queue stands still")
	}
	senders.Wait()
	close(finish)
	require.NoError(t, exporter.Shutdown(t.Context()))
}

// TestAMessageIsWrittenOnceAndDeletedOnce ends with what a crash leaves while a message is under way: the next process
// sends it again. The next version of the queue could name its indices differently: then the messages take a third
// write.
func TestAMessageIsWrittenOnceAndDeletedOnce(t *testing.T) {
	disk := collectortest.NewDisk(nil)
	isBlocked, goOn := make(chan struct{}), make(chan struct{})
	exporter := startQueue(t, new(Storages), disk, zap.NewNop(), func(pprofile.Profiles) {
		isBlocked <- struct{}{}
		<-goOn
	})
	before := disk.Written()
	require.NoError(t, exporter.ConsumeProfiles(t.Context(), message()))
	<-isBlocked
	crashed := collectortest.NewDisk(disk.Content())
	close(goOn)
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.Equal(t, 2, disk.Written()-before)

	arrived := make(chan pprofile.Profiles, 2)
	exporter = startQueue(t, new(Storages), crashed, zap.NewNop(), func(pd pprofile.Profiles) { arrived <- pd })
	<-arrived
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.Empty(t, arrived)

	exporter = startQueue(t, new(Storages), disk, zap.NewNop(), func(pd pprofile.Profiles) { arrived <- pd })
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.Empty(t, arrived, "it has been delivered")
}

// fullAfter lets a number of writes pass. After them it may still have room for what is as small as the indices.
type fullAfter struct {
	*collectortest.Disk
	writes       *int
	hasSomeSpace bool
}

func (f fullAfter) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return f, nil
}

func (f fullAfter) Set(ctx context.Context, key string, value []byte) error {
	return f.Batch(ctx, storage.SetOperation(key, value))
}

func (f fullAfter) Batch(ctx context.Context, operations ...*storage.Operation) error {
	if slices.ContainsFunc(operations, func(o *storage.Operation) bool {
		return o.Type != storage.Get && !f.hasSomeSpace || len(o.Value) > 1000
	}) {
		if *f.writes--; *f.writes < 0 {
			return errFull
		}
	}
	return f.Disk.Batch(ctx, operations...)
}

// TestStartOnAFullDisk has a queue of six messages, of which some were delivered and the others were under way when the
// process was killed. A start, after each of its writes, finds that the disk is full or is killed. The next one sends
// every other message, once.
func TestStartOnAFullDisk(t *testing.T) {
	for name, delivered := range map[string][]int{
		"none": nil, "the first": {1}, "the last": {6}, "two": {3, 6}, "most": {2, 3, 4, 5}, "all": {1, 2, 3, 4, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			// A message's number is that of its profiles.
			number := func(pd pprofile.Profiles) int {
				return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().Len()
			}
			var want []int
			finish := map[int]chan struct{}{}
			for n := 1; n <= 6; n++ {
				finish[n] = make(chan struct{})
				if !slices.Contains(delivered, n) {
					want = append(want, n)
				}
			}
			disk := collectortest.NewDisk(nil)
			reading := make(chan struct{})
			exporter := startQueue(t, new(Storages), disk, zap.NewNop(), func(pd pprofile.Profiles) {
				reading <- struct{}{}
				<-finish[number(pd)]
			})
			for n := 1; n <= 6; n++ {
				pd := message()
				for range n - 1 {
					pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().AppendEmpty()
				}
				require.NoError(t, exporter.ConsumeProfiles(t.Context(), pd))
				<-reading
			}
			for _, n := range delivered {
				before := disk.Written()
				close(finish[n])
				require.Eventually(t, func() bool { return disk.Written() > before }, 30*time.Second, time.Millisecond)
			}
			killed := disk.Content()
			for _, n := range want {
				close(finish[n])
			}
			require.NoError(t, exporter.Shutdown(t.Context()))

			for writes, isFull := 0, true; isFull; writes++ {
				disk, left := collectortest.NewDisk(killed), writes/2
				isStuck := make(chan struct{})
				exporter := newQueue(t, func(pprofile.Profiles) { <-isStuck })
				err := exporter.Start(t.Context(),
					host{diskID: safeExtension{fullAfter{disk, &left, writes%2 == 0}, new(Storages), zap.NewNop()}})
				if err != nil {
					require.EqualError(t, err,
						fmt.Sprintf("storage of %s has no room to start with; free some: %v", settings.ID, errFull))
				}
				killedAgain := collectortest.NewDisk(disk.Content())
				isFull = left < 0 || writes%2 == 0
				left = 100
				close(isStuck)
				require.NoError(t, exporter.Shutdown(t.Context()))

				arrived := make(chan int, 12)
				exporter = startQueue(t, new(Storages), killedAgain, zap.NewNop(), func(pd pprofile.Profiles) {
					arrived <- number(pd)
				})
				var got []int
				for range want {
					select {
					case n := <-arrived:
						got = append(got, n)
					case <-time.After(5 * time.Second):
					}
				}
				require.NoError(t, exporter.Shutdown(t.Context()))
				require.Empty(t, arrived)
				slices.Sort(got)
				require.Equal(t, want, got, "after %d writes", writes/2)
				require.Len(t, killedAgain.Content(), 1, "the indices")
			}
		})
	}
}

// TestQueueWorksAfterAFullDisk sends to an exporter whose consumers sleep, while the disk of its queue is full, more
// than the queue has room for. After that the queue must work again.
func TestQueueWorksAfterAFullDisk(t *testing.T) {
	var storages Storages
	disk := collectortest.NewDisk(nil)
	core, log := observer.New(zap.InfoLevel)
	arrived := make(chan pprofile.Profiles, 100)
	exporter := startQueue(t, &storages, disk, zap.New(core), func(pd pprofile.Profiles) { arrived <- pd })
	defer func() { require.NoError(t, exporter.Shutdown(context.WithoutCancel(t.Context()))) }()
	pd := message()
	send := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return send(ctx, &storages, exporter, pd)
	}
	require.NoError(t, send())
	<-arrived
	disk.Fail(nil, errFull)
	for range 20 {
		require.ErrorIs(t, send(), errFull)
	}
	disk.Fail(nil, nil)
	require.Eventually(t, func() bool { return send() == nil }, 30*time.Second, 50*time.Millisecond)
	<-arrived
	require.NoError(t, send())
	<-arrived
	require.Equal(t, 1, log.FilterLevelExact(zap.ErrorLevel).Len())
}
