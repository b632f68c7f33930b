// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command stall writes an execution trace of a program that stalls for 30 ms once a second: a compaction holds the
// lock that all requests need. An average does not show that; the page's heat map does.
//
//	go run ./docs/examples/stall stall.trace
//	profiletool serve stall.trace
package main

import (
	"log"
	"os"
	"runtime/trace"
	"sync"
	"time"
)

var data sync.Mutex

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: stall FILE")
	}
	file, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	go compactEverySecond()
	for range 6 {
		go serveRequests()
	}
	if err := trace.Start(file); err != nil {
		log.Fatal(err)
	}
	time.Sleep(40 * time.Second)
	trace.Stop()
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
}

func compactEverySecond() {
	for range time.Tick(time.Second) {
		data.Lock()
		time.Sleep(30 * time.Millisecond)
		data.Unlock()
	}
}

func serveRequests() {
	for {
		data.Lock()
		time.Sleep(50 * time.Microsecond)
		data.Unlock()
		for end := time.Now().Add(300 * time.Microsecond); time.Now().Before(end); {
			continue // work
		}
		time.Sleep(3 * time.Millisecond)
	}
}
