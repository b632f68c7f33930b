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
	var v [10]uint64
	if !numbers(s.data, p, end, v[:]) {
		return
	}
	m := rawMapping{
		id: v[0], start: v[1], limit: v[2], offset: v[3], filename: v[4], buildID: v[5],
		hasFunctions: v[6] != 0, hasFilenames: v[7] != 0, hasLineNumbers: v[8] != 0, hasInlinings: v[9] != 0,
	}
	s.maxString = max(s.maxString, m.filename, m.buildID)
	s.mappings = append(s.mappings, m)
}

func (s *scanned) takeFunction(p, end int) {
	var v [5]uint64
	if !numbers(s.data, p, end, v[:]) {
		return
	}
	f := rawFunction{id: v[0], name: v[1], systemName: v[2], filename: v[3], startLine: int64(v[4])}
	s.maxString = max(s.maxString, f.name, f.systemName, f.filename)
	s.functions = append(s.functions, f)
}

func (s *scanned) takeLocation(p, end int, limits *Limits) error {
	l := rawLocation{lineStart: uint32(len(s.lines))}
	var f field
	for p < end {
		var err error
		if p, err = f.next(s.data, p, end); err != nil {
			s.lines = s.lines[:l.lineStart]
			return nil
		}
		if f.number == 0 || f.number > 5 {
			continue
		}
		if (f.number == 4) != (f.wire == wireBytes) || f.wire&1 != 0 {
			s.lines = s.lines[:l.lineStart]
			return nil
		}
		switch f.number {
		case 1:
			l.id = f.value
		case 2:
			l.mappingID = f.value
		case 3:
			l.address = f.value
		case 4:
			if len(s.lines) >= limits.MaxTableEntries {
				return tooMany("line entries", limits.MaxTableEntries)
			}
			if !s.takeLine(f.start, f.end) {
				s.lines = s.lines[:l.lineStart]
				return nil
			}
		case 5:
			l.folded = f.value != 0
		}
	}
	l.lineEnd = uint32(len(s.lines))
	s.locations = append(s.locations, l)
	return nil
}

func (s *scanned) takeLine(p, end int) bool {
	var v [3]uint64
	if !numbers(s.data, p, end, v[:]) {
		return false
	}
	s.lines = append(s.lines, rawLine{functionID: v[0], line: int64(v[1]), column: int64(v[2])})
	return true
}
