// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"fmt"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// Layout is a wire layout of OTLP profiles, named after the first release of opentelemetry-proto that has it.
type Layout uint8

// The layouts, oldest first.
const (
	// V1_3 is v1experimental: a ProfileContainer around a Profile that extends pprof.
	V1_3 Layout = iota
	// V1_4 has all tables inside Profile; 1.5 changed only how a profile's attributes are written.
	V1_4
	// V1_6 has the tables in ProfilesData.
	V1_6
	// V1_7 has them in a dictionary; stacks are ranges of Profile.location_indices.
	V1_7
	// V1_8 has a stack table and one sample type in each profile.
	V1_8
	// V1_9 has no comments: the profile's fields from 8 on moved down by one.
	V1_9
	// V1_10 is today's: the sample's fields 2 to 4 changed places.
	V1_10
)

// NumLayouts is the number of layouts.
const NumLayouts = len(messages.Layouts)

var layoutNames = [NumLayouts]string{"1.3", "1.4", "1.6", "1.7", "1.8", "1.9", "1.10"}

// String returns the release of opentelemetry-proto, for example "1.7".
func (l Layout) String() string {
	if int(l) >= NumLayouts {
		return fmt.Sprintf("Layout(%d)", uint8(l))
	}
	return layoutNames[l]
}

// Current is the layout of this package's output.
const Current = V1_10

type layoutSet uint8

const allLayouts layoutSet = 1<<NumLayouts - 1

func setOf(layouts ...Layout) layoutSet {
	var s layoutSet
	for _, l := range layouts {
		s |= 1 << l
	}
	return s
}

func (s layoutSet) has(l Layout) bool { return s&(1<<l) != 0 }
func (s layoutSet) isSingle() bool    { return bits.OnesCount8(uint8(s)) == 1 }
func (s layoutSet) newest() Layout    { return Layout(bits.Len8(uint8(s)) - 1) }

// Detect returns the layout of an export request or a ProfilesData message. certain is false if the message can be read
// in a newer and in an older layout, with different meanings. Detect then returns the newer one.
//
// Each field rules out the layouts in which its number has another wire type. One sample is usually enough: in today's
// layout its values are field 4, and no older layout has a list there beside the sample's other fields.
func Detect(data []byte) (layout Layout, certain bool) {
	d := detector{left: allLayouts}
	d.request(data)
	if d.left.isSingle() {
		return d.left.newest(), true
	}
	if d.left.has(V1_10) && d.left&setOf(V1_8, V1_9) != 0 && len(d.unclear) > 0 {
		return d.resolveUnclear(data)
	}
	return d.left.newest(), len(d.unclear) == 0
}

// unclearSample is a sample whose field 2 can be attribute indices (1.10) or values (1.8, 1.9).
type unclearSample struct {
	field2     []byte // packed
	timestamps int
	// isUnpacked reports that fields 2 and 4 are single numbers: an attribute and a value (1.10), or a value and a link.
	isUnpacked bool
	field4     uint64
}

// maxUnclear bounds how many unclear samples are kept, since they are alike.
const maxUnclear = 64

type detector struct {
	left    layoutSet
	unclear []unclearSample
}

// keep rules out the layouts that are not in s, unless that would leave none: a malformed field is no evidence.
func (d *detector) keep(s layoutSet) {
	if d.left&s != 0 {
		d.left &= s
	}
}

// evidence holds the layouts whose message has a field of a number and wire type.
type evidence [messages.MaxFields][6]layoutSet

// newEvidence assumes that lists of numbers are packed, as nearly all encoders write them.
func newEvidence(of func(*messages.Layout) *messages.Message) *evidence {
	return evidenceWhere(of, func(k messages.Kind, wire protowire.Type) bool { return k.Usual() == wire })
}

func evidenceWhere(of func(*messages.Layout) *messages.Message,
	matches func(messages.Kind, protowire.Type) bool) *evidence {
	e := &evidence{}
	for l, schema := range messages.Layouts {
		m := of(schema)
		if m == nil {
			continue
		}
		for number, f := range m.Fields {
			for t := range e[number] {
				if f.Name != "" && matches(f.Kind, protowire.Type(t)) {
					e[number][t] |= 1 << l
				}
			}
		}
	}
	return e
}

// of returns the layouts that have a field. One that none has is no evidence.
func (e *evidence) of(r *wire.Reader) layoutSet {
	if int(r.Number) >= len(e) || int(r.Wire) >= len(e[0]) || e[r.Number][r.Wire] == 0 {
		return allLayouts
	}
	return e[r.Number][r.Wire]
}

var (
	requestEvidence = newEvidence(func(s *messages.Layout) *messages.Message { return s.Request })
	profileEvidence = newEvidence(func(s *messages.Layout) *messages.Message { return s.Profile })
	sampleEvidence  = newEvidence(sampleOf)
	// unpackedEvidence allows lists that are not packed: async-profiler writes each value as a field.
	unpackedEvidence  = evidenceWhere(sampleOf, messages.Kind.Allows)
	profile1x3        = messages.Layouts[V1_3].Profile.Fields[8].Message
	valueTypeEvidence = newEvidence(func(s *messages.Layout) *messages.Message { return s.Profile.Fields[1].Message })
)

// request reads the outermost fields, then the profiles, and the dictionary only if that was not enough: it is the
// largest part of current messages.
func (d *detector) request(data []byte) {
	for r := wire.New(data); r.Next(); {
		d.keep(requestEvidence.of(&r))
	}
	d.nested(data, 1, func(resource []byte) {
		d.nested(resource, 2, func(scope []byte) { d.nested(scope, 2, d.profile) })
	})
	d.nested(data, 2, d.dictionary)
}

// nested calls read for each message in field number, until the layout is known.
func (d *detector) nested(data []byte, number protowire.Number, read func([]byte)) {
	for message := range wire.Messages(data, number) {
		if d.left.isSingle() {
			return
		}
		read(message)
	}
}

func (d *detector) profile(data []byte) {
	var has [messages.MaxFields]bool
	var sampleType []byte
	for r := wire.New(data); !d.left.isSingle() && r.Next(); {
		d.keep(profileEvidence.of(&r))
		if int(r.Number) < len(has) {
			has[r.Number] = true
		}
		switch {
		case r.Wire == protowire.BytesType && r.Number == 2:
			d.sample(r.Content)
		case r.Wire == protowire.BytesType && r.Number == 1:
			sampleType = r.Content
		case r.Wire == protowire.BytesType && r.Number == 7 && len(r.Content)%16 != 0 && !d.left.has(V1_4) &&
			!d.left.has(V1_3):
			d.keep(^setOf(V1_9, V1_10)) // comments, since a profile id has 16 bytes or none
		case r.Wire == protowire.BytesType && r.Number == 8 && !has[2] && d.left.has(V1_3) && isProfile1x3(r.Content):
			d.keep(setOf(V1_3))
		}
	}
	if !d.left.has(V1_3) { // in 1.3, field 1 is an id
		d.valueType(sampleType)
	}
	// Since 1.9 field 10 is the original payload, which has a format in field 9.
	if d.left.has(V1_8) && has[10] && !has[9] {
		d.keep(^setOf(V1_9, V1_10))
	}
}

// isProfile1x3 reports whether data can be the profile of a container whose times are 0.
func isProfile1x3(data []byte) bool {
	hasSamples := false
	r := wire.New(data)
	for r.Next() {
		f := profile1x3.Field(r.Number, r.Wire)
		if f == nil {
			return false
		}
		hasSamples = hasSamples || f.Name == "sample"
	}
	return hasSamples && !r.IsMalformed()
}

// valueType distinguishes 1.8 and older layouts, which have an aggregation temporality, from newer ones.
func (d *detector) valueType(data []byte) {
	for r := wire.New(data); r.Next(); {
		if r.Number == 3 {
			d.keep(valueTypeEvidence.of(&r))
		}
	}
}

func (d *detector) sample(data []byte) {
	var has [messages.MaxFields]bool
	var unclear unclearSample
	possible, usual, isNumber := d.left, allLayouts, false
	for r := wire.New(data); r.Next(); {
		possible &= unpackedEvidence.of(&r)
		usual &= sampleEvidence.of(&r)
		if int(r.Number) < len(has) {
			has[r.Number] = true
		}
		switch {
		case r.Number == 2 && r.Wire == protowire.BytesType:
			unclear.field2 = r.Content
		case r.Number == 2:
			unclear.field2, isNumber = protowire.AppendVarint(unclear.field2, r.Value), true
		case r.Number == 4 && r.Wire == protowire.VarintType:
			unclear.field4, unclear.isUnpacked = r.Value, isNumber
		case r.Number == 5 && r.Wire == protowire.BytesType:
			unclear.timestamps += len(r.Content) / 8
		}
	}
	d.keep(possible)
	// A sample has values or timestamps.
	if !has[3] && !has[6] {
		d.keep(^setOf(V1_4, V1_6, V1_7))
	}
	if !has[2] && !has[5] {
		d.keep(^setOf(V1_8, V1_9))
	}
	if !has[4] && !has[5] {
		d.keep(^setOf(V1_10))
	}
	if !unclear.isUnpacked {
		d.keep(usual)
	}
	if has[2] && d.left.has(V1_10) && !d.left.isSingle() && len(d.unclear) < maxUnclear {
		d.unclear = append(d.unclear, unclear)
	}
}

// dictionary reads what follows field 2 of the request: a mapping in 1.6, the dictionary since 1.7.
func (d *detector) dictionary(data []byte) {
	var has [8]bool
	for r := wire.New(data); !d.left.isSingle() && r.Next(); {
		if int(r.Number) < len(has) {
			has[r.Number] = true
		}
		if r.Wire == protowire.VarintType {
			d.keep(setOf(V1_6)) // a mapping's address
			continue
		}
		if r.Number != 7 && r.Number != 6 || r.Wire != protowire.BytesType {
			continue
		}
		for f := wire.New(r.Content); f.Next(); {
			switch {
			case f.Number == 1 && (f.Wire == protowire.VarintType) == (r.Number == 7):
				d.keep(setOf(V1_7, V1_6, V1_4)) // attribute_units' key, or a key as a string
			case f.Number == 1:
				d.keep(setOf(V1_8, V1_9, V1_10)) // a stack's locations, or a key's index
			}
		}
	}
	if has[2] && !has[7] { // since 1.8 samples reach locations by the stack table
		d.keep(^setOf(V1_8, V1_9, V1_10))
	}
}

// resolveUnclear decides between 1.8/1.9 and 1.10 if all samples have only a stack, field 2 and timestamps. If field 2
// has values, there are as many as timestamps; if it has attribute indices, they lie within the table.
func (d *detector) resolveUnclear(data []byte) (Layout, bool) {
	attributes, links := uint64(0), uint64(0)
	for dictionary := range wire.Messages(data, 2) {
		for f := wire.New(dictionary); f.Next(); {
			switch f.Number {
			case 4:
				links++
			case 6:
				attributes++
			}
		}
	}
	older := d.left &^ setOf(V1_10)
	for _, s := range d.unclear {
		count := 0
		for v := range wire.Varints(s.field2) {
			if v >= attributes {
				return older.newest(), true
			}
			count++
		}
		if s.isUnpacked && s.field4 >= links || !s.isUnpacked && count != s.timestamps {
			return V1_10, true
		}
	}
	return V1_10, false
}

// sampleOf returns the message in field 2 of a profile. In 1.3 it stands one message deeper, in the container's
// profile.
func sampleOf(s *messages.Layout) *messages.Message {
	if s.Profile.Fields[8].Name == "profile" {
		return nil
	}
	return s.Sample
}
