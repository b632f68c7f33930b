// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// benchRequests returns requests by name: captured ones, a batch of them, and two such as busy applications make.
func benchRequests(b *testing.B) map[string]plog.Logs {
	b.Helper()
	all := captured(b)
	// Agents send one record a request. A batch processor in between combines three of one process.
	batch := plog.NewLogs()
	for _, name := range []string{"v4.11.0-001-cpu-snapshot", "v4.11.0-002-cpu-continuous",
		"v4.11.0-003-allocation-continuous"} {
		if batch.LogRecordCount() == 0 {
			all[name].CopyTo(batch)
			continue
		}
		onlyRecord(all[name]).CopyTo(batch.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty())
	}
	return map[string]plog.Logs{
		"node-batch":      batch,
		"node-cpu":        all["v4.11.0-001-cpu-snapshot"],
		"node-allocation": all["v4.11.0-003-allocation-continuous"],
		"java-cpu-100KB":  javaRequest(2000),
		"java-cpu-1MB":    javaRequest(25000),
	}
}

// javaRequest is what a Java agent makes of threads that stand in frames of a pool of 3000, most of them where other
// threads stand too.
func javaRequest(samples int) plog.Logs {
	random := rand.New(rand.NewPCG(1, 2))
	p := &rawPprof{isPacked: true}
	p.str("")
	for id := uint64(1); id <= 3000; id++ {
		p.frame(id, fmt.Sprintf("com.shop.module%d.Service%d.method%d", id%17, id%301, id),
			fmt.Sprintf("Service%d.java", id%301), int64(id%900+1))
	}
	stacks := make([][]uint64, 400)
	for i := range stacks {
		for range 20 + random.IntN(60) {
			stacks[i] = append(stacks[i], uint64(1+random.IntN(3000)))
		}
	}
	for i := range samples {
		thread := random.IntN(200)
		labels := []any{"thread.id", thread + 1, "thread.name", fmt.Sprintf("pool-1-thread-%d", thread),
			"thread.state", "RUNNABLE", "source.event.period", 1000, "source.event.time", 1_700_000_000_000 + i/200*1000}
		if thread < 20 {
			link := i/200*20 + thread + 1
			labels = append(labels, "trace_id", fmt.Sprintf("%032x", link), "span_id", fmt.Sprintf("%016x", link))
		}
		p.sample(stacks[random.IntN(len(stacks))], nil, labels...)
	}
	ld, _ := newRecord(p.encode(), keyFormat, FormatPprof.String(), keyType, "cpu")
	return ld
}

func bodies(ld plog.Logs) (list []string, bytes int64) {
	for _, log := range ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
		list = append(list, log.Body().Str())
		bytes += int64(len(log.Body().Str()))
	}
	return list, bytes
}

// BenchmarkPprof compares Translate with only decoding base64 and gzip with the standard library. Bytes are those of
// the bodies as sent.
func BenchmarkPprof(b *testing.B) {
	for name, ld := range benchRequests(b) {
		records, size := bodies(ld)
		for impl, run := range map[string]func() error{
			"translate": func() error { return translateAll(ld, Options{}) },
			"stdlib": func() (err error) {
				for _, body := range records {
					err = errors.Join(err, decodeWithStandardLibrary(body))
				}
				return err
			},
		} {
			b.Run(name+"/impl="+impl, func(b *testing.B) { measure(b, len(records), size, run) })
		}
	}
}

func translateAll(ld plog.Logs, opts Options) error {
	if result := Translate(ld, opts); len(result.Rejected) > 0 {
		return result.Rejected[0]
	}
	return nil
}

// measure reports CPU time in addition to wall-clock time, since other work may run at the same time.
func measure(b *testing.B, records int, size int64, run func() error) {
	b.SetBytes(size)
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
	spent := cpuTime() - before
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N*records)/spent.Seconds(), "records/cpu-s")
	b.ReportMetric(float64(b.N)*float64(size)/1e6/spent.Seconds(), "MB/cpu-s")
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func decodeWithStandardLibrary(body string) error {
	payload, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return err
	}
	r, err := stdgzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		return err
	}
	_, err = io.ReadAll(r)
	return err
}

// BenchmarkEncode compares each format with OTLP's own marshalling of the same profiles.
func BenchmarkEncode(b *testing.B) {
	inputs := map[string]pprofile.Profiles{}
	for name, request := range benchRequests(b) {
		inputs[name] = Translate(request, Options{}).Profiles
	}
	for _, name := range []string{"go-heap.pb.gz", "go-build-merged-cpu-large.pb.gz"} {
		inputs[name] = pprofs(b)[name]
	}
	for name, pd := range inputs {
		pd.MarkReadOnly()
		samples := observations(pd)
		report := func(b *testing.B) {
			b.ReportMetric(float64(samples)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
		}
		b.Run("input="+name+"/impl=otlp-marshal", func(b *testing.B) {
			b.ReportAllocs()
			marshaler := &pprofile.ProtoMarshaler{}
			for b.Loop() {
				if _, err := marshaler.MarshalProfiles(pd); err != nil {
					b.Fatal(err)
				}
			}
			report(b)
		})
		for _, format := range []Format{FormatOTLP, FormatPprof} {
			b.Run("input="+name+"/impl="+format.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					encoder := NewEncoder(pd, EncodeOptions{Format: format, MaxRecordBytes: 1_000_000, MaxPartBytes: 3_932_160})
					sent := 0
					for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
						sent += part.Samples
					}
					if sent != samples {
						b.Fatalf("sent %d of %d samples", sent, samples)
					}
				}
				report(b)
			})
		}
	}
}
