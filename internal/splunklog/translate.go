// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// translator is the state of one Translate call. It is kept for the next one.
type translator struct {
	opts      Options
	assembler compact.Assembler
	dict      *profiledict.Dictionary // the assembler's
	result    Result
	origin    origin
	groups    groups
	stackText

	// bytesLeft, samplesLeft and memoryLeft are what the request may still become: bodies after decompression, samples,
	// and the messages of OTLP bodies in memory. workLeft is what may still be unpacked, rejected bodies included.
	bytesLeft, samplesLeft, memoryLeft, workLeft int

	// The record under way.
	record record
	number int
	// anyRead says that a record of the request was read.
	anyRead bool
	// bodyHash and attributes of the profile are worked out when the record's first sample is met.
	begun             bool
	bodyID            compact.ContentID
	profileAttributes profiledict.AttributeSetIndex
	// description is the record's description; 0 for none.
	description int32
	lastLink    knownLink
	// attributeOf is what a label of the record's pprof became, by its number there; 0 for none.
	attributeOf []int32
	// attributeOfGroup is what several labels of one key became, by their numbers as uvarints.
	attributeOfGroup map[string]int32
	groupIDs         []byte
	// groupBytesLeft is what such attributes of the body may still take.
	groupBytesLeft int

	encoded, payload []byte
	unpacker         unpacker
	// whole are the profiles of bodies that are OTLP.
	whole   []pprofile.Profiles
	scratch []int32
	keys    keySet
	// sizes are those of the request before: agents send requests that are much alike.
	sizes profiledict.Sizes
}

// What the messages of OTLP bodies may take in memory: constantMemory + memoryFactor × Options.MaxProfileBytes.
const (
	constantMemory = 64 << 20
	memoryFactor   = 8
)

// maxKeptBytes and maxKeptEntries bound what a translator keeps between requests: one above either is rare. maxHint
// bounds the tables that a request finds ready.
const (
	maxKeptBytes   = 4 << 20
	maxKeptEntries = 1 << 18
	maxHint        = 1 << 12
)

var translators = sync.Pool{New: func() any {
	t := &translator{attributeOfGroup: make(map[string]int32)}
	t.assembler.Reset()
	t.dict = t.assembler.Dictionary()
	return t
}}

// Translate reads the profiling records of a request. It only reads ld, and the result keeps nothing of it but
// strings. Records that have nothing to do with profiling are counted; Rest returns them.
func Translate(ld plog.Logs, opts Options) Result {
	t := translators.Get().(*translator)
	defer t.release()
	t.start(opts)
	for _, rl := range ld.ResourceLogs().All() {
		t.origin = origin{resourceLogs: rl}
		ofResource := hasSourceType(rl.Resource().Attributes())
		for _, sl := range rl.ScopeLogs().All() {
			t.origin.scopeLogs, t.origin.hasScope = sl, false
			inherited := ofResource || sl.Scope().Name() == ProfilingName
			for _, log := range sl.LogRecords().All() {
				if isProfiling(inherited, log) {
					t.translate(log)
				} else {
					if t.result.Others == 0 {
						t.result.FirstOther = t.number
					}
					t.result.Others++
				}
				t.number++
			}
		}
	}
	t.result.UnpackedBytes = t.opts.MaxProfileBytes - t.bytesLeft
	t.build()
	t.joinWhole()
	return t.result
}

func (t *translator) start(opts Options) {
	t.opts = opts.withDefaults()
	t.result = Result{}
	t.groups.reset()
	t.stackText.reset()
	t.dict.Reset(t.sizes)
	t.bytesLeft, t.samplesLeft = t.opts.MaxProfileBytes, t.opts.maxSamples
	t.memoryLeft = constantMemory + memoryFactor*t.opts.MaxProfileBytes
	t.workLeft = 2 * t.opts.MaxProfileBytes // a bomb or two do not keep the others from being read
	t.number, t.anyRead, t.lastLink = 0, false, knownLink{}
}

// translate reads one record, or rejects it.
func (t *translator) translate(log plog.LogRecord) {
	r := &t.record
	r.read(log, &t.result.BadTimes)
	t.result.Records[r.format][r.typ][r.source]++
	t.begun = false
	body, err := t.body()
	if err == nil {
		switch r.format {
		case FormatPprof:
			err = t.readPprof(body)
		case FormatText:
			err = t.readText(body)
		case FormatOTLP:
			err = t.readOTLP(body)
		}
	}
	switch {
	case err != nil:
		err.Record = t.number
		t.result.Rejected = append(t.result.Rejected, *err)
	case !t.anyRead:
		t.anyRead, t.result.FirstRead = true, t.number
	}
}

// body returns the record's body, which is borrowed, where all that stands beside it can be understood.
func (t *translator) body() (string, *Rejection) {
	r := &t.record
	if r.format == FormatOther {
		return "", reject(ReasonFormat, "`%s` is %q, which is none of %s, %s and %s", keyFormat, short(r.formatText), formatPprofValue, formatTextValue, formatOTLPValue)
	}
	if r.typ == TypeOther && r.format != FormatOTLP && !r.described {
		return "", reject(ReasonType, "`%s` is %q, which is neither cpu nor allocation, and there is no `%s`", keyType, short(r.typeText), keySampleType)
	}
	var body string
	switch value := r.log.Body(); value.Type() {
	case pcommon.ValueTypeStr:
		body = value.Str()
	case pcommon.ValueTypeBytes:
		body = string(value.Bytes().AsRaw())
	case pcommon.ValueTypeEmpty:
	default:
		return "", reject(ReasonBody, "the body is of type %s", value.Type())
	}
	if body == "" {
		return "", reject(ReasonEmpty, "the body is empty")
	}
	return body, nil
}

// release lets go of all that belongs to the request.
func (t *translator) release() {
	t.record, t.result, t.origin = record{}, Result{}, origin{}
	t.groups.reset()
	t.stackText.release()
	if cap(t.encoded) > maxKeptBytes {
		t.encoded, t.payload = nil, nil
	}
	if max(cap(t.attributeOf), cap(t.scratch), cap(t.keys.generations), cap(t.groupIDs)) > maxKeptEntries {
		t.attributeOf, t.scratch, t.keys, t.groupIDs = nil, nil, keySet{}, nil
	}
	if len(t.attributeOfGroup) > maxKeptEntries {
		t.attributeOfGroup = make(map[string]int32)
	}
	clear(t.attributeOfGroup)
	d := t.dict
	if max(d.Strings.Len(), d.Functions.Len(), d.Locations.Len(), d.Stacks.Len(), d.Attributes.Len(), d.AttributeSets.Len(), d.Links.Len()) > maxKeptEntries {
		return
	}
	t.sizes = profiledict.Sizes{
		Strings:   min(d.Strings.Len(), maxHint),
		Functions: min(d.Functions.Len(), maxHint),
		Locations: min(d.Locations.Len(), maxHint),
		Stacks:    min(d.Stacks.Len(), maxHint),
	}
	t.assembler.Reset() // its tables hold strings of the request
	translators.Put(t)
}
