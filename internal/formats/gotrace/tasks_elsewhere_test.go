// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"bytes"
	"context"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A goroutine waits on a task, which another goroutine ends or links to a span. The wait until then has the context of
// until then.
func TestTasksThatOthersChange(t *testing.T) {
	const traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, c := range map[string]struct {
		change func(ctx context.Context, task *trace.Task)
		want   []string // of the parts of the wait
	}{
		"nothing": {func(context.Context, *trace.Task) {}, []string{`go.task.type="request"`}},
		"it ends": {func(_ context.Context, task *trace.Task) { task.End() }, []string{`go.task.type="request"`, ""}},
		"a link": {func(ctx context.Context, _ *trace.Task) { trace.Log(ctx, logTraceParent, traceParent) },
			[]string{"", "link "}},
		"its name": {func(ctx context.Context, _ *trace.Task) { trace.Log(ctx, "user", "ada") },
			[]string{`go.task.type="request"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, trace.Start(&out))
			ctx, task := trace.NewTask(t.Context(), "request")
			done, finished := make(chan struct{}), make(chan struct{})
			go func() {
				trace.WithRegion(ctx, "wait for the database", func() { <-done })
				close(finished)
			}()
			time.Sleep(20 * time.Millisecond)
			c.change(ctx, task)
			time.Sleep(5 * time.Millisecond)
			close(done)
			<-finished
			trace.Stop()
			pd, _, err := Decode(out.Bytes(), everything())
			require.NoError(t, err)
			require.NoError(t, pt.Check(pd))
			var parts []string
			for line := range strings.Lines(pt.Render(pd)) {
				if strings.Contains(line, "wait for the database") && strings.Contains(line, "chan receive") {
					parts = append(parts, line)
				}
			}
			require.Len(t, parts, len(c.want), parts)
			for i, want := range c.want {
				found := false
				for _, part := range parts {
					found = found || strings.Contains(part, want)
				}
				require.True(t, found, "%d: %s", i, parts)
			}
		})
	}
}
