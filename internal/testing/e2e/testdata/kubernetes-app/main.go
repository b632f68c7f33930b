// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes-app runs in the pods of a test: it serves net/http/pprof at the address of its argument, uses a little
// processor time, and allocates. It ends when its standard input does, so that it never outlives the test.
package main

import (
	"crypto/sha256"
	"io"
	"log"
	"net/http"
	_ "net/http/pprof"
	"os"
	"time"
)

var shelves [64][]byte

// fillShelves is the function that CPU and memory profiles of this program show.
//
//go:noinline
func fillShelves() {
	for i := range shelves {
		shelf := make([]byte, 64<<10)
		for range 2 {
			sum := sha256.Sum256(shelf)
			copy(shelf, sum[:])
		}
		shelves[i] = shelf
	}
}

func main() {
	go func() {
		for range time.Tick(200 * time.Millisecond) {
			fillShelves()
		}
	}()
	go func() { log.Fatal(http.ListenAndServe(os.Args[1], nil)) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
