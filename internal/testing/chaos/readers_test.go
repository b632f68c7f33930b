// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

const (
	historyService = "history"
	historyBytes   = 4 * mib
)

// pageAttacks are readers of a page whose store is full.
func (r *siege) pageAttacks() []attack {
	if !r.doors.page {
		return nil
	}
	selection := "service=" + historyService + "&profile=process_cpu"
	flameGraph := "/api/flamegraph?max_nodes=500000&" + selection
	grouped := flameGraph + "&group_by=key"
	all := []attack{{
		name: "page: grouped flame graphs", senders: []int{1, 4}, before: r.fill,
		prepare: func(*testing.T) func(context.Context) answer {
			return func(ctx context.Context) answer { return r.query(ctx, grouped) }
		},
	}, {
		name: "page: pushes of 4 MB beside long queries", senders: []int{1}, before: r.fill,
		prepare: func(t *testing.T) func(context.Context) answer {
			return func(ctx context.Context) answer { return r.pushBeside(t, ctx, grouped) }
		},
	}}
	merged := "/profiles/" + historyService + "/process_cpu"
	for _, path := range []string{
		flameGraph, grouped, "/api/table?limit=100000&" + selection, merged, merged + ".collapsed",
		merged + ".speedscope.json",
	} {
		all = append(all, attack{
			name: "page: readers who do not read: " + strings.TrimPrefix(path, "/"), senders: []int{30}, before: r.fill,
			prepare: func(*testing.T) func(context.Context) answer {
				return func(ctx context.Context) answer { return r.doNotRead(ctx, path) }
			},
		})
	}
	return all
}

// fill pushes profiles until the store is nearly full, or for a minute.
func (r *siege) fill(t *testing.T) {
	t.Helper()
	var status struct {
		Bytes    float64 `json:"bytes"`
		MaxBytes float64 `json:"max_bytes"`
	}
	number := 0
	for deadline := time.Now().Add(time.Minute); r.watch.why() == "" && time.Now().Before(deadline); {
		if r.pushPProf(t, t.Context(), historyService, worst.History(number)(historyBytes)) != nil {
			time.Sleep(50 * time.Millisecond) // refused for now
			continue
		}
		number++
		text, err := get("http://" + r.node.page + "/api/status")
		if err == nil && json.Unmarshal([]byte(text), &status) == nil && status.Bytes > 0.9*status.MaxBytes {
			break
		}
	}
	t.Logf("filled by %d profiles of %d MiB to %.0f of %.0f MiB; resident %.0f MiB", number, historyBytes/mib,
		status.Bytes/mib, status.MaxBytes/mib, r.node.statusMiB("VmRSS:"))
}

// pushPProf sends a pprof through any door.
func (r *siege) pushPProf(t *testing.T, ctx context.Context, service string, pprof []byte) error {
	t.Helper()
	if r.doors.push > 0 {
		return post(ctx, "http://"+r.node.pprof+"/v1/pprof?service.name="+service, "application/octet-stream",
			profiletest.Gzip(pprof))
	}
	return post(ctx, "http://"+r.node.hec+"/services/collector/event", jsonType, hecEvent(t, service, encoded(pprof)))
}

// query reads an answer to its end.
func (r *siege) query(ctx context.Context, path string) answer {
	switch err := r.honest.read(ctx, path); {
	case err == nil:
		return answer{text: "200 OK"}
	case strings.HasPrefix(err.Error(), "4"):
		return answer{text: err.Error()}
	default:
		return answer{text: unexpected + ": " + err.Error()}
	}
}

// doNotRead asks for an answer and does not read it.
func (r *siege) doNotRead(ctx context.Context, path string) answer {
	connection, err := net.Dial("tcp", r.node.page)
	if err != nil {
		return answer{text: unexpected + ": " + err.Error()}
	}
	defer connection.Close()
	_ = connection.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, r.node.page); err != nil {
		return answer{text: unexpected + ": " + err.Error()}
	}
	select {
	case <-ctx.Done():
	case <-time.After(attackTime):
	}
	return answer{text: "not read"}
}

// pushBeside pushes profiles of 4 MB, while three readers ask for long queries.
func (r *siege) pushBeside(t *testing.T, ctx context.Context, path string) answer {
	t.Helper()
	during, cancel := context.WithTimeout(ctx, attackTime)
	defer cancel()
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for during.Err() == nil {
				_ = r.honest.read(during, path) // the attack of this name alone checks the answer
			}
		})
	}
	pushed := 0
	for ; during.Err() == nil; pushed++ {
		_ = r.pushPProf(t, during, historyService, worst.History(pushed)(4_000_000))
	}
	readers.Wait()
	return answer{text: "done"}
}
