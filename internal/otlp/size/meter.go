// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package size

import (
	"context"
	"errors"
	"runtime"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
)

// The memory of a sample and of one of its values or timestamps, as pdata.
const (
	SampleBytes = messages.SampleBytes
	NumberBytes = 8
)

// ErrFull is that of a Reserve from which a single payload or query can never have as much.
var ErrFull = errors.New("more memory than one may have")

// Reserve reserves n bytes of memory before they are taken. Its error ends the work that needs them, which returns it.
type Reserve func(n int) error

// Meter bounds the work of a decoder: it reserves the memory of what grows, and ends the work when a context does.
// Everything that bounds memory uses these words: work *reserves* bytes, of a budget or a limit, before it *grows* by
// them; then they are *in use* until they are *released*.
// Decoders call Grow, GrowTo or Check every thousand steps or so. A nil Meter has no bounds.
type Meter struct {
	// Context is nil if time is not limited.
	Context context.Context //nolint:containedctx // it is that of one call, as the Meter is
	// Reserve is nil if memory is not limited.
	Reserve Reserve
	// Limit is the most that Reserve ever grants, or 0 if that is not known. Beyond it, Reserve returns ErrFull.
	Limit int
	// Turn is nil, or called at each step. Its error ends the work.
	Turn func() error

	inUse, reserved int
	err             error
}

// InUse returns how many bytes are in use.
func (m *Meter) InUse() int {
	if m == nil {
		return 0
	}
	return m.inUse
}

// Grow reserves n bytes more.
func (m *Meter) Grow(n int) error { return m.GrowTo(m.InUse() + n) }

// largeBytes is the memory from which work is large. Usual payloads take less.
const largeBytes = 8 << 20

// GrowTo reserves what total bytes in use need. After an error it returns the same error again. Large work lets others
// run first: otherwise small payloads wait at each step until Go's scheduler interrupts it, which it does after 10 ms.
func (m *Meter) GrowTo(total int) error {
	if m == nil {
		return nil
	}
	if m.err != nil {
		return m.err
	}
	if m.Context != nil {
		if m.err = m.Context.Err(); m.err != nil {
			return m.err
		}
	}
	if m.Turn != nil {
		if m.err = m.Turn(); m.err != nil {
			return m.err
		}
	}
	m.inUse = max(m.inUse, total)
	if m.inUse > largeBytes {
		runtime.Gosched()
	}
	if m.inUse <= m.reserved || m.Reserve == nil {
		return nil
	}
	if m.err = m.Reserve(m.inUse - m.reserved); m.err == nil {
		m.reserved = m.inUse
	}
	return m.err
}

// Check returns an error if the work has ended.
func (m *Meter) Check() error { return m.Grow(0) }

// Reset sets the bytes in use to 0, and keeps the reservation.
func (m *Meter) Reset() {
	if m != nil {
		m.inUse = 0
	}
}

// IsFull reports that the work has ended because it needs more than Limit.
func (m *Meter) IsFull() bool { return m != nil && m.Limit > 0 && errors.Is(m.err, ErrFull) }

// Retry begins again with so many bytes in use after IsFull, and keeps the reservation.
func (m *Meter) Retry(inUse int) { m.inUse, m.err = inUse, nil }

// Err returns the error with which the work has ended: that of Reserve, or of the context.
func (m *Meter) Err() error {
	if m == nil {
		return nil
	}
	return m.err
}
