// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// work is the program Work, pinned to a processor.
type work struct {
	*collectortest.Program
	t       *testing.T
	process *target.Target
}

func startWork(t *testing.T, of jdk, options ...string) *work {
	args := append([]string{"-n", cmp.Or(os.Getenv("COST_PRIORITY"), "0"), "taskset", "--cpu-list", "0",
		filepath.Join(of.home, "bin/java"), "-Xmx256m"}, options...)
	java := exec.Command("nice", append(args, "-cp", compiled(t, of, "testdata/Work.java"), "Work")...)
	w := &work{Program: collectortest.StartProgram(t, java), t: t}
	var err error
	w.process, err = target.Open("/proc", int64(java.Process.Pid))
	require.NoError(t, err)
	t.Cleanup(w.process.Close)
	return w
}

// read returns how much was done, and the processor time of the thread that does it.
func (w *work) read() (done, cpu float64) {
	_, err := fmt.Sscan(w.Next(w.t), &done, &cpu)
	require.NoError(w.t, err)
	return done, cpu
}

// threads returns the processor time of the threads whose names begin with one of names, in nanoseconds.
func (w *work) threads(names ...string) (cpu float64) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", w.process.PID))
	require.NoError(w.t, err)
	for _, thread := range threads {
		name, _ := os.ReadFile(filepath.Join(thread, "comm"))
		if !slices.ContainsFunc(names, func(start string) bool { return strings.HasPrefix(string(name), start) }) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(thread, "schedstat"))
		nanos, _, _ := strings.Cut(string(stat), " ")
		n, _ := strconv.ParseFloat(nanos, 64)
		cpu += n
	}
	return cpu
}

// window returns the processor time that one piece of work takes.
func (w *work) window(length time.Duration) float64 {
	done, cpu := w.read()
	time.Sleep(length)
	doneLater, cpuLater := w.read()
	return (cpuLater - cpu) / (doneLater - done)
}

// TestCost measures what events cost a JVM that is recorded: the processor time of a piece of work without, with, with
// and without a recording, again and again in one process. Buffers for allocations are so small, and samples so many,
// that the cost stands out of the noise of a machine that others use. The cost of an event does not depend on how many
// there are, and the README multiplies it.
func TestCost(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("COST_ROUNDS"))
	if rounds == 0 {
		t.Skip("COST_ROUNDS=8 takes three minutes for each JDK; COST_PRIORITY=-5 has it run beside other work")
	}
	const window = 1200 * time.Millisecond
	few := Settings{CPUPeriod: 50 * time.Millisecond, AllocationsPerSecond: 1, WaitThreshold: time.Second,
		MaxRecordingBytes: 64 << 20}
	each, live := few, few
	each.AllocationsPerSecond = 1e6
	live.LiveObjects = true
	for _, of := range javas(t) {
		if of.root != "" {
			continue
		}
		t.Run(of.String(), func(t *testing.T) {
			w := startWork(t, of, "-XX:TLABSize=8k", "-XX:-ResizeTLAB")
			vm, err := inspect(t, w.process)
			require.NoError(t, err)
			recording := &Recording{VM: vm, Timeout: patience}
			require.NoError(t, recording.Start(w.process, &settings, time.Minute)) // the first loads classes
			time.Sleep(5 * window)
			require.NoError(t, recording.Stop(w.process))
			more, dumps, samplers := map[string][]float64{}, []float64{}, []float64{}
			var buffers float64
			for range rounds {
				for name, set := range map[string]*Settings{"processor time": &few, "each allocation buffer": &each,
					"live objects": &live} {
					before := w.window(window)
					done, _ := w.read()
					require.NoError(t, recording.Start(w.process, set, time.Minute))
					time.Sleep(window / 3)
					others := w.threads("JFR", "Attach")
					first, second := w.window(window), w.window(window)
					samplers = append(samplers, (w.threads("JFR", "Attach")-others)/(2*window.Seconds()))
					others = w.threads("JFR", "Attach")
					chunks, err := recording.Dump(w.process, allocate)
					require.NoError(t, err)
					dumps = append(dumps, w.threads("JFR", "Attach")-others)
					doneLater, _ := w.read()
					require.NoError(t, recording.Stop(w.process))
					if name == "each allocation buffer" {
						buffers = float64(summarized(t, chunks, "jdk.ObjectAllocationSample")) / (doneLater - done)
					}
					time.Sleep(window / 3)
					after := w.window(window)
					more[name] = append(more[name], (first+second-before-after)/2)
					more["a piece of work"] = append(more["a piece of work"], (before+after)/2)
				}
			}
			more["a second of the threads that record"], more["a dump"] = samplers, dumps
			t.Logf("a piece of work has %.2f allocation buffers", buffers)
			for name, nanos := range more {
				slices.Sort(nanos)
				n := len(nanos)
				// the order statistics that enclose the median in 95 of 100 cases
				low := max(0, int(float64(n)/2-0.98*math.Sqrt(float64(n))))
				t.Logf("%-36s median %9.1f µs, 95 %% of the time in %.1f to %.1f", name, nanos[n/2]/1e3, nanos[low]/1e3,
					nanos[n-1-low]/1e3)
			}
		})
	}
}

// TestThroughput measures what the receiver's defaults cost a program as a whole: the processor time of all threads of
// a JVM for a piece of work. Two JVMs do the same work at the same time, each on a processor of its own; they change
// processors after each window, and the one that is recorded after each round, so that neither a processor nor a JVM
// nor what else the machine does makes the difference.
func TestThroughput(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("COST_ROUNDS"))
	if rounds == 0 {
		t.Skip("COST_ROUNDS=12 takes 12 minutes for each JDK")
	}
	const windows, window, dumpsApart = 10, 2 * time.Second, time.Minute
	defaults := Settings{CPUPeriod: 50 * time.Millisecond, AllocationsPerSecond: 150, WaitThreshold: 10 * time.Millisecond,
		LiveObjects: true, MaxRecordingBytes: 32 << 20}
	for _, of := range javas(t) {
		if of.root != "" {
			continue
		}
		t.Run(of.String(), func(t *testing.T) {
			works := []*work{startWork(t, of), startWork(t, of)}
			ratio := func(recorded, other *work) float64 {
				vm, err := inspect(t, recorded.process)
				require.NoError(t, err)
				recording := &Recording{VM: vm, Timeout: patience}
				require.NoError(t, recording.Start(recorded.process, &defaults, 2*time.Minute))
				time.Sleep(8 * time.Second) // a recording that begins has methods compiled again
				var cpu, done [2]float64
				for i := range windows {
					for j, w := range []*work{recorded, other} {
						w.pin((i + j) % 2)
						did, _ := w.read()
						done[j] -= did
						cpu[j] -= w.threads("")
					}
					time.Sleep(window)
					for j, w := range []*work{recorded, other} {
						did, _ := w.read()
						done[j] += did
						cpu[j] += w.threads("")
					}
				}
				before, _ := recorded.read()
				dump := recorded.threads("")
				_, err = recording.Dump(recorded.process, allocate)
				require.NoError(t, err)
				dump = recorded.threads("") - dump
				after, _ := recorded.read()
				dump = max(0, dump-(after-before)*cpu[0]/done[0])
				require.NoError(t, recording.Stop(recorded.process))
				cpu[0] += dump * float64(windows*window) / float64(dumpsApart)
				return cpu[0] / done[0] / (cpu[1] / done[1])
			}
			ratio(works[0], works[1]) // the first recording loads classes
			ratio(works[1], works[0])
			var more []float64
			for range rounds {
				more = append(more, 100*(math.Sqrt(ratio(works[0], works[1])*ratio(works[1], works[0]))-1))
			}
			slices.Sort(more)
			n := len(more)
			low := max(0, int(float64(n)/2-0.98*math.Sqrt(float64(n))))
			t.Logf("%.2f %% more, 95 %% of the time %.2f to %.2f", more[n/2], more[low], more[n-1-low])
		})
	}
}

// pin has all threads of the JVM run on one processor.
func (w *work) pin(cpu int) {
	require.NoError(w.t, exec.Command("taskset", "-acp", strconv.Itoa(cpu), strconv.Itoa(int(w.process.PID))).Run())
}
