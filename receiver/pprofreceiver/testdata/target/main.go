// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command target is a program to scrape: it serves net/http/pprof, works a little, and prints its
// address. It ends when its standard input does, so that it never outlives the test.
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
)

// Spin is what a CPU profile of this program shows.
//
//go:noinline
func Spin(block []byte) []byte {
	for range 1000 {
		sum := sha256.Sum256(block)
		block = sum[:]
	}
	return block
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		block := []byte("otelcol-profiles")
		for {
			block = Spin(block)
		}
	}()
	go func() { log.Fatal(http.Serve(listener, nil)) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
