// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command target is a program to scrape: it serves net/http/pprof, works a little, and prints its
// address, which may be given. It ends when its standard input does, so that it never outlives the test.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"sync"
	"time"
)

// Spin is shown by CPU profiles of this program.
//
//go:noinline
func Spin(block []byte) []byte {
	for range 10_000 {
		sum := sha256.Sum256(block)
		block = sum[:]
	}
	return block
}

// Keep is shown by its memory profiles: it allocates some 10 MB a second, and keeps a little.
//
//go:noinline
func Keep(kept [][]byte) {
	for i := 0; ; i++ {
		kept[i%len(kept)] = make([]byte, 64<<10)
		time.Sleep(5 * time.Millisecond)
	}
}

// Contend is shown by its mutex and block profiles.
//
//go:noinline
func Contend(mu *sync.Mutex) {
	for {
		mu.Lock()
		time.Sleep(time.Millisecond)
		mu.Unlock()
	}
}

func main() {
	address := "127.0.0.1:0"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	go func() {
		block := []byte("otelcol-profiles")
		for {
			block = Spin(block)
			time.Sleep(time.Millisecond) // it leaves a part of the processor to the tests
		}
	}()
	go Keep(make([][]byte, 64))
	var mu sync.Mutex
	go Contend(&mu)
	go Contend(&mu)
	go func() { log.Fatal(http.Serve(listener, nil)) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
