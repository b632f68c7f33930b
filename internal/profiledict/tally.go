// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

// Tally adds up the encoded bytes of the dictionary entries that a part of some samples needs, entry
// by entry, so that it can be seen where a part is full. It takes the indices of the Subset of all the
// samples, so a part's real dictionary, whose indices are smaller, is a little smaller.
type Tally struct {
	// Bytes is the sum so far.
	Bytes int

	whole *Subset
	// in[t][i] is the number of the last part that needs entry i of table t, in the order of Subset.tables.
	in   [7][]uint32
	part uint32
	// journal is what was entered, so that it can be taken back.
	journal []tallied
}

type tallied struct {
	table int8
	entry int32
}

// The tables by their position in Subset.tables.
const (
	tableMapping = iota
	tableLocation
	tableFunction
	tableLink
	tableString
	tableAttribute
	tableStack
)

// Reset begins with the parts of another whole, which must be arranged.
func (t *Tally) Reset(whole *Subset) {
	t.whole = whole
	t.part = 0
	for i, table := range whole.tables() {
		if n := len(table.uses); cap(t.in[i]) < n {
			t.in[i] = make([]uint32, n)
		} else {
			t.in[i] = t.in[i][:n]
			clear(t.in[i])
		}
	}
	t.Begin()
}

// zeroEntries is the size of the seven zero values.
const zeroEntries = 5*2 + 2 + 2*(1+2) + 2

// Begin turns to a new part, which needs the zero values only.
func (t *Tally) Begin() {
	t.part++
	t.journal = t.journal[:0]
	t.Bytes = zeroEntries
	for i := range t.in {
		t.in[i][0] = t.part
	}
}

// TallyMark is a state to go back to.
type TallyMark struct{ bytes, journal int }

// Mark gives the state of the part.
func (t *Tally) Mark() TallyMark { return TallyMark{t.Bytes, len(t.journal)} }

// Return takes back what was added since m.
func (t *Tally) Return(m TallyMark) {
	for _, e := range t.journal[m.journal:] {
		t.in[e.table][e.entry] = 0
	}
	t.journal = t.journal[:m.journal]
	t.Bytes = m.bytes
}

func (t *Tally) enter(table int8, i int32) bool {
	if t.in[table][i] == t.part {
		return false
	}
	t.in[table][i] = t.part
	t.journal = append(t.journal, tallied{table, i})
	return true
}

// AddString adds a string.
func (t *Tally) AddString(i StringIndex) {
	if t.enter(tableString, int32(i)) {
		t.Bytes += FieldLen(len(t.whole.dict.Strings.entries[i]))
	}
}

// AddLink adds a link.
func (t *Tally) AddLink(i LinkIndex) {
	if t.enter(tableLink, int32(i)) {
		t.Bytes += FieldLen(FieldLen(len(Link{}.TraceID)) + FieldLen(len(Link{}.SpanID)))
	}
}

// AddAttributes adds the attributes of a set.
func (t *Tally) AddAttributes(i AttributeSetIndex) {
	for _, a := range t.whole.dict.AttributeSets.At(i) {
		if t.enter(tableAttribute, a) {
			attribute := &t.whole.dict.Attributes.entries[a]
			t.AddString(attribute.Key)
			t.AddString(attribute.Unit)
			t.Bytes += FieldLen(indexLen(t.whole.String(attribute.Key)) +
				indexLen(t.whole.String(attribute.Unit)) + FieldLen(attribute.Value.len()))
		}
	}
}

// AddStack adds a stack and what it refers to.
func (t *Tally) AddStack(i StackIndex) {
	if !t.enter(tableStack, int32(i)) {
		return
	}
	t.Bytes += FieldLen(t.whole.stackLen(i))
	for _, l := range t.whole.dict.Stacks.At(i) {
		if t.enter(tableLocation, l) {
			t.addLocation(LocationIndex(l))
		}
	}
}

func (t *Tally) addLocation(i LocationIndex) {
	t.Bytes += FieldLen(t.whole.locationLen(i))
	l, lines := t.whole.dict.Locations.At(i)
	t.AddAttributes(l.Attributes)
	if t.enter(tableMapping, int32(l.Mapping)) {
		m := t.whole.dict.Mappings.At(l.Mapping)
		t.Bytes += FieldLen(t.whole.mappingLen(l.Mapping))
		t.AddString(m.Filename)
		t.AddAttributes(m.Attributes)
	}
	for k := range lines {
		if f := lines[k].Function; t.enter(tableFunction, int32(f)) {
			function := &t.whole.dict.Functions.entries[f]
			t.Bytes += FieldLen(t.whole.functionLen(f))
			t.AddString(function.Name)
			t.AddString(function.SystemName)
			t.AddString(function.Filename)
		}
	}
}
