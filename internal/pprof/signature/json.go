// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"regexp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// The descriptions of documents that profiles can be read from.
var (
	otlpProfiles = Signature{Format: "otlp_json", Name: "OTLP profiles in JSON" + toOTLP}
	otlpLogs     = Signature{Format: "otlp_logs_json", Name: "OTLP log records in JSON " +
		"(those of Splunk's agents go to /v1/logs of the receiver splunk_profiling)"}
	v8          = Signature{Format: "cpuprofile", Name: "a profile of V8"}
	traceEvents = Signature{Format: "trace_events", Name: "Chrome's trace events"}
	torch       = Signature{Format: "trace_events", Name: "a trace of PyTorch"}
	speedscope  = Signature{Format: "speedscope", Name: "a file for speedscope"}
	firefox     = Signature{Format: "firefox", Name: "a profile of the Firefox Profiler"}
)

// document is a JSON document that has an outermost key. pattern matches what follows the key in the head, if it is not
// nil.
type document struct {
	Signature
	pattern *regexp.Regexp
}

// documents are the documents that are known, by each outermost key that distinguishes them from others. A document can
// begin with a value that is larger than the head, so that its other keys remain unseen.
var documents = map[string]document{
	"resourceProfiles": {Signature: otlpProfiles}, "resource_profiles": {Signature: otlpProfiles},
	"dictionary":   {Signature: otlpProfiles},
	"resourceLogs": {Signature: otlpLogs}, "resource_logs": {Signature: otlpLogs},

	"nodes": {Signature: v8}, "head": {Signature: v8},
	"profile": {v8, regexp.MustCompile(`^\s*:\s*\{\s*"(nodes|head)"\s*:`)},

	"ph": {Signature: traceEvents}, "traceEvents": {Signature: traceEvents},
	"displayTimeUnit": {Signature: traceEvents}, "otherData": {Signature: traceEvents},
	"systemTraceEvents": {Signature: traceEvents},
	"metadata": {traceEvents,
		regexp.MustCompile(`"(source"\s*:\s*"DevTools"|dataOrigin"|clock-domain"|trace-capture-datetime")`)},

	"schemaVersion": {Signature: torch}, "deviceProperties": {Signature: torch}, "distributedInfo": {Signature: torch},
	"baseTimeNanoseconds": {Signature: torch},

	"$schema":            {speedscope, regexp.MustCompile(`^\s*:\s*"[^"]*speedscope`)},
	"activeProfileIndex": {Signature: speedscope},
	"shared":             {speedscope, regexp.MustCompile(`^\s*:\s*\{\s*"frames"\s*:`)},
	"profiles":           {speedscope, regexp.MustCompile(`"(startValue|endValue)"|"type"\s*:\s*"(evented|sampled)"`)},

	"meta": {firefox,
		regexp.MustCompile(`"(interval|processType|preprocessedProfileVersion|stackwalk|markerSchema)"\s*:`)},
	"libs":                       {firefox, regexp.MustCompile(`"(debugName|breakpadId|codeId)"`)},
	"threads":                    {firefox, regexp.MustCompile(`"(frameTable|stackTable|registerTime)"`)},
	"duration":                   {firefox, regexp.MustCompile(`^\s*:\s*[\d.]+\s*,\s*"markers"\s*:`)},
	"profilerOverhead":           {Signature: firefox},
	"preprocessedProfileVersion": {Signature: firefox},

	"snapshot": {Signature: Signature{Name: "a heap snapshot of V8, which has objects and no stacks " +
		"(take a sampling heap profile: node --heap-prof, or Allocation sampling in DevTools)"}},
	"schema": {Signature{Name: "an execution trace of PyTorch, which has no times (send what its profiler exports)"},
		regexp.MustCompile(`"start_ts"\s*:`)},
	"gc_samples": {Signature: stackprof},
	"recording":  {Signature{Name: "a recording of Safari" + withSpeedscope}, regexp.MustCompile(`"instrumentTypes"`)},
	"dhatFileVersion": {Signature: Signature{
		Name: "a heap profile of DHAT (open it in profiler.firefox.com, and save it from there)"}},
	"linux-perf-json-version": {Signature: Signature{Name: "the JSON of perf data convert (send what perf script prints)"}},
	"flamebearer":             {Signature: Signature{Name: "Pyroscope's JSON for flame graphs (export pprof or collapsed stacks)"}},
	"type": {Signature{Name: "the JSON of bpftrace (print maps as text, and convert them with: " +
		"stackcollapse-bpftrace.pl FILE > out.folded)"}, regexp.MustCompile(`^\s*:\s*"(attached_probes|map|lost_events)"`)},
	"main()": {Signature{Name: "a profile of XHProf, which has pairs of functions and no stacks (sample with Excimer)"},
		regexp.MustCompile(`^\s*:\s*\{\s*"ct"`)},
	"elapsed_time_sec": {
		Signature: Signature{Name: "a profile of Scalene, which has lines and no stacks (sample with py-spy record -f raw)"}},
	"root_frame": {
		Signature: Signature{Name: "a session of pyinstrument (convert it with: pyinstrument -r speedscope --load FILE)"}},
}

// ofJSON returns the signature of a document that begins with head, or of the first one in a list: that of the first
// outermost key which is known. An error, such as at the end of the head, ends the search.
func ofJSON(head []byte) (found Signature, ok bool) {
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return found, false
	}
	reader := wire.NewJSON(head)
	isKnown := errors.New("the document is known")
	object := func() error {
		return reader.Object(func(key string) error {
			d, isDocument := documents[key]
			if !isDocument || d.pattern != nil && !d.pattern.Match(head[reader.InputOffset():]) {
				return reader.Skip()
			}
			found, ok = d.Signature, true
			return isKnown
		})
	}
	if head[0] == '[' {
		_ = reader.Array(object)
		return found, ok
	}
	for object() == nil { // a sequence of documents
	}
	return found, ok
}
