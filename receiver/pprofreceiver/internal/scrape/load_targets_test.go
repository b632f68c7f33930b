// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// loadTargetsVariable is the environment variable that makes this test's binary serve the targets.
const loadTargetsVariable = "SCRAPE_LOAD_SERVES"

// startLoadTargets starts n targets in another process, each at a loopback address of its own.
func startLoadTargets(t *testing.T, n int) []string {
	t.Helper()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), fmt.Sprintf("%s=%d", loadTargetsVariable, n))
	line, _ := collectortest.StartProgram(t, program)
	return strings.Split(line, ",")
}

// serveLoadTargets serves the targets until its standard input ends.
func serveLoadTargets() {
	n, err := strconv.Atoi(os.Getenv(loadTargetsVariable))
	if err != nil {
		log.Fatal(err)
	}
	handler := loadHandler()
	var addresses []string
	for i := range n {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.77.%d.%d:0", i/200, 1+i%200))
		if err != nil {
			log.Fatal(err)
		}
		addresses = append(addresses, listener.Addr().String())
		go func() { log.Fatal(http.Serve(listener, handler)) }()
	}
	fmt.Println(strings.Join(addresses, ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// loadHandler serves captured profiles. Totals grow with time: a tenth of the stacks in each interval.
func loadHandler() http.Handler {
	began := time.Now()
	totals := func(name string) http.HandlerFunc {
		variants := growing(name, 64)
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(variants[int(time.Since(began)/loadInterval)%len(variants)])
		}
	}
	same := func(name string) http.HandlerFunc {
		data := loadFile(name)
		return func(w http.ResponseWriter, r *http.Request) {
			if seconds, err := strconv.Atoi(r.URL.Query().Get("seconds")); err == nil {
				select {
				case <-time.After(time.Duration(seconds) * time.Second):
				case <-r.Context().Done():
				}
			}
			_, _ = w.Write(data)
		}
	}
	memory := os.Getenv("SCRAPE_LOAD_MEMORY")
	if memory == "" {
		memory = "go-allocs.pb.gz"
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", same("go-cpu-labels.pb.gz"))
	mux.HandleFunc("/debug/pprof/goroutine", same("go-goroutine.pb.gz"))
	mux.HandleFunc("/debug/pprof/allocs", totals(memory))
	mux.HandleFunc("/debug/pprof/block", totals("go-block.pb.gz"))
	mux.HandleFunc("/debug/pprof/mutex", totals("go-mutex.pb.gz"))
	return mux
}

func loadFile(name string) []byte {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "pprof", name))
	if err != nil {
		log.Fatal(err)
	}
	return data
}

// growing returns n payloads, each a little later than the one before.
func growing(name string, n int) [][]byte {
	p, err := profile.ParseData(loadFile(name))
	if err != nil {
		log.Fatal(err)
	}
	var variants [][]byte
	for v := range n {
		p.TimeNanos += int64(loadInterval)
		for i, sample := range p.Sample {
			for k := range sample.Value {
				if i%10 == v%10 {
					sample.Value[k] += sample.Value[k]/10 + 1
				}
			}
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			log.Fatal(err)
		}
		variants = append(variants, b.Bytes())
	}
	return variants
}
