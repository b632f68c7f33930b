// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClockJumps moves the wall clock of an agent and a gateway forward and back by an hour, while programs send and
// the agent scrapes and retries.
func TestClockJumps(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l, to, agent, gateway := startAgentAndGateway(t)
	from := startTraffic(t, l, 2, map[string]sendFunc{"push": pushes(agent.pprof, 0), "otlp": exports(t, agent.otlp, 0)})
	for _, hours := range []int{1, 0, -1, 0} {
		for _, n := range []*node{agent, gateway} {
			n.moveClock(t, time.Duration(hours)*time.Hour)
			n.requireClock(t, time.Duration(hours)*time.Hour)
		}
		l.requireAcknowledged(t, s.size(200, 2_000))
		to.stop()
		time.Sleep(s.between(0, time.Second))
		to.start(t)
	}
	from.requireDelivered(t, byNodes, agent, gateway)
}

// moveClock adds an offset to the wall clock that a process reads. Go reads it by a function that the kernel maps into
// each process, the vDSO's clock_gettime. moveClock overwrites it with another one, which asks the kernel and adds the
// offset to the wall clock. The monotonic clock does not change, as when a machine's clock is set.
func (n *node) moveClock(t *testing.T, offset time.Duration) {
	t.Helper()
	start, end := n.vdso(t)
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.Pid), os.O_RDWR, 0)
	require.NoError(t, err)
	defer memory.Close()
	image := make([]byte, end-start)
	_, err = memory.ReadAt(image, start)
	require.NoError(t, err)
	library, err := elf.NewFile(bytes.NewReader(image))
	require.NoError(t, err)
	symbols, err := library.DynamicSymbols()
	require.NoError(t, err)
	code := []byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, 228 (clock_gettime)
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi (CLOCK_REALTIME is 0)
		0x75, 0x0d, // jnz over the addition
		0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, // mov rcx, seconds
		0x48, 0x01, 0x0e, // add [rsi], rcx
		0xc3, // ret
	}
	binary.LittleEndian.PutUint64(code[13:], uint64(int64(offset/time.Second)))
	n.whileStopped(t, start, end, func() {
		for _, symbol := range symbols {
			if symbol.Name == "__vdso_clock_gettime" {
				_, err := memory.WriteAt(code, start+int64(symbol.Value))
				require.NoError(t, err)
			}
		}
	})
}

// vdso returns where the kernel's functions are in the process.
func (n *node) vdso(t *testing.T) (start, end int64) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.Pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			_, err := fmt.Sscanf(line, "%x-%x", &start, &end)
			require.NoError(t, err)
			return start, end
		}
	}
	t.Skip("the kernel maps no vDSO")
	return 0, 0
}

// whileStopped calls change while all threads of the process are stopped, and none of them between start and end.
func (n *node) whileStopped(t *testing.T, start, end int64, change func()) {
	t.Helper()
	for deadline := time.Now().Add(deliveryTimeout); time.Now().Before(deadline); {
		require.NoError(t, n.Signal(syscall.SIGSTOP))
		require.Eventually(t, func() bool { _, running := n.threads(t, start, end); return !running }, deliveryTimeout,
			time.Millisecond)
		inside, _ := n.threads(t, start, end)
		if !inside {
			change()
		}
		require.NoError(t, n.Signal(syscall.SIGCONT))
		if !inside {
			return
		}
	}
	t.Fatal("some thread is always reading the clock")
}

// threads reports whether a thread is between start and end, and whether one has not stopped yet.
func (n *node) threads(t *testing.T, start, end int64) (inside, running bool) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/task", n.Pid)
	threads, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, thread := range threads {
		text, err := os.ReadFile(folder + "/" + thread.Name() + "/syscall")
		require.NoError(t, err)
		fields := strings.Fields(string(text))
		var at int64
		if _, err := fmt.Sscanf(fields[len(fields)-1], "0x%x", &at); err != nil {
			running = true // "running" instead of an address
		}
		inside = inside || at >= start && at < end
	}
	return inside, running
}

// requireClock checks that the process dates its answers by the moved clock.
func (n *node) requireClock(t *testing.T, offset time.Duration) {
	t.Helper()
	response, err := httpClient.Get("http://" + n.health)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	date, err := http.ParseTime(response.Header.Get("Date"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(offset), date, 10*time.Minute, "the clock has not moved")
}
