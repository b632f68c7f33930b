// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// BenchmarkGroup groups the targets of a cluster's pods with the shipped rules: for the first update of discovery, and for later ones.
func BenchmarkGroup(b *testing.B) {
	for _, pods := range []int{100, 2000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			job := annotatedJob(b)
			var groups []*targetgroup.Group
			for i := range pods {
				ip := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
				groups = append(groups, &targetgroup.Group{
					Source: ip, Labels: pod(ip, "pprof.io/scrape", "true", "pprof.io/port", "6060"),
					Targets: []model.LabelSet{container("app", ip+":6060", "6060", "pprof"), container("proxy", ip+":15000", "15000", "admin")},
				})
			}
			run := func(b *testing.B, memoOf func() *memo) {
				b.ReportAllocs()
				for b.Loop() {
					if targets, _ := job.group(groups, memoOf()); len(targets) != pods {
						b.Fatal(len(targets))
					}
				}
			}
			b.Run("first", func(b *testing.B) { run(b, newMemo) })
			kept := newMemo()
			b.Run("again", func(b *testing.B) { run(b, func() *memo { return kept }) })
		})
	}
}
