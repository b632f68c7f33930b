// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import "github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"

// deltaState is what an endpoint with `delta` remembers of its last payload.
type deltaState struct {
	baseline *pprofconv.Baseline
	// bytes is what the job's sum holds of it.
	bytes int64
}

// use gives the baseline, made when the first payload is there: a target that never answers has none.
func (d *deltaState) use() *pprofconv.Baseline {
	if d.baseline == nil {
		d.baseline = pprofconv.NewBaseline(pprofconv.BaselineOptions{})
	}
	return d.baseline
}

// settle ends what a payload began. Where the pipeline did not take its difference, the next one
// covers that too, so that nothing is lost.
func (d *deltaState) settle(job *scrapeJob, taken bool) {
	if d.baseline == nil {
		return
	}
	if !taken {
		d.baseline.Discard()
		return
	}
	d.baseline.Commit()
	d.account(job, int64(d.baseline.Bytes()))
}

// drop forgets the last payload.
func (d *deltaState) drop(job *scrapeJob) {
	d.baseline = nil
	d.account(job, 0)
}

func (d *deltaState) account(job *scrapeJob, bytes int64) {
	job.baselineBytes.Add(bytes - d.bytes)
	d.bytes = bytes
}
