// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command shop is a program to profile: it uses about a tenth of a core and allocates memory. It serves net/http/pprof
// at LISTEN.
package main

import (
	"log"
	"net/http"
	_ "net/http/pprof" // at /debug/pprof
	"os"
	"sort"
	"strings"
	"time"
)

func main() {
	go func() {
		for {
			sell(stock())
			time.Sleep(50 * time.Millisecond)
		}
	}()
	log.Fatal(http.ListenAndServe(os.Getenv("LISTEN"), nil)) // #nosec G114: a sample, on a network of its own
}

// stock returns the names of all articles.
func stock() []string {
	articles := make([]string, 0, 10_000)
	for i := range cap(articles) {
		articles = append(articles, strings.Repeat(string(rune('a'+i*7%26)), i%50))
	}
	return articles
}

func sell(articles []string) {
	sort.Strings(articles)
}
