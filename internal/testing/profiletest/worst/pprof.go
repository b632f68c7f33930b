// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"fmt"
	"strings"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The strings of every pprof here. The first that an input adds has the index own.
const (
	strCPU, strNanoseconds, strTraceID, strSpanID, strSpan int64 = 1, 2, 3, 4, 5

	own = 6
	// maxTypes is the number of sample types that decoders accept.
	maxTypes = 1024
	invalid  = "\xff\xfe"
)

// pprofHead has a sample type, and the locations 1 and 2 in two functions.
func pprofHead() pt.PprofWire {
	return pt.PprofWire(nil).Strings("", "cpu", "nanoseconds", "trace_id", "span_id", "7").
		ValueType(pt.PprofSampleType, strCPU, strNanoseconds).
		Function(pt.PprofFunctionFields{ID: 1, Name: strTraceID}).
		Function(pt.PprofFunctionFields{ID: 2, Name: strSpanID}).
		Location(pt.PprofLocationFields{ID: 1, Lines: []pt.PprofLine{{Function: 1, Line: 3}}}).
		Location(pt.PprofLocationFields{ID: 2, Lines: []pt.PprofLine{{Function: 2, Line: 4}}})
}

func sampleOf(locations ...uint64) pt.PprofWire {
	return pt.PprofWire(nil).Unpacked(pt.PprofSampleLocation, locations...).Int(pt.PprofSampleValue, 1)
}

func labelled(labels ...pt.PprofLabel) pt.PprofWire {
	sample := pt.PprofWire(nil)
	for _, l := range labels {
		sample = sample.Label(l)
	}
	return pt.PprofWire(nil).Message(pt.PprofSample, sample)
}

// repeated is an input of one piece, again and again.
func repeated(piece pt.PprofWire) func(int) []byte {
	return func(size int) []byte { return repeat(size, pprofHead(), piece) }
}

// numbered is an input of pieces that differ.
func numbered(piece func(i int) pt.PprofWire) func(int) []byte {
	return func(size int) []byte {
		return fill(size, pprofHead(), func(b []byte, i int) []byte { return append(b, piece(i)...) })
	}
}

// sharing is an input of pieces that refer to a long string, whose index is own.
func sharing(s string, piece func(i int) pt.PprofWire) func(int) []byte {
	return func(size int) []byte {
		return fill(size, pprofHead().Strings(strings.Repeat(s, max(1, size/2/len(s)))),
			func(b []byte, i int) []byte { return append(b, piece(i)...) })
	}
}

// within is an input of one sample or location, whose content is made of pieces.
func within(head, tail pt.PprofWire, message func(to, content pt.PprofWire) pt.PprofWire,
	piece func(i int) pt.PprofWire) func(int) []byte {
	return func(size int) []byte {
		content := fill(size, head, func(b []byte, i int) []byte { return append(b, piece(i)...) })
		return append(message(pprofHead(), content), tail...)
	}
}

func asSample(to, content pt.PprofWire) pt.PprofWire { return to.Message(pt.PprofSample, content) }

func asLocation(to, content pt.PprofWire) pt.PprofWire { return to.Message(pt.PprofLocation, content) }

// always returns the same piece.
func always(piece pt.PprofWire) func(int) pt.PprofWire {
	return func(int) pt.PprofWire { return piece }
}

// reached is a location with the number i+3 that a sample refers to.
func reached(i int, l pt.PprofLocationFields) pt.PprofWire {
	l.ID = uint64(i) + 3
	return pt.PprofWire(nil).Location(l).Message(pt.PprofSample, sampleOf(l.ID))
}

var none pt.PprofWire

// PProf are payloads of pprof.
var PProf = Inputs{
	// Many small messages.
	"samples":        repeated(none.Message(pt.PprofSample, nil)),
	"locations":      repeated(none.Message(pt.PprofLocation, nil)),
	"functions":      repeated(none.Message(pt.PprofFunction, nil)),
	"mappings":       repeated(none.Message(pt.PprofMapping, nil)),
	"strings":        repeated(none.Strings("")),
	"comments":       repeated(none.Packed(pt.PprofComment, 1, 1, 1, 1, 1, 1, 1, 1)),
	"sample types":   repeated(none.Message(pt.PprofSampleType, nil)),
	"unknown fields": repeated(none.Varint(15+1, 0)),
	"sparse ids": numbered(func(i int) pt.PprofWire {
		return none.Location(pt.PprofLocationFields{ID: uint64(i)<<40 + 3, Address: 1})
	}),
	"reached locations": numbered(func(i int) pt.PprofWire {
		return reached(i, pt.PprofLocationFields{Address: uint64(i)})
	}),
	"reached mappings": numbered(func(i int) pt.PprofWire {
		return append(none.Mapping(pt.PprofMappingFields{ID: uint64(i) + 1, Start: uint64(i) + 9}),
			reached(i, pt.PprofLocationFields{Mapping: uint64(i) + 1})...)
	}),
	"zeros": func(size int) []byte { return make([]byte, size) },

	// One huge sample or location.
	"lines": within(none.Varint(1, 3), none.Message(pt.PprofSample, sampleOf(3)), asLocation,
		always(none.Message(pt.PprofLocationLine, nil))),
	"stack ids": within(nil, nil, func(to, content pt.PprofWire) pt.PprofWire {
		return asSample(to, none.Message(pt.PprofSampleLocation, content))
	}, always(pt.PprofWire{1})),
	"unpacked stack ids": within(nil, nil, asSample, always(none.Unpacked(pt.PprofSampleLocation, 1))),
	"values": within(nil, nil, func(to, content pt.PprofWire) pt.PprofWire {
		return asSample(to, none.Message(pt.PprofSampleValue, content))
	}, always(pt.PprofWire{1})),
	"no numbers":        within(nil, nil, asSample, always(none.Message(pt.PprofSampleLocation, nil))),
	"labels of one key": within(nil, nil, asSample, always(none.Label(pt.PprofLabel{Key: 1, Num: 1}))),
	"labels of one key and other numbers": within(nil, nil, asSample, func(i int) pt.PprofWire {
		return none.Label(pt.PprofLabel{Key: 1, Num: int64(i)})
	}),
	"labels of mixed units": within(nil, nil, asSample, func(i int) pt.PprofWire {
		return none.Label(pt.PprofLabel{Key: 1, Num: 1, Unit: int64(1 + i%2)})
	}),
	"text and number": within(nil, nil, asSample, func(i int) pt.PprofWire {
		return none.Label(pt.PprofLabel{Key: int64(1 + i%3), Num: int64(i)}).Label(pt.PprofLabel{Key: int64(1 + i%3), Str: 1})
	}),
	"empty labels":            within(nil, nil, asSample, always(none.Message(pt.PprofSampleLabel, nil))),
	"many keys of one sample": func(size int) []byte { return manyKeys(size, pprofHead(), none) },

	// Many different samples.
	"distinct stacks": numbered(func(i int) pt.PprofWire {
		var stack pt.PprofWire
		for bit := range 16 {
			stack = append(stack, byte(1+i>>bit&1))
		}
		return asSample(nil, none.Message(pt.PprofSampleLocation, stack))
	}),
	"distinct labels": numbered(func(i int) pt.PprofWire { return labelled(pt.PprofLabel{Key: 1, Num: int64(i + 1)}) }),
	"links": numbered(func(i int) pt.PprofWire {
		return append(none.Strings(fmt.Sprintf("%032x", i+1)),
			labelled(pt.PprofLabel{Key: strTraceID, Str: int64(i) + own}, pt.PprofLabel{Key: strSpanID, Str: strSpan})...)
	}),
	"many types":               manyTypes(true),
	"many types and no values": manyTypes(false),
	"many types and labels":    func(size int) []byte { return manyKeys(size, headOfManyTypes(), ones()) },
	"unreadable location":      unreadableLocation,

	// One long string, many references.
	"text as comments": sharing("x", always(none.Packed(pt.PprofComment, own))),
	"text as labels": sharing("x", func(i int) pt.PprofWire {
		return labelled(pt.PprofLabel{Key: 1, Str: own, Num: int64(i + 1)})
	}),
	"text as key": sharing("x", func(i int) pt.PprofWire { return labelled(pt.PprofLabel{Key: own, Num: int64(i + 1)}) }),
	"text as unit": sharing("x", func(i int) pt.PprofWire {
		return labelled(pt.PprofLabel{Key: 1, Num: int64(i + 1), Unit: own})
	}),
	"text of two units": func(size int) []byte {
		s := strings.Repeat("x", size/8)
		return append(pprofHead().Strings(s, s), asSample(nil, fill(size/2, nil, func(b []byte, i int) []byte {
			return pt.PprofWire(b).Label(pt.PprofLabel{Key: 1, Num: int64(i + 1), Unit: own + int64(i%2)})
		}))...)
	},
	"text under many keys": sharing("x", func(i int) pt.PprofWire {
		return append(none.Strings(fmt.Sprint(i)), labelled(pt.PprofLabel{Key: int64(i) + own + 1, Str: own})...)
	}),
	"text twice in one sample": sharing("x", func(i int) pt.PprofWire {
		return labelled(pt.PprofLabel{Key: 1, Str: own}, pt.PprofLabel{Key: 1, Str: own},
			pt.PprofLabel{Key: 2, Num: int64(i + 1)})
	}),
	"text beside a number": sharing("x", func(i int) pt.PprofWire {
		return labelled(pt.PprofLabel{Key: 1, Str: own}, pt.PprofLabel{Key: 2, Num: int64(i + 1)})
	}),
	"text as function names": sharing("x", func(i int) pt.PprofWire {
		return append(none.Function(pt.PprofFunctionFields{ID: uint64(i) + 3, Name: own, SystemName: own, File: own}),
			reached(i, pt.PprofLocationFields{Lines: []pt.PprofLine{{Function: uint64(i) + 3}}})...)
	}),
	"text as build ids": sharing("x", func(i int) pt.PprofWire {
		return append(none.Mapping(pt.PprofMappingFields{ID: uint64(i) + 1, Start: 1, Limit: uint64(i) + 9, File: own,
			BuildID: own}), reached(i, pt.PprofLocationFields{Mapping: uint64(i) + 1})...)
	}),
	"text that is not UTF-8 as labels": sharing(invalid, func(i int) pt.PprofWire {
		return labelled(pt.PprofLabel{Key: 1, Str: own, Num: int64(i + 1)})
	}),
	"text that is not UTF-8 as keys": func(size int) []byte {
		s := strings.Repeat(invalid, size/8)
		return fill(size, pprofHead().Strings(s, s), func(b []byte, i int) []byte {
			return append(b, labelled(pt.PprofLabel{Key: own + int64(i&1), Num: int64(i + 1)})...)
		})
	},
	"text that is not UTF-8 as comments": sharing(invalid, always(none.Packed(pt.PprofComment, own))),
	"text as sample types": func(size int) []byte {
		w := pprofHead().Strings(strings.Repeat("x", size/2))
		for range maxTypes - 1 {
			w = w.ValueType(pt.PprofSampleType, own, own)
		}
		return w.Message(pt.PprofSample, sampleOf(1))
	},
}

// manyKeys adds a sample with labels of as many keys as fit.
func manyKeys(size int, w, sample pt.PprofWire) []byte {
	for i := 0; len(w)+len(sample) < size; i++ {
		w = w.Strings(fmt.Sprint(i))
		sample = sample.Label(pt.PprofLabel{Key: int64(own + i), Num: 1})
	}
	return w.Message(pt.PprofSample, sample)
}

func headOfManyTypes() pt.PprofWire {
	w := pprofHead()
	for range maxTypes - 1 {
		w = w.ValueType(pt.PprofSampleType, 1, 2)
	}
	return w
}

// ones is a sample with a value of each type.
func ones() pt.PprofWire {
	return none.Message(pt.PprofSampleValue, []byte(strings.Repeat("\x01", maxTypes)))
}

// manyTypes returns samples of as many types as decoders accept.
func manyTypes(values bool) func(size int) []byte {
	return func(size int) []byte {
		sample := none
		if values {
			sample = ones()
		}
		return fill(size, headOfManyTypes(), func(b []byte, i int) []byte {
			return pt.PprofWire(b).Message(pt.PprofSample,
				sample[:len(sample):len(sample)].Label(pt.PprofLabel{Key: 1, Num: int64(i + 1)}))
		})
	}
}

// unreadableLocation returns stacks of one location with many lines. Each line has to be checked, since another
// function refers to a string that the payload does not have.
func unreadableLocation(size int) []byte {
	line := none.Message(pt.PprofLocationLine, none.Varint(1, 1))
	location := repeat(size/4, none.Varint(1, 3), line)
	return repeat(size, pprofHead().Function(pt.PprofFunctionFields{ID: 3, Name: 99}).Message(pt.PprofLocation, location),
		none.Message(pt.PprofSample, sampleOf(3, 3, 3, 3, 3, 3, 3, 99)))
}

// History returns a pprof as a store of profiles has most work with: hardly any two samples share a function, and the
// label key has a few more values than a query groups by. Different numbers make pprofs without a common function.
func History(number int) func(size int) []byte {
	return func(size int) []byte {
		const group, key = own, own + 1
		head := pprofHead().Strings("group", "key").
			Function(pt.PprofFunctionFields{ID: 3, Name: group}).
			Location(pt.PprofLocationFields{ID: 3, Lines: []pt.PprofLine{{Function: 3}}})
		return fill(size, head, func(b []byte, i int) []byte {
			id, name, value := uint64(i)+4, int64(own+2+2*i), int64(own+3+2*i)
			return pt.PprofWire(b).Strings(fmt.Sprintf("f%d.%d", number, i), fmt.Sprint(i%33)).
				Function(pt.PprofFunctionFields{ID: id, Name: name}).
				Location(pt.PprofLocationFields{ID: id, Lines: []pt.PprofLine{{Function: id}}}).
				Message(pt.PprofSample, sampleOf(id, 3, 1).Label(pt.PprofLabel{Key: key, Str: value}))
		})
	}
}
