// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPlan(t *testing.T) {
	// Names are without the day, which is 20261121; -24 and so on are their numbers.
	hours := func(first, n int, size int64) (list []Block) {
		for i := range n {
			list = append(list, Block{Name: fmt.Sprintf("T%02d-%d", (first+i)%24, 10+first+i), Bytes: size})
		}
		return list
	}
	block := func(name string, size int64) Block { return Block{Name: name, Bytes: size} }
	coarse := func(b Block) Block { b.Step = time.Minute; return b }
	coarser := Rules{CoarserAfter: 72 * time.Hour, Step: time.Minute}
	const day = 24 * time.Hour
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		list  []Block
		age   time.Duration
		rules Rules
		// want has for each job its time, how many blocks it has, of how many bytes, and its step.
		want string
	}{
		{name: "nothing", want: ""},
		{name: "hours of a quarter that goes on", list: hours(0, 5, 100), age: 5 * time.Hour, want: ""},
		{name: "hours of a quarter that has ended", list: hours(0, 6, 100), age: 6 * time.Hour, want: "Q1 6 600 0s"},
		{name: "those of the next one stay", list: hours(0, 9, 100), age: 9 * time.Hour, want: "Q1 6 600 0s"},
		{name: "two quarters", list: hours(0, 12, 100), age: 12 * time.Hour, want: "Q1 6 600 0s, Q2 6 600 0s"},
		{name: "one block of a quarter", list: hours(0, 1, 100), age: 12 * time.Hour, want: ""},
		{name: "a quarter with few late bytes", list: []Block{block("Q1-a", 1000), block("T03-b", 249)}, age: 12 * time.Hour,
			want: ""},
		{name: "a quarter with a quarter of late bytes", list: []Block{block("Q1-a", 1000), block("T03-b", 250)},
			age: 12 * time.Hour, want: "Q1 2 1250 0s"},
		{name: "a large hour that came late", list: []Block{block("Q1-a", 1000), block("T03-b", 9000)}, age: 12 * time.Hour,
			want: "Q1 2 10000 0s"},
		{name: "a day just ended", list: hours(18, 6, 100), age: day, want: ""},
		{name: "a day that may still get profiles", list: hours(18, 6, 100), age: day + time.Hour, want: ""},
		{name: "a day that is over", list: append(hours(18, 6, 100), block("Q1-a", 600)), age: day + time.Hour + 1,
			want: " 7 1200 0s"},
		{name: "a day that is one block", list: []Block{block("-a", 1000)}, age: 2 * day, want: ""},
		{name: "a day with few late bytes", list: append(hours(0, 20, 10), block("-a", 1000)), age: 2 * day, want: ""},
		{name: "a day with a quarter of late bytes", list: append(hours(0, 25, 10), block("-a", 1000)), age: 2 * day,
			want: " 26 1250 0s"},
		{name: "many late blocks become one, the day stays", list: append(hours(0, 47, 1), block("-a", 1000)), age: 2 * day,
			want: " 47 47 0s"},
		{name: "those that had been joined stay, too", list: append(hours(0, 46, 1), block("-a", 1000), block("-b", 200)),
			age: 2 * day, want: " 46 46 0s"},
		{name: "unless that is enough for them", list: append(hours(0, 46, 1), block("-a", 1000), block("-b", 47)),
			age: 2 * day, want: " 47 93 0s"},
		{name: "many blocks of a day that goes on", list: hours(0, 48, 10), age: 3 * time.Hour, want: " 48 480 0s"},
		{name: "a day that becomes coarser", list: []Block{block("-a", 1000)}, age: 4*day + 1, rules: coarser,
			want: " 1 1000 1m0s"},
		{name: "not yet", list: []Block{block("-a", 1000)}, age: 4 * day, rules: coarser, want: ""},
		{name: "not by a clock that may be wrong", list: []Block{block("-a", 1000)}, age: 90 * day,
			rules: Rules{CoarserAfter: 72 * time.Hour, Step: time.Minute, Trusted: start.Add(day)}, want: ""},
		{name: "with what was late", list: []Block{block("-a", 1000), block("T03-b", 1)}, age: 5 * day, rules: coarser,
			want: " 2 1001 1m0s"},
		{name: "a day that is coarser", list: []Block{coarse(block("-a", 1000)), block("T03-b", 1)}, age: 5 * day,
			rules: coarser, want: ""},
		{name: "what is late becomes coarser, too", list: append(hours(0, 47, 1), coarse(block("-a", 1000))), age: 5 * day,
			rules: coarser, want: " 47 47 1m0s"},
		{name: "a longer step", list: []Block{coarse(block("-a", 1000))}, age: 5 * day,
			rules: Rules{CoarserAfter: 72 * time.Hour, Step: time.Hour}, want: " 1 1000 1h0m0s"},
		{name: "a day too large", list: append(hours(18, 6, 100), block("Q1-a", 600)), age: 2 * day,
			rules: Rules{MaxBytes: 1199}, want: ""},
		{name: "many blocks of one", list: append(hours(0, 48, 10), block("Q1-a", 900)), age: 2 * day,
			rules: Rules{MaxBytes: 1000}, want: " 48 480 0s"},
		{name: "a quarter too large", list: hours(0, 6, 100), age: 6 * time.Hour, rules: Rules{MaxBytes: 599}, want: ""},
		{
			name: "each block of a day too large becomes coarser",
			list: []Block{block("Q1-a", 600), coarse(block("Q2-b", 500)), block("Q3-c", 2000), block("Q4-d", 300)},
			age:  5 * day, rules: Rules{CoarserAfter: 72 * time.Hour, Step: time.Minute, MaxBytes: 1000},
			want: " 1 600 1m0s,  1 300 1m0s",
		},
		{name: "a name of somebody else", list: []Block{block("x", 1), block("y", 1)}, age: 2 * day, want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := slices.Clone(c.list)
			for i := range list {
				if list[i].Name != "x" && list[i].Name != "y" {
					list[i].Name = "20261121" + list[i].Name
				}
			}
			var got []string
			seen := map[string]bool{}
			c.rules.Trusted = cmp.Or(c.rules.Trusted, start.Add(c.age))
			for _, job := range Plan(list, start.Add(c.age), c.rules) {
				got = append(got, fmt.Sprintf("%s %d %d %s", strings.TrimPrefix(job.Time, "20261121"), len(job.Blocks), job.Bytes(),
					job.Step))
				for _, b := range job.Blocks {
					assert.False(t, seen[b.Name], "%s is in two jobs", b.Name)
					seen[b.Name] = true
				}
			}
			assert.Equal(t, c.want, strings.Join(got, ", "))
		})
	}
}

// What late profiles cause to be written again is at most four times their bytes each time that they are joined with a
// larger block.
func TestPlanIsWorthItsBytes(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	list := []Block{{Name: "20261121-a", Bytes: 7_000_000}}
	written, late := int64(0), int64(0)
	for i := range 2000 {
		list = append(list, Block{Name: fmt.Sprintf("20261121T%02d-%x", i%24, i), Bytes: 12_000})
		late += 12_000
		for _, job := range Plan(list, now, Rules{}) {
			assert.LessOrEqual(t, job.Bytes(), 5*(job.Bytes()-job.Blocks[0].Bytes)+smallerPart)
			written += job.Bytes()
			list = slices.DeleteFunc(list, func(b Block) bool { return slices.Contains(job.Blocks, b) })
			list = append(list, Block{Name: fmt.Sprintf("20261121-%x", i), Bytes: job.Bytes()})
		}
		assert.LessOrEqual(t, len(list), maxBlocks)
	}
	assert.Less(t, written, 10*late)
}
