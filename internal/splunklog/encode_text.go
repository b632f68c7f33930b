// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// addTexts makes a record of each observation of a profile.
func (s *sink) addTexts(p pprofile.Profile, is kind, to plog.ScopeLogs) {
	for _, sample := range p.Samples().All() {
		if s.stopped {
			return
		}
		template := plog.NewScopeLogs()
		record := s.newRecord(p, is, template)
		attributes := record.Attributes()
		attributes.PutStr(keyFormat, formatTextValue)
		stack := s.dict.StackTable().At(int(sample.StackIndex())).LocationIndices()
		attributes.PutInt(keyFrameCount, int64(s.framesOf(sample.StackIndex())))
		if period := periodOfProfile(s.dict, p); period != 0 && is.typ == TypeCPU {
			attributes.PutInt(keyEventPeriod, period/millisecond)
			if period%millisecond != 0 {
				attributes.PutInt(keyEventPeriodNanos, period)
			}
		}
		if i := sample.LinkIndex(); i != 0 {
			link := s.dict.LinkTable().At(int(i))
			record.SetTraceID(link.TraceID())
			record.SetSpanID(link.SpanID())
		}
		record.Body().SetStr(s.bodyOf(sample, stack, attributes))
		for m := range moments(p, sample) {
			s.stopped = s.stopped || *s.budget <= 0
			if s.stopped {
				return
			}
			next := to.LogRecords().AppendEmpty()
			record.CopyTo(next)
			next.SetTimestamp(pcommon.Timestamp(m.time))
			switch {
			case is.typ == TypeAllocation:
				next.Attributes().PutInt(keyAllocated, m.value)
			case m.counted:
				next.Attributes().PutInt(keySampleValue, m.value)
			}
			s.finish(next, 1)
		}
	}
}

// bodyOf writes a stack. What its first two lines cannot say of the thread becomes attributes of the record.
func (s *sink) bodyOf(sample pprofile.Sample, stack pcommon.Int32Slice, attributes pcommon.Map) string {
	var h threadHeader
	for _, i := range sample.AttributeIndices().All() {
		attribute := s.dict.AttributeTable().At(int(i))
		key := s.dict.StringTable().At(int(attribute.KeyStrindex()))
		if !h.add(key, attribute.Value()) {
			attribute.Value().CopyTo(attributes.PutEmpty(key))
		}
	}
	s.text = h.append(s.text[:0])
	for _, i := range stack.All() {
		s.appendLocation(s.dict.LocationTable().At(int(i)))
	}
	if stack.Len() == 0 {
		s.appendFrame(noStack, "", 0, 0)
	}
	return string(s.text)
}

// threadHeader is what the first two lines of a text say. An empty text and a 0 are not known.
type threadHeader struct {
	name, state string
	id, osID    int64
}

// add adds an attribute if it reads back as what it is, and reports whether it did.
func (h *threadHeader) add(key string, value pcommon.Value) bool {
	const mostDigits = 1e18
	isText := value.Type() == pcommon.ValueTypeStr && value.Str() != "" && !strings.ContainsAny(value.Str(), "\"\r\n") &&
		strings.TrimSpace(value.Str()) == value.Str()
	isID := value.Type() == pcommon.ValueTypeInt && value.Int() > 0 && value.Int() < mostDigits
	switch {
	case key == keyThreadName && isText:
		h.name = value.Str()
	case key == keyThreadState && isText && !strings.HasPrefix(value.Str(), statePrefix):
		h.state = value.Str()
	case key == keyThreadID && isID:
		h.id = value.Int()
	case key == keyThreadOSID && isID:
		h.osID = value.Int()
	default:
		return false
	}
	return true
}

func (h *threadHeader) append(to []byte) []byte {
	if h.name != "" {
		to = append(append(append(to, '"'), h.name...), '"', ' ')
	}
	if h.id != 0 {
		to = strconv.AppendInt(append(to, '#'), h.id, 10)
		to = append(to, ' ')
	}
	if h.osID != 0 {
		to = strconv.AppendInt(append(to, "nid=0x"...), h.osID, 16)
	}
	to = append(to, '\n')
	if h.state != "" {
		to = append(append(to, statePrefix...), h.state...)
	}
	return append(to, '\n')
}

// What stands where a text needs a frame and there is none.
const (
	noStack   = "[no stack]"
	noName    = "[unknown]"
	noFile    = "Unknown Source"
	hexPrefix = "0x"
)

func (s *sink) appendLocation(location pprofile.Location) {
	texts := s.dict.StringTable()
	for _, line := range location.Lines().All() {
		function := s.dict.FunctionTable().At(int(line.FunctionIndex()))
		s.appendFrame(texts.At(int(function.NameStrindex())), texts.At(int(function.FilenameStrindex())), line.Line(), line.Column())
	}
	if location.Lines().Len() == 0 {
		name := noName
		if location.Address() != 0 {
			name = hexPrefix + strconv.FormatUint(location.Address(), 16)
		}
		mapping := s.dict.MappingTable().At(int(location.MappingIndex()))
		s.appendFrame(name, texts.At(int(mapping.FilenameStrindex())), 0, 0)
	}
}

// oneLine keeps a name from ending its line.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func (s *sink) appendFrame(function, file string, line, column int64) {
	if function == "" && file == "" && line == 0 {
		function = noName
	}
	if file == "" {
		file = noFile
	}
	s.text = append(append(append(s.text, "\tat "...), oneLine.Replace(function)...), '(')
	s.text = append(s.text, oneLine.Replace(file)...)
	if line != 0 || column != 0 {
		s.text = strconv.AppendInt(append(s.text, ':'), line, 10)
	}
	if column != 0 {
		s.text = strconv.AppendInt(append(s.text, ':'), column, 10)
	}
	s.text = append(s.text, ')', '\n')
}
