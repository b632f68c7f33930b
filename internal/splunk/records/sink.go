// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
)

// sink makes the records of one part.
type sink struct {
	*Encoder
	from unsent
	part EncodedPart
	dict pprofile.ProfilesDictionary
	// hasUnnamed reports that there are functions without a name.
	hasUnnamed bool
	// frames[i] is the number of frames of stack i plus 1; 0 means not counted yet.
	frames []int
	// originBytes is the size of the current resource and scope.
	originBytes int
	// total is the number of observations, done how many of them are written.
	total, done int
	// largest is the size of the largest record.
	largest int
	// stopped reports that the records are far too large already.
	stopped bool

	pprof *encode.Writer
}

var sizer plog.ProtoMarshaler

// The attributes of the records' scope that keep the profiles' scope, if that has another name than Splunk's.
const (
	keyScopeName    = "otel.scope.name"
	keyScopeVersion = "otel.scope.version"
)

// addProfiles makes records in Splunk's formats.
func (s *sink) addProfiles(pd pprofile.Profiles) {
	position := 0
	for _, rp := range pd.ResourceProfiles().All() {
		rl := s.part.Logs.ResourceLogs().AppendEmpty()
		rp.Resource().CopyTo(rl.Resource())
		rl.SetSchemaUrl(rp.SchemaUrl())
		resourceBytes := sizer.ResourceLogsSize(rl)
		for _, sp := range rp.ScopeProfiles().All() {
			sl := rl.ScopeLogs().AppendEmpty()
			copyScope(sp, sl)
			s.originBytes = resourceBytes + sizer.ScopeLogsSize(sl)
			for _, p := range sp.Profiles().All() {
				if s.stopped {
					return
				}
				s.addProfile(p, s.kindOf(p, s.from.isDoubleCounted(position)), sl)
				position++
			}
		}
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool { return sl.LogRecords().Len() == 0 })
	}
	s.part.Logs.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool { return rl.ScopeLogs().Len() == 0 })
}

// copyScope sets Splunk's scope, and keeps the name and version of the profiles' scope as attributes.
func copyScope(from pprofile.ScopeProfiles, to plog.ScopeLogs) {
	from.Scope().CopyTo(to.Scope())
	to.SetSchemaUrl(from.SchemaUrl())
	name, version := from.Scope().Name(), from.Scope().Version()
	if name == ProfilingName {
		return
	}
	to.Scope().SetName(ProfilingName)
	to.Scope().SetVersion("")
	if name != "" {
		to.Scope().Attributes().PutStr(keyScopeName, name)
	}
	if version != "" {
		to.Scope().Attributes().PutStr(keyScopeVersion, version)
	}
}

func (s *sink) addProfile(p pprofile.Profile, k kind, to plog.ScopeLogs) {
	n := observationsOf(p)
	if n == 0 {
		return
	}
	if k.typ == TypeOther && s.opts.SplunkTypesOnly {
		s.part.LeftOut += n
		s.done += n
		return
	}
	if s.budget <= s.part.RepeatedBytes { // which are charged when the part is sent
		s.part.Dropped += n
		s.done += n
		return
	}
	record := s.newRecord(p, k, to)
	written, frames := s.writePprof(p, k.typ, min(s.budget, maxPprofBytes))
	pprof := s.pprof.Bytes()
	s.budget -= len(pprof)
	if written < n && s.budget > 0 {
		s.stopped = true
		s.done += written
		return
	}
	s.part.Dropped += n - written
	s.done += n - written
	n = written
	record.Body().SetStr(base64.StdEncoding.EncodeToString(encode.Gzip(pprof)))
	record.Attributes().PutStr(keyFormat, FormatPprof.String())
	record.Attributes().PutInt(keyFrameCount, int64(frames))
	s.finish(record, n)
}

// newRecord adds a record with the attributes of its profile. One whose name would change what the record is is left
// out and counted.
func (s *sink) newRecord(p pprofile.Profile, k kind, to plog.ScopeLogs) plog.LogRecord {
	record := to.LogRecords().AppendEmpty()
	record.SetTimestamp(p.Time())
	var attributes xpdata.MapBuilder // Map.Put would look through all attributes before each
	attributes.EnsureCapacity(8 + p.AttributeIndices().Len())
	attributes.AppendEmpty(KeySourceType).SetStr(ProfilingName)
	attributes.AppendEmpty(keyType).SetStr(k.name)
	if d, needed := s.describe(p, k.typ); needed {
		d.put(&attributes)
	}
	for _, i := range p.AttributeIndices().All() {
		attribute := s.dict.AttributeTable().At(int(i))
		if key := s.dict.StringTable().At(int(attribute.KeyStrindex())); describesRecord(key) {
			s.part.LeftOutAttributes++
		} else {
			attribute.Value().CopyTo(attributes.AppendEmpty(key))
		}
	}
	attributes.UnsafeIntoMap(record.Attributes())
	return record
}

// finish counts a record, of n observations, that has all of its content.
func (s *sink) finish(record plog.LogRecord, n int) {
	size := sizer.LogRecordSize(record)
	s.largest = max(s.largest, size)
	s.part.Records++
	s.part.Bytes += size
	if s.opts.RepeatsResources {
		s.part.RepeatedBytes += s.originBytes
	}
	s.part.Samples += n
	s.done += n
	s.budget -= size
	if size > s.opts.MaxRecordBytes {
		s.part.Oversized++
	}
	// Records that are far too large are split before they are finished.
	const far = 2
	s.stopped = s.part.RequestBytes()/far > s.opts.MaxPartBytes && s.done < s.total
}

// excess returns the size divided by the limit. It assumes that records that were not written are like the others.
func (s *sink) excess() float64 {
	bytes := float64(s.part.Bytes)
	if s.part.Records > 1 { // a single record has its resource however small it is
		bytes = float64(s.part.RequestBytes())
	}
	known := 1.0
	if s.stopped {
		known = float64(s.total) / float64(s.done)
	}
	return max(known, known*bytes/float64(s.opts.MaxPartBytes), float64(s.largest)/float64(s.opts.MaxRecordBytes))
}

// periodOf returns the period of a profile's samples in nanoseconds, or 0 if they have none.
func (s *sink) periodOf(p pprofile.Profile, typ Type) int64 {
	unit := s.dict.StringTable().At(int(p.PeriodType().UnitStrindex()))
	if typ != TypeCPU || unit != "nanoseconds" && unit != "ns" {
		return 0
	}
	return max(p.Period(), 0)
}

// framesOf counts the frames of a stack: inlined ones are frames of their own. Each stack is counted once.
func (s *sink) framesOf(stack int32) int {
	if s.frames == nil {
		s.frames = make([]int, s.dict.StackTable().Len())
	}
	if known := s.frames[stack]; known != 0 {
		return known - 1
	}
	n := 0
	for _, i := range s.dict.StackTable().At(int(stack)).LocationIndices().All() {
		n += max(1, s.dict.LocationTable().At(int(i)).Lines().Len())
	}
	s.frames[stack] = n + 1
	return n
}

func hasUnnamedFunctions(d pprofile.ProfilesDictionary) bool {
	functions := d.FunctionTable()
	for i := 1; i < functions.Len(); i++ {
		if functions.At(i).NameStrindex() == 0 {
			return true
		}
	}
	return false
}
