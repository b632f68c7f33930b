// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// watch follows the memory of a process, and ends the process if it takes more than stopAtMiB.
type watch struct {
	node *node
	done chan struct{}
	wait sync.WaitGroup

	mu        sync.Mutex
	anonymous float64
	// resident is the largest that was seen: the kernel's own figure is gone when the process has ended.
	resident float64
	killed   bool
}

func watchMemory(n *node) *watch {
	w := &watch{node: n, done: make(chan struct{})}
	w.wait.Go(func() {
		for {
			select {
			case <-w.done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			anonymous, resident := n.statusMiB("RssAnon:"), n.statusMiB("VmHWM:")
			w.mu.Lock()
			w.anonymous, w.resident = max(w.anonymous, anonymous), max(w.resident, resident)
			if resident > stopAtMiB && !w.killed {
				w.killed = true
				_ = n.Process.Process.Kill() // it may have ended
			}
			w.mu.Unlock()
		}
	})
	return w
}

// reset begins a new measurement, and returns the resident set at this moment.
func (w *watch) reset() (residentMiB float64) {
	// The kernel sets the peak to the resident set: proc_pid_clear_refs(5).
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.node.Pid), []byte("5"), 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.anonymous, w.resident = 0, 0
	return w.node.statusMiB("VmRSS:")
}

// peak returns the largest resident set since reset, and its part that is not pages of files, as far as it was seen.
func (w *watch) peak() (residentMiB, anonymousMiB float64) {
	last := w.node.statusMiB("VmHWM:")
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.resident, last), w.anonymous
}

// why returns why the process has ended, or nothing if it runs.
func (w *watch) why() string {
	select {
	case <-w.node.Exited:
	default:
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed {
		return fmt.Sprintf("; ended by this test above %d MiB", stopAtMiB)
	}
	return fmt.Sprintf("; ended: %v, %v", w.node.ExitErr, w.node.State)
}

func (w *watch) stop() {
	close(w.done)
	w.wait.Wait()
}
