// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplayouts

import (
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// layoutSet is a set of layouts.
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

// Detect returns the layout of an export request or a ProfilesData message. certain is false if the message reads
// as well in a newer and in an older layout, with different meanings; the newer one is returned then.
//
// Each field rules out the layouts in which its number has another wire type. One sample is usually enough:
// in today's layout its values are field 4, and no older layout has a list there together with a sample's rest.
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
}

// maxUnclear bounds how many unclear samples are kept: they are all alike.
const maxUnclear = 64

type detector struct {
	left    layoutSet
	unclear []unclearSample
}

// keep rules out the layouts that are not in s, unless that leaves none: a malformed field is no evidence.
func (d *detector) keep(s layoutSet) {
	if d.left&s != 0 {
		d.left &= s
	}
}

// allowing returns the layouts whose message has such a field. A number that no layout knows says nothing.
func allowing(of func(*schema) *message, number protowire.Number, wire protowire.Type) layoutSet {
	var s layoutSet
	for l, schema := range schemas {
		if m := of(schema); m != nil {
			if f, known := m.field(number); known && f.kind.usual() == wire {
				s |= 1 << l
			}
		}
	}
	if s == 0 {
		return allLayouts
	}
	return s
}

// evidence is allowing for every field number and wire type, worked out once.
type evidence [24][6]layoutSet

func newEvidence(of func(*schema) *message) *evidence {
	e := &evidence{}
	for number := range e {
		for wire := range e[number] {
			e[number][wire] = allowing(of, protowire.Number(number), protowire.Type(wire))
		}
	}
	return e
}

func (e *evidence) of(number protowire.Number, wire protowire.Type) layoutSet {
	if int(number) >= len(e) || int(wire) >= len(e[0]) {
		return allLayouts
	}
	return e[number][wire]
}

var (
	requestEvidence = newEvidence(func(s *schema) *message { return s.request })
	profileEvidence = newEvidence(func(s *schema) *message { return s.profile })
	// A sample of 1.3 stands one message deeper, in the container's profile.
	sampleEvidence = newEvidence(func(s *schema) *message {
		if s.profile.fields[8].name == "profile" {
			return nil
		}
		return s.sample
	})
	profile1x3        = schemas[V1_3].profile.fields[8].message
	valueTypeEvidence = newEvidence(func(s *schema) *message { return s.profile.fields[1].message })
)

// fieldReader iterates over the fields of a message. It stops at the first malformed byte.
type fieldReader struct {
	data    []byte
	number  protowire.Number
	wire    protowire.Type
	content []byte // of a length-delimited field
	value   uint64 // of a varint or fixed-size field
}

func (r *fieldReader) next() bool {
	if len(r.data) == 0 {
		return false
	}
	number, wire, n := protowire.ConsumeTag(r.data)
	if n < 0 {
		return false
	}
	r.data, r.number, r.wire, r.content, r.value = r.data[n:], number, wire, nil, 0
	switch wire {
	case protowire.BytesType:
		r.content, n = protowire.ConsumeBytes(r.data)
	case protowire.VarintType:
		r.value, n = protowire.ConsumeVarint(r.data)
	case protowire.Fixed64Type:
		r.value, n = protowire.ConsumeFixed64(r.data)
	case protowire.Fixed32Type:
		_, n = protowire.ConsumeFixed32(r.data)
	default:
		n = -1 // no layout has groups
	}
	if n < 0 {
		return false
	}
	r.data = r.data[n:]
	return true
}

func (d *detector) request(data []byte) {
	for r := (fieldReader{data: data}); !d.left.isSingle() && r.next(); {
		d.keep(requestEvidence.of(r.number, r.wire))
		switch {
		case r.number == 1 && r.wire == protowire.BytesType:
			d.nested(r.content, 2, func(scope []byte) { d.nested(scope, 2, d.profile) })
		case r.number == 2 && r.wire == protowire.BytesType:
			d.dictionary(r.content)
		}
	}
}

// nested calls read for each message in field number, until the layout is known.
func (d *detector) nested(data []byte, number protowire.Number, read func([]byte)) {
	for r := (fieldReader{data: data}); !d.left.isSingle() && r.next(); {
		if r.number == number && r.wire == protowire.BytesType {
			read(r.content)
		}
	}
}

func (d *detector) profile(data []byte) {
	var has [24]bool
	var sampleType []byte
	for r := (fieldReader{data: data}); !d.left.isSingle() && r.next(); {
		d.keep(profileEvidence.of(r.number, r.wire))
		if int(r.number) < len(has) {
			has[r.number] = true
		}
		switch {
		case r.wire == protowire.BytesType && r.number == 2:
			d.sample(r.content)
		case r.wire == protowire.BytesType && r.number == 1:
			sampleType = r.content
		case r.wire == protowire.BytesType && r.number == 7 && len(r.content)%16 != 0 && !d.left.has(V1_4) && !d.left.has(V1_3):
			d.keep(^setOf(V1_9, V1_10)) // comments, since a profile id has 16 bytes or none
		case r.wire == protowire.BytesType && r.number == 8 && !has[2] && d.left.has(V1_3) && isProfile1x3(r.content):
			d.keep(setOf(V1_3))
		}
	}
	if !d.left.has(V1_3) { // whose field 1 is an id
		d.valueType(sampleType)
	}
	// Since 1.9 field 10 is the original payload, which has a format in field 9.
	if d.left.has(V1_8) && has[10] && !has[9] {
		d.keep(^setOf(V1_9, V1_10))
	}
}

// isProfile1x3 reports whether data can be the profile of a container whose times are 0: nothing else tells one.
func isProfile1x3(data []byte) bool {
	hasSamples := false
	r := fieldReader{data: data}
	for r.next() {
		f, known := profile1x3.field(r.number)
		if !known || !f.kind.allows(r.wire) {
			return false
		}
		hasSamples = hasSamples || f.name == "sample"
	}
	return hasSamples && len(r.data) == 0
}

// valueType tells 1.8 and older, which have an aggregation temporality, from the newer ones.
func (d *detector) valueType(data []byte) {
	for r := (fieldReader{data: data}); r.next(); {
		if r.number == 3 {
			d.keep(valueTypeEvidence.of(r.number, r.wire))
		}
	}
}

func (d *detector) sample(data []byte) {
	var has [24]bool
	var unclear unclearSample
	for r := (fieldReader{data: data}); r.next(); {
		d.keep(sampleEvidence.of(r.number, r.wire))
		if int(r.number) < len(has) {
			has[r.number] = true
		}
		switch {
		case r.number == 2:
			unclear.field2 = r.content
		case r.number == 5 && r.wire == protowire.BytesType:
			unclear.timestamps += len(r.content) / 8
		}
	}
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
	if has[2] && d.left.has(V1_10) && !d.left.isSingle() && len(d.unclear) < maxUnclear {
		d.unclear = append(d.unclear, unclear)
	}
}

// dictionary reads what follows field 2 of the request: a mapping in 1.6, the dictionary since 1.7.
func (d *detector) dictionary(data []byte) {
	for r := (fieldReader{data: data}); !d.left.isSingle() && r.next(); {
		if r.wire == protowire.VarintType {
			d.keep(setOf(V1_6)) // a mapping's address
			continue
		}
		if r.number != 7 && r.number != 6 || r.wire != protowire.BytesType {
			continue
		}
		for f := (fieldReader{data: r.content}); f.next(); {
			switch {
			case f.number == 1 && (f.wire == protowire.VarintType) == (r.number == 7):
				d.keep(setOf(V1_7, V1_6, V1_4)) // attribute_units' key, or a key as text
			case f.number == 1:
				d.keep(setOf(V1_8, V1_9, V1_10)) // a stack's locations, or a key's index
			}
		}
	}
}

// resolveUnclear decides between 1.8/1.9 and 1.10 where all samples have only a stack, field 2 and timestamps:
// as values they are as many as the timestamps; as attribute indices they lie within the table.
func (d *detector) resolveUnclear(data []byte) (Layout, bool) {
	attributes := uint64(0)
	for r := (fieldReader{data: data}); r.next(); {
		if r.number == 2 {
			for f := (fieldReader{data: r.content}); f.next(); {
				if f.number == 6 {
					attributes++
				}
			}
		}
	}
	older := d.left &^ setOf(V1_10)
	for _, s := range d.unclear {
		count := 0
		for packed := s.field2; len(packed) > 0; count++ {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				break
			}
			packed = packed[n:]
			if v >= attributes {
				return older.newest(), true
			}
		}
		if count != s.timestamps {
			return V1_10, true
		}
	}
	return V1_10, false
}
