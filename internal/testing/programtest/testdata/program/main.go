// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command program allocates, waits, writes its own profiles to the folder of its
// argument, and is idle until a byte arrives. Then it does so again, or with three
// arguments becomes another program.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"
)

type node struct {
	next *node
	data [100]byte
}

var (
	keep [][]byte
	list *node
)

//go:noinline
func allocate(n int) (list *node) {
	for i := 0; i < n; i++ {
		list = &node{next: list}
	}
	return list
}

func inlined(n int) []byte { return make([]byte, n) }

func outer(n int) []byte { return append(inlined(n), 1) }

//go:noinline
func retain() { keep = append(keep, outer(1<<20), make([]byte, 2<<20)) }

type number interface{ ~int | ~int64 }

//go:noinline
func generic[T number](n T) { keep = append(keep, make([]byte, int(n))) }

func grow(m map[string][]int, n int) {
	for i := 0; i < n; i++ {
		k := fmt.Sprint(i % 1000)
		m[k] = append(m[k], i)
	}
}

//go:noinline
func recurse(n int) {
	if n > 0 {
		recurse(n - 1)
		return
	}
	keep = append(keep, []byte(strings.Repeat("x", 1<<20)))
}

// locked is inlined, as are the methods of Mutex.
func locked(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
	time.Sleep(100 * time.Microsecond)
}

func contend() {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := 0; j < 20; j++ {
				locked(&mu)
			}
		}()
	}
	wg.Wait()
}

func main() {
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(2)
	m := map[string][]int{}
	for i := 0; i < 8; i++ {
		retain()
		generic(int64(1 << 20))
		generic(1 << 20)
		list = allocate(20000)
		grow(m, 30000)
	}
	recurse(100)
	contend()
	for {
		report()
		if n, err := os.Stdin.Read(make([]byte, 1)); n == 0 || err != nil {
			return
		}
		if len(os.Args) > 3 {
			panic(syscall.Exec("/bin/sh", []string{"sh", "-c", "echo; exec cat"}, nil))
		}
		retain()
		contend()
	}
}

// report writes the profiles, and a line when they are there. Without collections, allocations are not published.
func report() {
	if len(os.Args) > 2 {
		runtime.GC()
		runtime.GC()
	}
	for _, name := range []string{"heap", "block", "mutex"} {
		file, err := os.Create(filepath.Join(os.Args[1], name))
		if err != nil {
			panic(err)
		}
		if err := pprof.Lookup(name).WriteTo(file, 0); err != nil {
			panic(err)
		}
		if err := file.Close(); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
}
