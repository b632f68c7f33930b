// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package safestorage

import (
	"context"
	"errors"
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

func TestNothingStartsOnAFullDisk(t *testing.T) {
	disk := collectortest.NewDisk(nil)
	disk.Fail(nil, errFull)
	_, err := clientOf(t, disk)
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "storage of disk has no room to start with")
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
	id := component.MustNewID("disk")
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.StorageID, queue.BlockOnOverflow = &id, true
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
	require.NoError(t, exporter.Start(t.Context(), host{id: safeExtension{disk, storages, logger}}))
	return exporter
}

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
	require.Eventually(t, func() bool { return send() == nil }, 10*time.Second, 50*time.Millisecond)
	<-arrived
	require.NoError(t, send())
	<-arrived
	require.Equal(t, 1, log.FilterLevelExact(zap.ErrorLevel).Len())
}
