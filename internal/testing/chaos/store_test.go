// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// storeLedger pushes profiles, each with functions of its own, and remembers which were acknowledged.
type storeLedger struct {
	node      *node
	functions int // of a profile

	mu           sync.Mutex
	next         int
	acknowledged map[int]bool
}

// service returns the number of the service of a push: a query of all of them would be too large.
func (l *storeLedger) service(n int) int { return n * l.functions / 20_000 }

// push sends one profile, and reports whether it was acknowledged.
func (l *storeLedger) push() bool {
	l.mu.Lock()
	n := l.next
	l.next++
	l.mu.Unlock()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:     1, TimeNanos: time.Now().UnixNano(), DurationNanos: 1e6,
	}
	for i := range l.functions {
		f := &profile.Function{ID: uint64(i + 1), Name: fmt.Sprintf("push%d.function%d", n, i)}
		location := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, location)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{location}, Value: []int64{1}})
	}
	var body bytes.Buffer
	if p.Write(&body) != nil {
		return false
	}
	url := fmt.Sprintf("http://%s/v1/pprof?service.name=shop%d", l.node.pprof, l.service(n))
	if post(context.Background(), url, "application/octet-stream", body.Bytes()) != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[n] = true
	return true
}

// requireStored requires that the page has every function of every profile that was acknowledged, once.
func (l *storeLedger) requireStored(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[int]int{}
	services := map[int]bool{}
	for n := range l.acknowledged {
		services[l.service(n)] = true
	}
	for service := range services {
		body, err := get(fmt.Sprintf("http://%s/profiles/shop%d/process_cpu", l.node.page, service))
		require.NoError(t, err)
		p, err := profile.ParseData([]byte(body))
		require.NoError(t, err, "%.200s", body)
		for _, s := range p.Sample {
			name, _, _ := strings.Cut(s.Location[0].Line[0].Function.Name, ".")
			var n int
			_, err := fmt.Sscanf(name, "push%d", &n)
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Value[0], "%s was stored more than once", name)
			found[n]++
		}
	}
	for n := range l.acknowledged {
		require.Equal(t, l.functions, found[n], "push %d was acknowledged", n)
	}
	t.Logf("%d pushes, %d acknowledged, %d stored", l.next, len(l.acknowledged), len(found))
}

// startStore starts config/quickstart.yaml with its store in a folder.
func startStore(t *testing.T, folder string, functions int) *storeLedger {
	n := newNode(t, quickstartConfig, "", "--set=receivers.pprof.self=null")
	n.env = append(n.env, "PROFILES_OUT="+folder)
	n.start(t)
	return &storeLedger{node: n, functions: functions, acknowledged: map[int]bool{}}
}

// TestKilledStore kills a collector that keeps profiles on disk, again and again, while senders push. Whatever it
// acknowledged is there.
func TestKilledStore(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l := startStore(t, t.TempDir(), 3)
	for range s.size(5, 200) {
		stop := make(chan struct{})
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						l.push()
					}
				}
			})
		}
		time.Sleep(s.between(50*time.Millisecond, 600*time.Millisecond))
		l.node.Kill()
		close(stop)
		senders.Wait()
		l.node.start(t)
	}
	l.requireStored(t)
	l.node.requireEnds(t)
}

// TestFullDiskOfTheStore fills the disk of the store. Senders are asked to retry, readers are served, and a kill loses
// nothing that was acknowledged: neither at once, nor after starts while the disk is full, nor when there is room
// again.
func TestFullDiskOfTheStore(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	for range s.size(1, 20) {
		disk, free := smallDisk(t)
		l := startStore(t, disk, 2000)
		failing := func() float64 { return l.node.metric(t, "otelcol_exporter_profile_store_disk_failing") }
		for deadline := time.Now().Add(time.Minute); failing() == 0; {
			l.push()
			require.True(t, time.Now().Before(deadline), "the disk is not full")
		}
		l.requireStored(t)
		for range s.size(2, 5) {
			l.node.Kill()
			l.node.start(t)
			for range 20 {
				l.push()
			}
			l.requireStored(t)
		}
		free()
		require.Eventually(t, l.push, time.Minute, 200*time.Millisecond)
		l.node.Kill()
		l.node.start(t)
		l.requireStored(t)
		l.node.requireEnds(t)
	}
}
