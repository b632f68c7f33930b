// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestBombs sends small requests that are costly to read to an agent with the memory and the settings of
// config/kubernetes, two senders of each kind. The requests of other senders are still acknowledged.
func TestBombs(t *testing.T) {
	s := newScenario(t, alsoShort)
	l, to := startBackend(t)
	n := newNode(t, agentConfig, to.address, "--set=receivers.pprof.limits.max_profile_bytes=50000000")
	n.env = append(n.env, "GOMEMLIMIT=400MiB", "MEMORY_LIMIT_MIB=384")
	n.start(t)
	n.limitMemory(t, 512<<20)
	from := startTraffic(t, l, 2,
		map[string]sendFunc{"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0), "hec": events(n.hec, 0)})
	l.requireAcknowledged(t, 50)
	before := n.usage(t)

	bombs := bombs(t, n)
	ctx, stop := context.WithCancel(t.Context())
	var bombers sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]map[string]int{}
	for name, send := range bombs {
		answers[name] = map[string]int{}
		for range 2 {
			bombers.Go(func() {
				for ctx.Err() == nil {
					answer := send(ctx)
					mu.Lock()
					answers[name][answer]++
					mu.Unlock()
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
	}
	most := 0.0
	bombers.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			most = max(most, n.statusMiB("RssAnon:"))
		}
	})
	for deadline := time.Now().Add(time.Duration(s.size(10, 60)) * time.Second); time.Now().Before(deadline); {
		n.requireRuns(t)
		l.requireAcknowledged(t, 10*samplesPerRequest)
	}
	stop()
	bombers.Wait()
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		t.Logf("%s: %v", name, answers[name])
	}
	// The rest of the resident set is pages of the binary and of the queue's file, which the kernel can drop.
	t.Logf("at most %.0f MiB, %.0f MiB with files", most, n.peakMiB(t))
	require.Less(t, most, 512.0)
	n.requireRuns(t)
	n.requireBack(t, before)
	from.requireDelivered(t, bySenders, n)
}

// limitMemory moves the process into a control group of its own, if this machine allows it. Otherwise there are only
// GOMEMLIMIT and the check of the peak in the test.
func (n *node) limitMemory(t *testing.T, limit int) {
	t.Helper()
	folder, file := fmt.Sprintf("/sys/fs/cgroup/memory/chaos-%d", n.Pid), "memory.limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		folder, file = fmt.Sprintf("/sys/fs/cgroup/chaos-%d", n.Pid), "memory.max"
	}
	err := os.Mkdir(folder, 0o700)
	if err == nil {
		t.Cleanup(func() {
			n.Kill()
			require.Eventually(t, func() bool { return os.Remove(folder) == nil }, deliveryTimeout, 50*time.Millisecond)
		})
		err = os.WriteFile(filepath.Join(folder, file), []byte(strconv.Itoa(limit)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(n.Pid)), 0o600)
	}
	if err != nil {
		t.Logf("no control group, GOMEMLIMIT alone: %v", err)
	}
}

// bombs returns functions that send a request and return the answer.
func bombs(t *testing.T, n *node) map[string]func(context.Context) string {
	t.Helper()
	header := func(texts ...string) profiletest.PprofWire {
		return profiletest.PprofWire(nil).Strings(append([]string{"", "samples", "count", "key"}, texts...)...).
			ValueType(profiletest.PprofSampleType, 1, 2)
	}
	comments := header(strings.Repeat("a comment ", 6_554))
	for range 4_000 {
		comments = comments.Varint(profiletest.PprofComment, 4)
	}
	labels := func(text string, count int) profiletest.PprofWire {
		payload := header(text)
		for range count {
			payload = payload.Message(profiletest.PprofSample, profiletest.PprofWire(nil).
				Packed(profiletest.PprofSampleValue, 1).Label(profiletest.PprofLabel{Key: 3, Str: 4}))
		}
		return payload
	}
	var fields strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&fields, `"field-%d": "x", `, i)
	}
	event := `{"event": "x", "sourcetype": "otel.profiling", "fields": {` + fields.String() + `"last": "x"}}`
	push := "http://" + n.pprof + "/v1/pprof?service.name=bomb"
	return map[string]func(context.Context) string{
		"comments of one text":        poster(push, "", packed(comments)),
		"labels of one invalid text":  poster(push, "", packed(labels(strings.Repeat("\xff-", 65_536), 1_000))),
		"labels of one long text":     poster(push, "", packed(labels(strings.Repeat("label", 200_000), 4_000))),
		"a gigabyte of nothing":       poster(push, "", zeros()),
		"a gigabyte, encoded":         poster(push, "gzip", zeros()),
		"many fields of an event":     poster("http://"+n.hec+"/services/collector/event", "", []byte(event)),
		"many attributes of a record": poster("http://"+n.splunkHTTP+"/v1/logs", "", manyAttributes(t)),
		"many samples of a long name": poster("http://"+n.otlpHTTP+"/v1development/profiles", "", longName(t)),
	}
}

// packed compresses a payload by gzip, as programs do.
func packed(payload []byte) []byte {
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	_, _ = w.Write(payload) // a buffer takes everything
	_ = w.Close()
	return body.Bytes()
}

// zeros returns about a megabyte of gzip that unpacks to a gigabyte of zeros.
var zeros = sync.OnceValue(func() []byte {
	var body bytes.Buffer
	w, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	for range 1_024 {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	return body.Bytes()
})

// manyAttributes returns a log record of a Splunk agent with 80,000 attributes.
func manyAttributes(t *testing.T) []byte {
	t.Helper()
	ld := plog.NewLogs()
	scope := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.Scope().SetName("otel.profiling")
	attributes := scope.LogRecords().AppendEmpty().Attributes()
	attributes.EnsureCapacity(80_000)
	raw := map[string]any{"com.splunk.sourcetype": "otel.profiling"}
	for i := range 80_000 {
		raw[fmt.Sprintf("attribute-%d", i)] = "x"
	}
	require.NoError(t, attributes.FromRaw(raw))
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	require.NoError(t, err)
	return body
}

// longName returns a profile of two thousand samples that share one function, whose name has 4 MB.
func longName(t *testing.T) []byte {
	t.Helper()
	b := profiletest.New().Resource("service.name", "bomb").Scope("chaos", "1").Profile("samples", "count")
	name := strings.Repeat("long", 1_050_000)
	for i := range 2_000 {
		b.Sample(profiletest.Value(1, name).With(profiletest.Attr("number", i)))
	}
	body, err := pprofileotlp.NewExportRequestFromProfiles(b.Build()).MarshalProto()
	require.NoError(t, err)
	return body
}

func poster(url, encoding string, body []byte) func(context.Context) string {
	return func(ctx context.Context) string {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		request.Header.Set("Content-Type", "application/x-protobuf")
		if encoding != "" {
			request.Header.Set("Content-Encoding", encoding)
		}
		response, err := httpClient.Do(request)
		if err != nil {
			return "no answer"
		}
		defer response.Body.Close()
		return response.Status
	}
}
