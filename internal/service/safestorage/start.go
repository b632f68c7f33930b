// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package safestorage

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// queueMetadata is the key of all indices of a queue, the message PersistentMetadata of exporterhelper v0.165. An
// item's key is its index.
const (
	queueMetadata = "qmv0"

	readIndex  protowire.Number = 3 // of the item that is read next
	lastScalar protowire.Number = 4
	underWay   protowire.Number = 5 // the indices of items that were read, and are not done
)

// indices are a queue's metadata: the fields before underWay, by number, and the items that were under way, in order.
type indices struct {
	scalars  [lastScalar + 1]uint64
	underWay []uint64
}

// parseIndices is false for metadata of another version.
func parseIndices(metadata []byte) (x indices, ok bool) {
	r := wire.New(metadata)
	for r.Next() {
		switch {
		case r.Wire == protowire.Fixed64Type && r.Number <= lastScalar:
			x.scalars[r.Number] = r.Value
		case r.Wire == protowire.BytesType && r.Number == underWay && len(r.Content)%8 == 0:
			for packed := r.Content; len(packed) > 0; packed = packed[8:] {
				x.underWay = append(x.underWay, binary.LittleEndian.Uint64(packed))
			}
		default:
			return indices{}, false
		}
	}
	slices.Sort(x.underWay)
	return x, !r.IsMalformed()
}

func (x indices) encode() (metadata []byte) {
	for i := protowire.Number(1); i <= lastScalar; i++ {
		metadata = protowire.AppendFixed64(protowire.AppendTag(metadata, i, protowire.Fixed64Type), x.scalars[i])
	}
	if len(x.underWay) == 0 {
		return metadata
	}
	var packed []byte
	for _, i := range x.underWay {
		packed = binary.LittleEndian.AppendUint64(packed, i)
	}
	return protowire.AppendBytes(protowire.AppendTag(metadata, underWay, protowire.BytesType), packed)
}

// putBack makes the items that were under way the next ones that the queue reads. All indices below the read index are
// theirs, or free. Most often, such as while the backend is away, they are the last of these, and nothing but the
// indices is written. If a write fails, the queue is as before, or has some items put back.
func (c *client) putBack(ctx context.Context) error {
	metadata, err := c.Get(ctx, queueMetadata)
	if err != nil {
		return err
	}
	x, ok := parseIndices(metadata)
	if !ok || len(x.underWay) == 0 {
		return nil
	}
	for last := len(x.underWay) - 1; last >= 0; last-- {
		from := x.underWay[last]
		x.underWay = x.underWay[:last]
		if from >= x.scalars[readIndex] {
			continue // it is still to be read
		}
		item, err := c.Get(ctx, itemKey(from))
		if err != nil {
			return err
		}
		if item == nil {
			continue // it was delivered, and only the indices could not be written
		}
		x.scalars[readIndex]--
		if to := x.scalars[readIndex]; to != from {
			if err := c.Client.Batch(ctx, storage.SetOperation(itemKey(to), item),
				storage.SetOperation(queueMetadata, x.encode()), storage.DeleteOperation(itemKey(from))); err != nil {
				return err
			}
		}
	}
	return c.Set(ctx, queueMetadata, x.encode())
}

func itemKey(index uint64) string { return strconv.FormatUint(index, 10) }
