// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

// rawMapping is a Mapping message. Strings are indices of string_table.
type rawMapping struct {
	id, start, limit, offset                                 uint64
	filename, buildID                                        uint64
	hasFunctions, hasFilenames, hasLineNumbers, hasInlinings bool
}

// rawFunction is a Function message. Strings are indices of string_table.
type rawFunction struct {
	id                         uint64
	name, systemName, filename uint64
	startLine                  int64
}

// rawLocation is a Location message; its lines are lines[lineStart:lineEnd].
type rawLocation struct {
	id, mappingID, address uint64
	lineStart, lineEnd     uint32
	folded                 bool
}

// rawLine is a Line message.
type rawLine struct {
	functionID   uint64
	line, column int64
}

func (s *scanned) takeMapping(p, end int) {
	var m rawMapping
	var f field
	for p < end {
		var err error
		if p, err = f.next(s.data, p, end); err != nil {
			return
		}
		if f.number == 0 || f.number > 10 {
			continue
		}
		if f.wire != wireVarint {
			return
		}
		switch f.number {
		case 1:
			m.id = f.value
		case 2:
			m.start = f.value
		case 3:
			m.limit = f.value
		case 4:
			m.offset = f.value
		case 5:
			m.filename = f.value
		case 6:
			m.buildID = f.value
		case 7:
			m.hasFunctions = f.value != 0
		case 8:
			m.hasFilenames = f.value != 0
		case 9:
			m.hasLineNumbers = f.value != 0
		case 10:
			m.hasInlinings = f.value != 0
		}
	}
	s.maxString = max(s.maxString, m.filename, m.buildID)
	s.mappings = append(s.mappings, m)
}

func (s *scanned) takeFunction(p, end int) {
	var fn rawFunction
	var f field
	for p < end {
		var err error
		if p, err = f.next(s.data, p, end); err != nil {
			return
		}
		if f.number == 0 || f.number > 5 {
			continue
		}
		if f.wire != wireVarint {
			return
		}
		switch f.number {
		case 1:
			fn.id = f.value
		case 2:
			fn.name = f.value
		case 3:
			fn.systemName = f.value
		case 4:
			fn.filename = f.value
		case 5:
			fn.startLine = int64(f.value)
		}
	}
	s.maxString = max(s.maxString, fn.name, fn.systemName, fn.filename)
	s.functions = append(s.functions, fn)
}

func (s *scanned) takeLocation(p, end int) {
	l := rawLocation{lineStart: uint32(len(s.lines))}
	var f field
	for p < end {
		var err error
		if p, err = f.next(s.data, p, end); err != nil {
			s.lines = s.lines[:l.lineStart]
			return
		}
		if f.number == 0 || f.number > 5 {
			continue
		}
		if (f.number == 4) != (f.wire == wireBytes) || f.wire&1 != 0 {
			s.lines = s.lines[:l.lineStart]
			return
		}
		switch f.number {
		case 1:
			l.id = f.value
		case 2:
			l.mappingID = f.value
		case 3:
			l.address = f.value
		case 4:
			if !s.takeLine(f.start, f.end) {
				s.lines = s.lines[:l.lineStart]
				return
			}
		case 5:
			l.folded = f.value != 0
		}
	}
	l.lineEnd = uint32(len(s.lines))
	s.locations = append(s.locations, l)
}

func (s *scanned) takeLine(p, end int) bool {
	var l rawLine
	var f field
	for p < end {
		var err error
		if p, err = f.next(s.data, p, end); err != nil {
			return false
		}
		if f.number == 0 || f.number > 3 {
			continue
		}
		if f.wire != wireVarint {
			return false
		}
		switch f.number {
		case 1:
			l.functionID = f.value
		case 2:
			l.line = int64(f.value)
		case 3:
			l.column = int64(f.value)
		}
	}
	s.lines = append(s.lines, l)
	return true
}
