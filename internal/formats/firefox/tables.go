// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package firefox

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// tables are what samples refer to, in columns.
type tables struct {
	strings []string
	stacks  struct{ prefix, frame column }
	frames  struct{ function, line, column, text, address column }

	functions               struct{ name, file, source, resource, line column }
	resourceLib, sourceFile column
}

// resolver resolves the references of samples.
type resolver struct {
	*tables
	libs      []lib
	locations []int32 // by frame; 0 until the first time
	// names are the strings of the dictionary, by those of the table, and places what is in the text of frames: many
	// frames can share a long one.
	names  map[int32]dictionary.StringIndex
	places map[int32]place
}

// place is a frame of Firefox's own format.
type place struct {
	name, file dictionary.StringIndex
	line       int64
}

// hasStacks reports that a thread has tables of its own.
func (t *tables) hasStacks() bool { return len(t.stacks.frame) > 0 }

// share takes from the shared tables what those of a thread can be without.
func (t *tables) share(shared *tables) {
	if len(t.strings) == 0 {
		t.strings = shared.strings
	}
	if len(t.sourceFile) == 0 {
		t.sourceFile = shared.sourceFile
	}
}

func (t *tables) string(i int32) string {
	if i < 0 || int(i) >= len(t.strings) {
		return ""
	}
	return t.strings[i]
}

// fillTree makes the table of stacks the tree of stacks.
func (d *decoder) fillTree(r *resolver) error {
	d.tree.Reset()
	numFrames := max(len(r.frames.function), len(r.frames.text))
	const nameBytes, placeBytes = 40, 64 // entries of maps
	if err := d.Grow(4*numFrames + events.NodeBytes*len(r.stacks.frame) + nameBytes*min(2*numFrames, len(r.strings)) +
		placeBytes*min(len(r.frames.text), len(r.strings))); err != nil {
		return err
	}
	r.locations, r.names, r.places = make([]int32, numFrames), map[int32]dictionary.StringIndex{}, map[int32]place{}
	for i := range r.stacks.frame {
		if err := d.Check(0); err != nil {
			return err
		}
		frame, caller := r.stacks.frame.index(int32(i)), r.stacks.prefix.index(int32(i))
		if frame < 0 || int(frame) >= numFrames {
			d.tree.Add(missing, 0)
			continue
		}
		if r.locations[frame] == 0 {
			r.locations[frame] = d.location(r, frame)
		}
		d.tree.Add(caller, r.locations[frame])
	}
	return nil
}

// missing is a caller that does not exist.
const missing = events.NoNode - 1

// jsLocation is a frame of Firefox's own format that names a place in a script.
var jsLocation = regexp.MustCompile(`^(.*) \((.+?):(\d+)(?::(\d+))?\)$`)

// intern returns a string of the table in the dictionary, or otherwise if it is empty.
func (d *decoder) intern(r *resolver, i int32, otherwise string) dictionary.StringIndex {
	name, known := r.names[i]
	if !known {
		if name = d.InternString(r.string(i)); name == 0 {
			return d.Dict.Strings.Intern(otherwise)
		}
		r.names[i] = name
	}
	return name
}

// placeOf reads the text of a frame.
func (d *decoder) placeOf(r *resolver, text int32) place {
	p, known := r.places[text]
	if known {
		return p
	}
	p.name = d.intern(r, text, unknown)
	if m := jsLocation.FindStringSubmatch(d.Dict.Strings.At(p.name)); m != nil {
		p.name, p.file = d.Dict.Strings.Intern(cmp.Or(m[1], unknown)), d.Dict.Strings.Intern(m[2])
		p.line, _ = strconv.ParseInt(m[3], 10, 32)
	}
	r.places[text] = p
	return p
}

// location interns a frame. One of native code that has no name yet keeps its address and its file, so that it can be
// symbolized.
func (d *decoder) location(r *resolver, frame int32) int32 {
	line, column := int64(r.frames.line.index(frame)), int64(r.frames.column.index(frame))
	if text := r.frames.text.index(frame); text != none {
		p := d.placeOf(r, text)
		if line <= 0 {
			line = p.line
		}
		return d.Frame(dictionary.Function{Name: p.name, Filename: p.file}, line, column)
	}
	function := r.frames.function.index(frame)
	name, file := r.functions.name.index(function), r.functions.file.index(function)
	if source := r.functions.source.index(function); source != none {
		file = r.sourceFile.index(source)
	}
	l := dictionary.Location{Mapping: d.mapping(r, r.resourceLib.index(r.functions.resource.index(function)))}
	if address := r.frames.address.at(int(frame)); address >= 0 && address < 1<<62 && l.Mapping != 0 {
		l.Address = uint64(address)
		if strings.HasPrefix(r.string(name), "0x") {
			return int32(d.Dict.Locations.Intern(l, nil))
		}
	}
	f := dictionary.Function{
		Name: d.intern(r, name, unknown), Filename: d.intern(r, file, ""), StartLine: max(int64(r.functions.line.index(function)), 0),
	}
	return int32(d.Dict.Locations.Intern(l, []dictionary.Line{
		{Function: d.Dict.Functions.Intern(f), Line: max(line, 0), Column: max(column, 0)},
	}))
}

const unknown = "(unknown)"

// mapping interns a library.
func (d *decoder) mapping(r *resolver, i int32) dictionary.MappingIndex {
	if i < 0 || int(i) >= len(r.libs) {
		return 0
	}
	l := &r.libs[i]
	if l.mapping != 0 {
		return l.mapping
	}
	m := dictionary.Mapping{Filename: d.InternString(cmp.Or(l.Path, l.Name))}
	if l.CodeID != nil && *l.CodeID != "" {
		m.Attributes = d.AddAttributes(0, d.TextAttribute("process.executable.build_id.gnu", strings.ToLower(*l.CodeID)))
	}
	l.mapping = d.Dict.Mappings.Intern(m)
	return l.mapping
}

var errColumn = errors.New("a column must be a list of numbers")

// column is a column of numbers; NaN is null.
type column []float64

const none = -1

// at returns a number, or NaN if the column does not have it.
func (c column) at(i int) float64 {
	if i >= len(c) {
		return math.NaN()
	}
	return c[i]
}

// index returns a number that is the index of an entry, or none.
func (c column) index(i int32) int32 {
	if i < 0 || int(i) >= len(c) || !(c[i] >= 0 && c[i] <= math.MaxInt32) {
		return none
	}
	return int32(c[i])
}

// UnmarshalJSON reads a list of numbers and nulls.
func (c *column) UnmarshalJSON(b []byte) error {
	*c = make(column, 0, bytes.Count(b, []byte(","))+1)
	b = bytes.TrimSpace(b)
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '[' {
		return errColumn
	}
	for b = bytes.TrimSpace(b[1 : len(b)-1]); len(b) > 0; {
		var element []byte
		element, b, _ = bytes.Cut(b, []byte(","))
		element = bytes.TrimSpace(element)
		v := math.NaN()
		if string(element) != "null" {
			var err error
			if v, err = strconv.ParseFloat(string(element), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
				return errColumn
			}
		}
		*c = append(*c, v)
	}
	return nil
}
