// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Block is what Plan knows of a block: its name, which begins with its time, and its size.
type Block struct {
	Name  string
	Bytes int64
	// Step is the interval of a coarser block, or 0.
	Step time.Duration
}

// Rules are what Plan follows.
type Rules struct {
	// CoarserAfter is the age at which a day gets one profile for each series and Step. 0 is never.
	CoarserAfter, Step time.Duration
	// Trusted is the time by which days become coarser: what they lose does not come back when a clock that was ahead is
	// right again.
	Trusted time.Time
	// MaxBytes bounds the blocks of a job: the disk has them beside the new one. 0 is no bound.
	MaxBytes int64
}

// Job is a number of blocks that become one, whose name begins with Time. Step is that of the new block, or 0.
type Job struct {
	Time   string
	Blocks []Block
	Step   time.Duration
}

// Bytes returns the size of the blocks.
func (j *Job) Bytes() int64 { return bytesOf(j.Blocks) }

const (
	// maxBlocks is how many blocks a day may have before small ones are joined, whatever they are.
	maxBlocks = 48
	// settledAfter is how long after its end a day gets no more profiles as a rule.
	settledAfter = time.Hour
	// smallerPart bounds what is written again for late profiles: blocks are joined with a larger one that had been joined
	// before only if they have this part of its size.
	smallerPart = 4
)

// Plan returns what is to be done at a time. No block is in two jobs. What arrives in time is written three times,
// besides the log: in its hour, its quarter and its day. A byte that is late lets at most four others be written again
// each time that its block is joined with a larger one.
func Plan(list []Block, now time.Time, rules Rules) (jobs []Job) {
	days := groups(list, func(b Block) string { day, _ := timeOf(b.Name); return day })
	for _, day := range slices.Sorted(maps.Keys(days)) {
		if start, err := time.Parse(dayLayout, day); err == nil {
			of := rules
			if rules.CoarserAfter == 0 || rules.Trusted.Sub(start) <= 24*time.Hour+rules.CoarserAfter {
				of.Step = 0
			}
			jobs = append(jobs, planDay(day, days[day], now.Sub(start), of)...)
		}
	}
	return jobs
}

// planDay returns what is to be done with the blocks of a day that began age ago.
func planDay(day string, list []Block, age time.Duration, rules Rules) (jobs []Job) {
	slices.SortStableFunc(list, func(a, b Block) int { return cmp.Compare(b.Bytes, a.Bytes) })
	step := rules.Step
	isOver := age > 24*time.Hour+settledAfter
	isWhole := func(b Block) bool { _, quarter := timeOf(b.Name); return quarter == "" }
	becomesCoarser := step > list[0].Step
	if (becomesCoarser || isOver && isWorth(list, isWhole)) && rules.allow(list) {
		return []Job{{Time: day, Blocks: list, Step: step}}
	}
	if becomesCoarser { // each by itself, since there is no room for all of them
		for i, b := range list {
			if b.Step < step && rules.allow(list[i:i+1]) {
				jobs = append(jobs, Job{Time: day, Blocks: list[i : i+1], Step: step})
			}
		}
		return jobs
	}
	if len(list) >= maxBlocks {
		for i := range list[:len(list)-1] {
			if small := list[i:]; isWorth(small, func(Block) bool { return true }) && rules.allow(small) {
				return []Job{{Time: day, Blocks: small, Step: step}}
			}
		}
	}
	if age >= 24*time.Hour { // the whole day becomes one block soon
		return nil
	}
	quarters := groups(list, func(b Block) string { _, quarter := timeOf(b.Name); return quarter })
	for _, name := range slices.Sorted(maps.Keys(quarters)) {
		of := quarters[name]
		_, n, ok := quarterOf(name)
		isJoined := func(b Block) bool { return !IsHour(b.Name) }
		if ok && age >= time.Duration(n)*quarterHours*time.Hour && isWorth(of, isJoined) && rules.allow(of) {
			jobs = append(jobs, Job{Time: name, Blocks: of})
		}
	}
	return jobs
}

func (r *Rules) allow(list []Block) bool { return r.MaxBytes == 0 || bytesOf(list) <= r.MaxBytes }

// isWorth reports whether blocks, the largest of which is the first, become one: they do so once, and again when those
// that came later are large enough. isJoined reports whether a block is the result.
func isWorth(list []Block, isJoined func(Block) bool) bool {
	return len(list) > 1 && (!isJoined(list[0]) || bytesOf(list[1:]) >= list[0].Bytes/smallerPart)
}

func bytesOf(list []Block) (n int64) {
	for _, b := range list {
		n += b.Bytes
	}
	return n
}

func groups(list []Block, key func(Block) string) map[string][]Block {
	of := map[string][]Block{}
	for _, b := range list {
		of[key(b)] = append(of[key(b)], b)
	}
	return of
}
