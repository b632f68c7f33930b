// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"iter"
	"sync"
	"unique"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// Options configures how records are read, and bounds what one request may cost.
type Options struct {
	// Limits are those of pprof/decode, but for all bodies of a request together: MaxProfileBytes and MaxSamples count
	// texts and OTLP too. Stacks deeper than MaxStackDepth are left out; 0 means 1024, the limit of the agents
	// themselves.
	Limits scan.Limits
	// Meter bounds the work; nil means no bound.
	Meter *size.Meter
}

// translator is the state of one Translate call, and the memory that calls pass on to the next one.
type translator struct {
	request
	tables
}

// request is what belongs to one request. It is set anew for each, so that nothing of one sender reaches the next.
type request struct {
	opts   Options
	result Result
	origin origin

	// bytesLeft, samplesLeft and memoryLeft are what is left of the limits of the request: for bodies after
	// decompression, for samples, and for the messages of OTLP bodies in memory. workLeft is how many more bytes may be
	// unpacked, rejected bodies included.
	bytesLeft, samplesLeft, memoryLeft, workLeft int
	// sharedLeft is how many more bytes the attributes of resources and scopes of OTLP bodies may have.
	sharedLeft int
	// groupsLeft is what is left for groups, in attributes. The samples of one record can be of many groups, each of which
	// has all attributes of the record.
	groupsLeft int
	// groupMembers is the number of attributes of all groups.
	groupMembers int

	// The current record.
	at     position
	record record
	number int
	// begun reports that the record has a sample, so that the fields below are set.
	begun             bool
	bodyID            otlp.ContentID
	profileAttributes dictionary.AttributeSetIndex
	description       unique.Handle[description]

	// whole are the profiles of bodies that are OTLP.
	whole []pprofile.Profiles

	// scratch is for what one record takes while it is read, scratchBytes the most that it has been. wholeBytes is the
	// memory of whole, and of merging it.
	scratch                  size.Meter
	scratchBytes, wholeBytes int
	visited                  int
}

// tables is memory that requests pass on. It is empty between them, except for sizes.
type tables struct {
	assembler compact.Assembler
	dict      *dictionary.Dictionary // that of the assembler
	groups    groups
	stackText

	// Scratch.
	encoded, payload []byte
	list             []int32
	// sizes are those of the previous request: requests of one agent are much alike.
	sizes dictionary.Sizes
}

// The memory that the messages of OTLP bodies may take: constantMemory + memoryFactor × Limits.MaxProfileBytes.
const (
	constantMemory = 64 << 20
	memoryFactor   = 8
)

// constantGroups is how many attributes the groups of a request may have, in addition to one group for each record.
const constantGroups = 1 << 20

// maxKeptBytes and maxKeptEntries bound what a translator keeps between requests, maxHint the tables that it allocates
// before the first record.
const (
	maxKeptBytes   = 4 << 20
	maxKeptEntries = 1 << 18
	maxHint        = 1 << 12
)

var translators = sync.Pool{New: func() any {
	t := &translator{}
	t.empty()
	t.dict = t.assembler.Dictionary()
	return t
}}

// Translate reads the profiling records of a request. It only reads ld, and the result keeps nothing of it but
// strings. Records that have nothing to do with profiling are counted; Rest returns them.
func Translate(ld plog.Logs, opts Options) Result {
	t := translators.Get().(*translator)
	defer t.release()
	t.start(opts)
	for log, at := range recordsOf(ld) {
		t.at = at
		if at.isProfiling {
			t.translate(log)
		} else {
			if t.result.Others == 0 {
				t.result.FirstOther = t.number
			}
			t.result.Others++
		}
		t.number++
		if err := t.opts.Meter.GrowTo(t.memory()); err != nil {
			return Result{Err: err}
		}
	}
	t.result.UnpackedBytes = t.opts.Limits.MaxProfileBytes - t.bytesLeft
	t.build()
	t.joinWhole()
	return t.result
}

func (t *translator) start(opts Options) {
	if opts.Limits.MaxStackDepth <= 0 {
		opts.Limits.MaxStackDepth = 1024
	}
	opts.Limits = opts.Limits.WithDefaults()
	limits := &opts.Limits
	t.request = request{
		opts:        opts,
		result:      Result{FirstRead: -1},
		bytesLeft:   limits.MaxProfileBytes,
		samplesLeft: limits.MaxSamples,
		memoryLeft:  constantMemory + memoryFactor*limits.MaxProfileBytes,
		workLeft:    2 * limits.MaxProfileBytes, // leaves room for valid records beside one or two bombs
		sharedLeft:  constantShared,
		groupsLeft:  constantGroups,
	}
	t.dict.Reset(t.sizes)
	t.scratch = size.Meter{Reserve: func(n int) error {
		t.scratchBytes += n
		return t.opts.Meter.GrowTo(t.memory())
	}}
	if opts.Meter != nil {
		t.scratch.Context = opts.Meter.Context
	}
}

// memory estimates what the request takes so far, and what its profiles will take.
func (t *translator) memory() int {
	const rejectionBytes, memberBytes, lineBytes = 192, 16, 192
	return t.assembler.BuildBytes() + t.scratchBytes + t.wholeBytes + rejectionBytes*len(t.result.Rejected) +
		memberBytes*t.groupMembers +
		lineBytes*len(t.lines)
}

func (t *translator) translate(log plog.LogRecord) {
	t.scratch.Reset()
	r := &t.record
	r.read(log, &t.result.BadTimes)
	t.result.Records[r.format][r.typ][r.source]++
	t.result.Profiling++
	t.begun = false
	dropped := t.result.DroppedSamples()
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
	if err == nil && t.result.DroppedSamples() > dropped {
		t.result.Incomplete++
	}
	switch {
	case err != nil:
		err.Record = t.number
		t.result.Rejected = append(t.result.Rejected, *err)
	case t.result.FirstRead < 0:
		t.result.FirstRead = t.number
	}
}

// body returns the record's body, which is borrowed, if the record's format and type are known.
func (t *translator) body() (string, *Rejection) {
	r := &t.record
	if r.format == FormatOther {
		return "", reject(ReasonFormat, "`%s` is %.64q, not one of %s, %s and %s", keyFormat, r.formatName, FormatPprof,
			FormatText, FormatOTLP)
	}
	if r.typ == TypeOther && r.format == FormatText && !r.described {
		return "", t.unknownType()
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

func (t *translator) unknownType() *Rejection {
	return reject(ReasonType, "`%s` is %.64q, which is neither cpu nor allocation, and there is no `%s`", keyType,
		t.record.typeName, keySampleType)
}

// release drops what belongs to the request. The translator is kept for the next one unless it is too large.
func (t *translator) release() {
	t.request = request{}
	d := t.dict
	if max(d.Strings.Len(), d.Functions.Len(), d.Locations.Len(), d.Stacks.Len(), d.Attributes.Len(),
		d.AttributeSets.Len(), d.Links.Len()) > maxKeptEntries {
		return
	}
	t.sizes = dictionary.Sizes{
		Strings:   min(d.Strings.Len(), maxHint),
		Functions: min(d.Functions.Len(), maxHint),
		Locations: min(d.Locations.Len(), maxHint),
		Stacks:    min(d.Stacks.Len(), maxHint),
	}
	t.empty()
	translators.Put(t)
}

// empty empties the tables, which hold strings of the request, and drops those that are too large to be kept.
func (t *tables) empty() {
	t.assembler.Reset()
	t.groups.reset()
	t.stackText.reset()
	if max(cap(t.encoded), cap(t.payload)) > maxKeptBytes {
		t.encoded, t.payload = nil, nil
	}
	if cap(t.list) > maxKeptEntries {
		t.list = nil
	}
}

// position is the resource and scope of a record.
type position struct {
	resource plog.ResourceLogs
	scope    plog.ScopeLogs
	// isProfiling reports that the record claims to carry a profile, or that its scope or resource does.
	isProfiling bool
}

// recordsOf iterates over the records of a request.
func recordsOf(ld plog.Logs) iter.Seq2[plog.LogRecord, position] {
	return func(yield func(plog.LogRecord, position) bool) {
		for _, rl := range ld.ResourceLogs().All() {
			ofResource := isProfiling(rl.Resource().Attributes())
			for _, sl := range rl.ScopeLogs().All() {
				ofScope := ofResource || sl.Scope().Name() == ProfilingName
				for _, log := range sl.LogRecords().All() {
					if !yield(log, position{rl, sl, ofScope || isProfiling(log.Attributes())}) {
						return
					}
				}
			}
		}
	}
}

func isProfiling(attributes pcommon.Map) bool {
	value, ok := attributes.Get(KeySourceType)
	return ok && value.Type() == pcommon.ValueTypeStr && value.Str() == ProfilingName
}

// Rest returns the records that do not claim to carry profiles, with their resources and scopes, in their order.
// It returns ld if there are only such records, otherwise a copy. It only reads ld.
func Rest(ld plog.Logs) plog.Logs {
	anyProfiling := false
	for _, at := range recordsOf(ld) {
		if anyProfiling = at.isProfiling; anyProfiling {
			break
		}
	}
	if !anyProfiling {
		return ld
	}
	rest := plog.NewLogs()
	var last position
	var toResource plog.ResourceLogs
	var toScope plog.ScopeLogs
	for log, at := range recordsOf(ld) {
		if at.isProfiling {
			continue
		}
		if at.resource != last.resource {
			toResource = rest.ResourceLogs().AppendEmpty()
			at.resource.Resource().CopyTo(toResource.Resource())
			toResource.SetSchemaUrl(at.resource.SchemaUrl())
		}
		if at.scope != last.scope {
			toScope = toResource.ScopeLogs().AppendEmpty()
			at.scope.Scope().CopyTo(toScope.Scope())
			toScope.SetSchemaUrl(at.scope.SchemaUrl())
		}
		last = at
		log.CopyTo(toScope.LogRecords().AppendEmpty())
	}
	return rest
}

// BodyBytes returns the size of all bodies of profiling records.
func BodyBytes(ld plog.Logs) (n int) {
	for log, at := range recordsOf(ld) {
		switch body := log.Body(); {
		case !at.isProfiling:
		case body.Type() == pcommon.ValueTypeStr:
			n += len(body.Str())
		case body.Type() == pcommon.ValueTypeBytes:
			n += body.Bytes().Len()
		}
	}
	return n
}
