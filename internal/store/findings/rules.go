// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"math"
	"regexp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

const (
	// minSeconds and minSamples are the processor time and the samples of a selection below which shares are chance.
	minSeconds = 5
	minSamples = 500
	// A function has grown if its own share of the total is larger by minPoints and by minGrowth, and by more than
	// minDeviations standard errors of a share of so many samples: among thousands of functions, chance does not reach
	// that.
	minPoints     = 0.03
	minGrowth     = 1.2
	minDeviations = 4.5
	// Goroutines only become more if the mean of each sixth of at least minLeakTime is larger than that of the one before,
	// and the last by minLeakGrowth and minLeak goroutines than the first.
	minLeakMinutes = 15
	minLeakGrowth  = 1.5
	minLeak        = 50
	// minWaiting is how many goroutines or threads wait for locks on average.
	minWaiting = 1
)

// A leafRule is about functions whose share of the processor time is worth a look from `least` on.
type leafRule struct {
	name, what, advice string
	least              float64
	// self counts the functions themselves, not what they call.
	self     bool
	function *regexp.Regexp
}

var leafRules = []leafRule{
	{
		name: "garbage_collection", what: "garbage collection", least: 0.25,
		advice: "Fewer or smaller allocations help: the profile memory has who allocates.",
		function: regexp.MustCompile(
			`^(runtime\.(gcBgMarkWorker|gcAssistAlloc|bgsweep|bgscavenge|gcStart)\b|\(garbage collector\)$|\(garbage collection\)$|` +
				`(G1|ZGC|Z|Shenandoah|PS)(Concurrent|Parallel|Young|Mark|Evac|Driver|Worker|Full)\w*(::|$)|WKS::gc_heap::|SVR::gc_heap::|gc_(marks|sweep)_)`),
	},
	{
		name: "locks", what: "waiting for locks by spinning and parking", least: 0.10,
		advice: "The profiles mutex and block, or threads, have who waits for whom.",
		function: regexp.MustCompile(
			`^(runtime\.(lock2|unlock2|lockWithRank|procyield|semacquire1|semrelease1)\b|sync\.\(\*(RW)?Mutex\)\.(lockSlow|unlockSlow|rUnlockSlow)|` +
				`internal/sync\.\(\*Mutex\)\.(lockSlow|unlockSlow)|_*(pthread_mutex_lock|lll_lock_wait)|native_queued_spin_lock_slowpath|ObjectMonitor::|` +
				`java\.util\.concurrent\.locks\.AbstractQueuedSynchronizer\.acquire)`),
	},
	{
		name: "regexp_compile", what: "compiling regular expressions", least: 0.03,
		advice: "Compile each once, outside of the request.",
		function: regexp.MustCompile(
			`^(regexp\.(MustCompile|Compile|compile)$|java\.util\.regex\.Pattern\.(compile|<init>)|re\._compile|(sre|re)\.?_(compile|parse)r?\.)`),
	},
	{
		name: "json", what: "JSON", least: 0.20,
		advice: "A generated or streaming encoder, fewer fields, or another format help.",
		function: regexp.MustCompile(
			`^(encoding/json\.|encoding/json/v2\.|github\.com/json-iterator/go\.|com\.fasterxml\.jackson\.|com\.google\.gson\.|JSON\.(parse|stringify)|json\.(de|en)coder\.|System\.Text\.Json\.|serde_json::)`),
	},
	{
		name: "copy", what: "copying memory", least: 0.10, self: true,
		advice:   "Look at the callers: buffers that grow, or values that are passed whole.",
		function: regexp.MustCompile(`^(runtime\.memmove|_*(memcpy|memmove)\w*|copy_user_\w+|rep_movs\w*)$`),
	},
}

// shareOf returns the part of a tree's total that passes through functions of a rule, or ends in them. A recursion
// counts once.
func (r *leafRule) shareOf(t *answers.Tree) float64 {
	if t.Total[0] <= 0 {
		return 0
	}
	matches := make([]bool, len(t.Frames))
	for i := range t.Frames {
		matches[i] = r.function.MatchString(t.Frames[i].Name)
	}
	inside := make([]bool, len(t.Frame))
	sum := 0.0
	for i := 1; i < len(t.Frame); i++ { // parents come before their children
		isMatch := matches[t.Frame[i]]
		switch {
		case r.self && isMatch:
			sum += float64(t.Self[i])
		case !r.self && !inside[t.Parent[i]] && isMatch:
			sum += float64(t.Total[i])
		}
		inside[i] = isMatch || inside[t.Parent[i]]
	}
	return sum / float64(t.Total[0])
}

// deviations returns by how many standard errors two shares differ, of so many samples.
func deviations(now, before, samplesNow, samplesBefore float64) float64 {
	if samplesNow <= 0 || samplesBefore <= 0 {
		return 0
	}
	p := (now*samplesNow + before*samplesBefore) / (samplesNow + samplesBefore)
	deviation := math.Sqrt(p * (1 - p) * (1/samplesNow + 1/samplesBefore))
	if deviation == 0 {
		return 0
	}
	return (now - before) / deviation
}

// growth is a function whose own share has become larger.
type growth struct {
	name        string
	now, before float64
}

// grown returns the function of a comparison that has grown most. samples are those of both sides, ratio is how many
// profiles the shown side has for each of the base: what only takes a larger share because something else has become
// faster has not grown.
func grown(g *answers.Graph, samplesNow, samplesBefore, ratio float64) (most growth, ok bool) {
	total, baseTotal := float64(g.Total[0]), float64(g.BaseTotal[0])
	if total <= 0 || baseTotal <= 0 {
		return growth{}, false
	}
	now, before := map[string]float64{}, map[string]float64{}
	for i := 1; i < len(g.Frame); i++ {
		name := g.Frames[g.Frame[i]].Name
		now[name] += float64(g.Self[i]) / total
		before[name] += float64(g.BaseSelf[i]) / baseTotal
	}
	for name, share := range now {
		more := share - before[name]
		isMore := name != "" && more >= minPoints && share >= minGrowth*before[name] &&
			share*total >= minGrowth*before[name]*baseTotal*ratio
		if isMore && deviations(share, before[name], samplesNow, samplesBefore) >= minDeviations &&
			(more > most.now-most.before || more == most.now-most.before && name < most.name) {
			most, ok = growth{name, share, before[name]}, true
		}
	}
	return most, ok
}

// onlyGrows returns the means of the first and the last sixth of a state, and whether each sixth has more than the one
// before.
func onlyGrows(values []float64) (first, last float64, ok bool) {
	const parts = 6
	if len(values) < 2*parts {
		return 0, 0, false
	}
	before := math.Inf(-1)
	for part := range parts {
		sum, n := answers.Sum(values[part*len(values)/parts : (part+1)*len(values)/parts])
		if n == 0 || sum/float64(n) <= before {
			return 0, 0, false
		}
		before = sum / float64(n)
		if part == 0 {
			first = before
		}
	}
	return first, before, before >= minLeakGrowth*first && before-first >= minLeak
}
