// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pdatasize

// The memory of a sample and of one of its values or timestamps, as pdata.
const (
	SampleBytes = 128
	NumberBytes = 8
)

// Reserve reserves n bytes of memory before they are taken. Its error ends the work that needs them, which returns it.
type Reserve func(n int) error

// Meter reserves the memory of something that grows. A nil Meter reserves nothing.
type Meter struct {
	// Reserve is nil if memory is not limited.
	Reserve Reserve

	level, reserved int
	err             error
}

// Level returns how many bytes are in use.
func (m *Meter) Level() int {
	if m == nil {
		return 0
	}
	return m.level
}

// More takes n bytes more.
func (m *Meter) More(n int) error { return m.Reach(m.Level() + n) }

// Reach takes bytes until total are in use.
func (m *Meter) Reach(total int) error {
	if m == nil {
		return nil
	}
	m.level = max(m.level, total)
	if m.level <= m.reserved || m.Reserve == nil {
		return nil
	}
	if m.err = m.Reserve(m.level - m.reserved); m.err == nil {
		m.reserved = m.level
	}
	return m.err
}

// Restart tells that nothing is in use any more. What was reserved serves what comes next.
func (m *Meter) Restart() {
	if m != nil {
		m.level = 0
	}
}

// IsRefused reports that Reserve has returned an error.
func (m *Meter) IsRefused() bool { return m != nil && m.err != nil }
