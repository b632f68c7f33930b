// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/hex"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// linkedProgram is the one of the programs that TestEBPF reports to be in a span.
const linkedProgram = "spin-c"

// spanContext is a value of the table traces_ctx_v1, by which OpenTelemetry's eBPF instrumentation tells the profiler
// the span of each thread (opentelemetry-ebpf-instrumentation, devdocs/trace-profile-correlation.md).
type spanContext struct {
	TraceID [16]byte
	SpanID  [8]byte
}

// spans stands for such an instrumentation.
type spans struct {
	root    string
	context spanContext
}

// newSpans mounts a BPF file system, by which the profiler shares its table. It is unmounted when the test ends.
func newSpans(t *testing.T) *spans {
	t.Helper()
	s := &spans{root: t.TempDir(), context: spanContext{
		TraceID: [16]byte{0x0a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		SpanID:  [8]byte{0xb0, 1, 2, 3, 4, 5, 6, 7},
	}}
	if err := unix.Mount("bpf", s.root, "bpf", 0, ""); err != nil {
		t.Logf("without links, since a BPF file system cannot be mounted: %v", err)
		return &spans{}
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(s.root, unix.MNT_DETACH)) })
	return s
}

// flags are the collector's flags with which the profiler reads the table.
func (s *spans) flags() []string {
	if s.root == "" {
		return nil
	}
	return []string{
		"--config", "yaml:receivers::profiling::obi_process_ctx: true", "--config",
		"yaml:receivers::profiling::bpf_fs_root: " + s.root,
	}
}

// enter puts the only thread of a process into the span.
func (s *spans) enter(t *testing.T, pid int) {
	t.Helper()
	if s.root == "" {
		return
	}
	table, err := ebpf.LoadPinnedMap(filepath.Join(s.root, "otel", "traces_ctx_v1"), nil)
	require.NoError(t, err)
	defer func() { _ = table.Close() }()
	require.NoError(t, table.Put(uint64(pid)<<32|uint64(pid), &s.context))
}

// check wants a link to the span in the samples of that process, but for its first ones, and none in others.
func (s *spans) check(t *testing.T, found map[string]*sampled) {
	t.Helper()
	if s.root == "" {
		return
	}
	for service, sampled := range found {
		if service != linkedProgram {
			assert.Empty(t, sampled.spans, service)
			continue
		}
		span := hex.EncodeToString(s.context.TraceID[:]) + "/" + hex.EncodeToString(s.context.SpanID[:])
		assert.Len(t, sampled.spans, 1, service)
		assert.Greater(t, sampled.spans[span], sampled.total*9/10, service)
	}
}
