// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// MaxListedFaults is how many faults Check lists; it counts the others.
const MaxListedFaults = 1000

// CheckOption turns a rule on or off.
type CheckOption uint8

const (
	// AllowRepeatedSamples permits several samples of a profile with one identity {stack, attributes, link}.
	AllowRepeatedSamples CheckOption = 1 << iota
	// AllowDuplicates permits a value to occur twice in a table.
	AllowDuplicates
	// AllowOrphans permits entries that no profile refers to.
	AllowOrphans
	// RequireProfiles rejects messages, resources and scopes without profiles, which mean nothing.
	RequireProfiles
)

// Check returns an error if pd breaks a rule of OTLP profiles (opentelemetry-proto
// profiles/v1development/profiles.proto, and this project's docs). The error joins all faults, each with its path, such
// as
//
//	resource_profiles[0].scope_profiles[0].profiles[1].samples[3].stack_index: index 9 is out of range [0..4)
//
// and lists the first 1000. A message without resources, with an empty dictionary, is valid. pd may be anything that
// pdata could unmarshal.
func Check(pd pprofile.Profiles, opts ...CheckOption) error {
	d := pd.Dictionary()
	c := &checker{dict: d, lengths: [numTables]int{
		d.MappingTable().Len(), d.LocationTable().Len(), d.FunctionTable().Len(), d.LinkTable().Len(), d.StringTable().Len(),
		d.AttributeTable().Len(), d.StackTable().Len(),
	}}
	for _, opt := range opts {
		c.options |= opt
	}
	if pd.ResourceProfiles().Len() == 0 {
		if c.options&RequireProfiles != 0 {
			c.fault(at("resource_profiles", -1), "is empty")
		}
		if c.lengths == [numTables]int{} {
			return c.err()
		}
	}
	c.resolver = NewResolver(NewSpace(), c.dict)
	c.checkTables()
	for i, rp := range pd.ResourceProfiles().All() {
		c.checkResource(at("resource_profiles", i), rp)
	}
	if c.options&AllowOrphans == 0 {
		c.checkOrphans(pd)
	}
	return c.err()
}

type checker struct {
	options  CheckOption
	dict     pprofile.ProfilesDictionary
	lengths  [numTables]int
	resolver *Resolver
	faults   []error
	unlisted int
}

// fault records a fault at p. Paths are formatted only here, since most values have no fault.
func (c *checker) fault(p path, format string, args ...any) {
	if len(c.faults) >= MaxListedFaults {
		c.unlisted++
		return
	}
	c.faults = append(c.faults, fmt.Errorf("%s: %s", p, fmt.Sprintf(format, args...)))
}

func (c *checker) err() error {
	if c.unlisted > 0 {
		c.faults = append(c.faults, fmt.Errorf("and %d more faults", c.unlisted))
	}
	return errors.Join(c.faults...)
}

// shorten cuts a string for a fault: very many faults can be about one long string.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return dictionary.CutUTF8(s, most) + "…"
}

// word returns an entry of the string table for a fault, shortened and then in quotes if it needs them.
func (c *checker) word(strindex int32) string {
	if t := c.dict.StringTable(); holds(strindex, t.Len()) {
		return Word(shorten(t.At(int(strindex))))
	}
	return Namer{c.dict}.str(strindex)
}

func (c *checker) utf8(p path, s string) {
	if i := invalidAt(s); i >= 0 {
		c.fault(p, "%q is not valid UTF-8 at byte offset %d", shorten(s), i)
	}
}

// invalidAt returns the offset of the first byte that is not UTF-8, or -1.
func invalidAt(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	i := 0
	for {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

func (c *checker) value(p path, v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		c.utf8(p, v.Str())
	case pcommon.ValueTypeSlice:
		for i, e := range v.Slice().All() {
			c.value(p.item("values", i), e)
		}
	case pcommon.ValueTypeMap:
		c.attributeMap(p, v.Map())
	default:
	}
}

func (c *checker) attributeMap(p path, m pcommon.Map) {
	for name, v := range m.All() {
		c.utf8(p.child("key"), name)
		c.value(p.key(name), v)
	}
}

// path locates a value: a field of the message at parent, and which element of the field.
type path struct {
	parent *path
	field  string
	// isKey marks a field that is the key of an attribute, and quoted.
	isKey bool
	index int
}

func at(field string, index int) path { return path{field: field, index: index} }

func (p path) item(field string, index int) path { return path{parent: &p, field: field, index: index} }

func (p path) child(field string) path { return p.item(field, -1) }

func (p path) key(name string) path { return path{parent: &p, field: name, isKey: true, index: -1} }

func (p path) nth(i int) path {
	p.index = i
	return p
}

func (p path) String() string {
	s := p.field
	if p.isKey {
		s = strconv.Quote(shorten(s))
	}
	if p.index >= 0 {
		s += "[" + strconv.Itoa(p.index) + "]"
	}
	if p.parent != nil {
		s = p.parent.String() + "." + s
	}
	return s
}
