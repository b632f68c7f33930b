// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command flightrecorder shows how a server sends what happened just before a slow request: the flight recorder of
// runtime/trace keeps the last seconds in memory, and the server pushes them to the collector's pprof receiver.
//
//	go run ./docs/examples/flightrecorder -collector http://localhost:4040
//
// It listens on localhost:8080. Every tenth request waits for a lock that is held for 30 ms.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"runtime/trace"
	"sync"
	"sync/atomic"
	"time"
)

const slow = 20 * time.Millisecond

var (
	mu       sync.Mutex
	requests atomic.Int64
)

func main() {
	collector := flag.String("collector", "http://localhost:4040", "base URL of the pprof receiver")
	listen := flag.String("listen", "localhost:8080", "address to answer on")
	flag.Parse()

	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 2 * time.Second, MaxBytes: 8 << 20})
	if err := recorder.Start(); err != nil {
		log.Fatal(err)
	}
	dumps := &dumper{recorder: recorder,
		target: *collector + "/v1/profiles?format=go_trace&service.name=" + url.QueryEscape("flight recorder")}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		ctx, task := trace.NewTask(r.Context(), "request")
		defer task.End()
		// Profiles of this request link to this span.
		if parent := r.Header.Get("traceparent"); parent != "" {
			trace.Log(ctx, "traceparent", parent)
		}
		began := time.Now()
		trace.WithRegion(ctx, "handle", handle)
		if time.Since(began) > slow {
			dumps.send()
		}
		fmt.Fprintln(w, "done")
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}

func handle() {
	if requests.Add(1)%10 == 0 {
		go func() {
			mu.Lock()
			time.Sleep(30 * time.Millisecond)
			mu.Unlock()
		}()
		time.Sleep(time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
}

// dumper sends one dump at a time, at most every ten seconds: if one request is slow, others usually are, too.
type dumper struct {
	recorder *trace.FlightRecorder
	target   string
	busy     atomic.Bool
	last     time.Time
}

func (d *dumper) send() {
	if !d.busy.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer d.busy.Store(false)
		if time.Since(d.last) < 10*time.Second {
			return
		}
		d.last = time.Now()
		var dump bytes.Buffer
		if _, err := d.recorder.WriteTo(&dump); err != nil {
			log.Print("dump: ", err)
			return
		}
		size := dump.Len()
		response, err := http.Post(d.target, "application/octet-stream", &dump)
		if err != nil {
			log.Print("send: ", err)
			return
		}
		defer func() { _ = response.Body.Close() }()
		answer, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		log.Printf("sent %d bytes: %s %s", size, response.Status, answer)
	}()
}
