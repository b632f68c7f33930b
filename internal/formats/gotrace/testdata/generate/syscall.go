// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"time"
)

func readSlowly() {
	var pipe [2]int
	must(syscall.Pipe(pipe[:]))
	go func() {
		time.Sleep(9 * time.Millisecond)
		_, err := syscall.Write(pipe[1], []byte{1})
		must(err)
	}()
	_, err := syscall.Read(pipe[0], make([]byte, 1))
	must(err)
}
