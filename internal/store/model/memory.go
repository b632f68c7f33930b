// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"runtime"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// Memory is what a query uses. It is reserved before it is taken, memoryStep bytes at a time. After an error, Grow and
// Check return the same one again, so that a loop may go on for a few steps.
type Memory struct {
	meter          *size.Meter
	used, reserved int
	// Progress is nil if nobody wants to know it.
	Progress *Progress
}

const memoryStep = 128 << 10

// NewMemory returns the memory of a query that ends with ctx. meter is nil if nothing bounds it.
func NewMemory(ctx context.Context, meter *size.Meter) *Memory {
	if meter == nil {
		meter = &size.Meter{Context: ctx}
	}
	progress, _ := ctx.Value(progressKey{}).(*Progress)
	return &Memory{meter: meter, Progress: progress}
}

// Grow reserves n bytes more.
func (m *Memory) Grow(n int) error {
	if m.used += n; m.used <= m.reserved {
		return m.meter.Err()
	}
	m.reserved = m.used + memoryStep
	return m.meter.GrowTo(m.reserved)
}

// Release frees n bytes. What was reserved for them serves what comes next.
func (m *Memory) Release(n int) { m.used -= n }

// Check returns an error if the query has ended: that of its context, or of Grow. It lets others run first: otherwise a
// push may wait until Go's scheduler interrupts the query, which it does after 10 ms.
func (m *Memory) Check() error {
	runtime.Gosched()
	return m.meter.Check()
}

// Keep ends a query whose result takes n bytes.
func (m *Memory) Keep(n int) error {
	m.meter.Reset()
	return m.meter.Grow(n)
}

// Fitted computes an answer that may leave out nodes. If all nodes need more memory than a query can ever have, fitted
// calls compute again with a number of parts: the answer may use one such part of the free memory.
func (m *Memory) Fitted(compute func(parts int) error) error {
	used := m.used
	var err error
	for _, parts := range []int{0, 2, 8} {
		if err = compute(parts); err == nil || !m.meter.IsFull() {
			return err
		}
		m.used, m.reserved = used, used
		m.meter.Retry(used)
	}
	return err
}

// OnTop makes the memory come on top of what the meter has already.
func (m *Memory) OnTop() *Memory {
	m.used = m.meter.InUse()
	m.reserved = m.used
	return m
}

// InUse returns how much the query uses.
func (m *Memory) InUse() int { return m.used }

// Free returns how much of its limit a query does not use.
func (m *Memory) Free() int { return m.meter.Limit - m.used }
