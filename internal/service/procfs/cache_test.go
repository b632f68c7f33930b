// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeMachine has processes that tests start and end, and some that block their reader.
type fakeMachine struct {
	mu        sync.Mutex
	processes map[int64]Process
	held      map[int64]chan struct{}
	reads     map[int64]int
	outcomes  map[Outcome]int
	time      time.Time
}

func newMachine() *fakeMachine {
	return &fakeMachine{
		processes: map[int64]Process{}, held: map[int64]chan struct{}{}, reads: map[int64]int{}, outcomes: map[Outcome]int{},
		time: time.Unix(1_000, 0),
	}
}

func (m *fakeMachine) read(pid int64) (Process, error) {
	m.mu.Lock()
	held := m.held[pid]
	m.reads[pid]++
	p, ok := m.processes[pid]
	m.mu.Unlock()
	if held != nil {
		<-held
	}
	switch {
	case pid == 13:
		return Process{}, errors.New("not today")
	case !ok:
		return Process{}, ErrGone
	}
	return p, nil
}

// cache remembers what a process was started with.
func (m *fakeMachine) cache(t *testing.T, options Options) *Cache[string] {
	c := NewCache(options, m.read, func(key Key, p *Process) string {
		if p == nil {
			return "said " + key.Executable
		}
		return "read " + p.Unit
	}, func(outcome Outcome) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.outcomes[outcome]++
	})
	c.now = func() time.Time {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.time
	}
	t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	return c
}

func (m *fakeMachine) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.time = m.time.Add(d)
}

var usual = Options{MaxProcesses: 100, RefreshInterval: time.Minute, MaxWait: 10 * time.Second}

func TestCacheReadsOnceUntilItRefreshes(t *testing.T) {
	m := newMachine()
	m.processes[1] = Process{Unit: "100"}
	c := m.cache(t, usual)
	keys := []Key{{PID: 1}, {PID: 2, Executable: "gone"}, {PID: 1}, {PID: 13, Executable: "odd"}}
	want := []string{"read 100", "said gone", "read 100", "said odd"}
	for range 3 {
		assert.Equal(t, want, c.Resolve(t.Context(), keys))
	}
	assert.Equal(t, map[int64]int{1: 1, 2: 1, 13: 1}, m.reads)
	assert.Equal(t, map[Outcome]int{OutcomeRead: 1, OutcomeGone: 1, OutcomeError: 1}, m.outcomes)
	assert.Equal(t, 3, c.Len())

	m.pass(2 * time.Minute)
	m.processes[1] = Process{Unit: "200"} // another process got the number
	m.processes[2] = Process{Unit: "300"}
	assert.Equal(t, []string{"read 200", "read 300"},
		c.Resolve(t.Context(), []Key{{PID: 1}, {PID: 2, Executable: "gone"}}))
}

// Samples may arrive after their process has ended.
func TestCacheKeepsWhatHasEnded(t *testing.T) {
	m := newMachine()
	m.processes[1] = Process{Unit: "100"}
	c := m.cache(t, usual)
	c.Resolve(t.Context(), []Key{{PID: 1}})
	delete(m.processes, 1)
	m.pass(2 * time.Minute)
	assert.Equal(t, []string{"read 100"}, c.Resolve(t.Context(), []Key{{PID: 1}}))
	assert.Equal(t, 1, m.outcomes[OutcomeGone])
}

// A process with the same id is another one if its executable differs.
func TestCacheComparesExecutables(t *testing.T) {
	m := newMachine()
	m.processes[1] = Process{Unit: "100", Executable: "/usr/bin/bash"}
	m.processes[2] = Process{Unit: "200"}
	c := m.cache(t, usual)
	bash, python := Key{PID: 1, Executable: "/usr/bin/bash"}, Key{PID: 1, Executable: "/usr/bin/python3"}
	assert.Equal(t, []string{"read 100", "said /usr/bin/python3"}, c.Resolve(t.Context(), []Key{bash, python}))
	assert.Equal(t, 1, m.outcomes[OutcomeMismatch])
	assert.Equal(t, []string{"read 100", "read 100"},
		c.Resolve(t.Context(), []Key{{PID: 1, Executable: "bash"}, {PID: 1}}))
	assert.Equal(t, []string{"read 200"}, c.Resolve(t.Context(), []Key{{PID: 2, Executable: "/any"}}),
		"its executable may not be visible")
	other := Key{PID: 1, Executable: "/bin/zsh"}
	m.processes[1] = Process{Unit: "100", Executable: "/bin/zsh"}
	assert.Equal(t, []string{"read 100"}, c.Resolve(t.Context(), []Key{other}), "it has replaced its program")
}

func TestCacheIsBounded(t *testing.T) {
	m := newMachine()
	c := m.cache(t, usual)
	for pid := int64(1); pid <= 1000; pid++ {
		m.processes[pid] = Process{Unit: fmt.Sprint(pid)}
		c.Resolve(t.Context(), []Key{{PID: pid}, {PID: 1}})
		require.LessOrEqual(t, c.Len(), usual.MaxProcesses)
	}
	assert.Equal(t, 1, m.reads[1], "what is asked for again and again stays")
}

// If reading a process blocks, one message waits for it, later ones do not, and other processes are read.
func TestCacheDoesNotWaitForHeldProcesses(t *testing.T) {
	m := newMachine()
	for pid := range int64(20) {
		m.processes[pid] = Process{Unit: "100"}
	}
	m.held[1] = make(chan struct{})
	c := m.cache(t, Options{MaxProcesses: 100, RefreshInterval: time.Minute, MaxWait: 20 * time.Millisecond})
	got := c.Resolve(t.Context(), []Key{{PID: 2}, {PID: 1, Executable: "held"}, {PID: 3, Executable: "another"}})
	assert.Equal(t, []string{"read 100", "said held", "read 100"}, got)
	assert.Equal(t, 1, m.outcomes[OutcomeTimeout])

	c.options.MaxWait = time.Hour // the test would take this long if it waited
	m.pass(2 * time.Hour)
	got = c.Resolve(t.Context(), []Key{{PID: 1, Executable: "held"}, {PID: 3, Executable: "another"}})
	assert.Equal(t, []string{"said held", "read 100"}, got)
	assert.Equal(t, 1, m.reads[1], "it is not read by another goroutine")
	close(m.held[1])
	require.Eventually(t, func() bool {
		return c.Resolve(t.Context(), []Key{{PID: 1, Executable: "held"}})[0] == "read 100"
	}, 30*time.Second, time.Millisecond)
}

// If all readers are blocked, messages pass with what is known.
func TestCacheWhereAllReadersAreHeld(t *testing.T) {
	m := newMachine()
	release := make(chan struct{})
	c := m.cache(t, Options{MaxProcesses: 100, RefreshInterval: time.Minute, MaxWait: time.Millisecond})
	for pid := int64(1); pid <= maxReaders; pid++ {
		m.held[pid] = release
		c.Resolve(t.Context(), []Key{{PID: pid}})
	}
	m.processes[100] = Process{Unit: "100"}
	x := Key{PID: 100, Executable: "x"}
	assert.Equal(t, []string{"said x", "said x"}, c.Resolve(t.Context(), []Key{x, x}))
	assert.Zero(t, m.reads[100])

	c.options.MaxWait = time.Hour // the test would take this long if it waited
	m.pass(2 * time.Hour)
	y := Key{PID: 100, Executable: "y"}
	assert.Equal(t, []string{"said y", "said y"}, c.Resolve(t.Context(), []Key{y, y}))
	assert.Equal(t, []string{"said x"}, c.Resolve(t.Context(), []Key{x}))
	assert.Len(t, c.pending, maxReaders+1, "nothing is queued while all readers are held")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, c.Shutdown(ended))
	close(release)
}

// A key can be a part of a message, which is not kept for it.
func TestCacheKeepsNoMessages(t *testing.T) {
	m := newMachine()
	c := m.cache(t, usual)
	before := profiletest.HeapBytes()
	for pid := range int64(50) {
		c.Resolve(t.Context(), []Key{{PID: pid, Executable: strings.Repeat("x", 1<<20)[:20]}})
	}
	assert.Less(t, profiletest.HeapBytes(), before+5<<20)
	assert.Equal(t, 50, c.Len())
}

func TestCacheByManyMessages(t *testing.T) {
	m := newMachine()
	for pid := range int64(50) {
		m.processes[pid] = Process{Unit: fmt.Sprint(pid)}
	}
	c := m.cache(t, Options{MaxProcesses: 1000, RefreshInterval: 0, MaxWait: 10 * time.Second})
	var messages sync.WaitGroup
	for range 8 {
		messages.Go(func() {
			for range 50 {
				var keys []Key
				for pid := range int64(50) {
					keys = append(keys, Key{PID: pid})
				}
				for i, got := range c.Resolve(t.Context(), keys) {
					if i == 13 { // cannot be read
						continue
					}
					if got != fmt.Sprint("read ", i) {
						t.Errorf("process %d: %s", i, got)
					}
				}
			}
		})
	}
	messages.Wait()
	assert.Empty(t, c.pending)
}
