// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate writes an execution trace of a program that waits in every way there is: build it with the toolchain
// whose traces are wanted.
//
//	GOTOOLCHAIN=go1.22.12 go run . ../go1.22.trace
package main

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"time"
)

const traceParent = "00-0102030405060708090a0b0c0d0e0f10-1112131415161718-01"

func main() {
	file, err := os.Create(os.Args[1])
	must(err)
	forever := make(chan int)
	go leak(forever)
	time.Sleep(10 * time.Millisecond)
	must(pprof.StartCPUProfile(io.Discard))
	record(file)
	pprof.StopCPUProfile()
	must(file.Close())
}

func work() {
	ctx, task := trace.NewTask(context.Background(), "request")
	trace.Log(ctx, "traceparent", traceParent)
	var all sync.WaitGroup
	for _, f := range []func(context.Context){receive, choose, lock, network, sleep, blockInSyscall, compute, allocate} {
		f := f
		all.Add(1)
		go func() {
			defer all.Done()
			f(ctx)
		}()
	}
	all.Wait()
	task.End()
}

func leak(c chan int) { <-c }

func receive(ctx context.Context) {
	defer trace.StartRegion(ctx, "receive").End()
	c := make(chan int)
	go func() {
		for i := 0; i < 5; i++ {
			time.Sleep(3 * time.Millisecond)
			c <- i
		}
		close(c)
	}()
	for range c {
	}
}

func choose(context.Context) {
	a, b := make(chan int), make(chan int)
	go func() { time.Sleep(8 * time.Millisecond); close(b) }()
	select {
	case <-a:
	case <-b:
	}
}

func lock(context.Context) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			mu.Lock()
			time.Sleep(2 * time.Millisecond)
			mu.Unlock()
		}()
	}
	all.Wait()
}

func network(context.Context) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() {
		c, err := listener.Accept()
		must(err)
		time.Sleep(6 * time.Millisecond)
		_, err = c.Write([]byte("hello"))
		must(err)
		must(c.Close())
	}()
	c, err := net.Dial("tcp", listener.Addr().String())
	must(err)
	_, err = io.ReadAll(c)
	must(err)
	must(c.Close())
}

func sleep(context.Context) { time.Sleep(20 * time.Millisecond) }

// blockInSyscall reads from a file descriptor that the poller does not know.
func blockInSyscall(context.Context) { readSlowly() }

var sink int

func compute(ctx context.Context) {
	trace.WithRegion(ctx, "compute", func() {
		for end := time.Now().Add(25 * time.Millisecond); time.Now().Before(end); {
			for i := 0; i < 1000; i++ {
				sink += i * i
			}
		}
	})
}

var keep [][]byte

func allocate(context.Context) {
	for i := 0; i < 60; i++ {
		keep = append(keep, make([]byte, 64<<10))
		if i%30 == 29 {
			keep = nil
			runtime.GC()
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
