// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields are pairs of a field's number and its content: an int (varint), uint64 (fixed64), string, []byte, Fields (a
// message), or []int and []uint64 (packed).
type Fields []any

// Bytes encodes the fields as a message of protobuf.
func (f Fields) Bytes() []byte {
	var b []byte
	for i := 0; i < len(f); i += 2 {
		number := protowire.Number(f[i].(int))
		switch v := f[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
		case uint64:
			b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), v)
		case string:
			b = append(b, Field(number, []byte(v))...)
		case []byte:
			b = append(b, Field(number, v)...)
		case Fields:
			b = append(b, Field(number, v.Bytes())...)
		case []int:
			var packed []byte
			for _, n := range v {
				packed = protowire.AppendVarint(packed, uint64(n))
			}
			b = append(b, Field(number, packed)...)
		case []uint64:
			var packed []byte
			for _, n := range v {
				packed = protowire.AppendFixed64(packed, n)
			}
			b = append(b, Field(number, packed)...)
		default:
			panic(fmt.Sprintf("a field cannot be %T", v))
		}
	}
	return b
}

// OldRequest is a request of one profile of the layouts before 1.8, followed by more fields.
func OldRequest(profile Fields, more ...any) []byte {
	return append(Fields{1, Fields{2, Fields{2, profile}}}, more...).Bytes()
}

// OldProfile is a profile of 1.4 with one location, main at 0x10, and the strings "", "main", "samples", "count",
// "alloc", "bytes".
func OldProfile(more ...any) Fields {
	return append(Fields{
		4, Fields{2, 0x10, 3, Fields{1, 0}}, 5, []int{0}, 6, Fields{1, 1},
		10, "", 10, "main", 10, "samples", 10, "count", 10, "alloc", 10, "bytes",
	}, more...)
}

// Many repeats a field.
func Many(n, number int, content any) Fields {
	f := make(Fields, 0, 2*n)
	for range n {
		f = append(f, number, content)
	}
	return f
}

// oldSample is a sample of 1.4 with a value and without attributes.
var oldSample = Fields{1, 0, 2, 1, 3, []int{1}}

// oldTypes are n sample types, by turns.
func oldTypes(n int) Fields {
	f := make(Fields, 0, 2*n)
	for i := range n {
		f = append(f, 1, Fields{1, 1 + i%2})
	}
	return f
}

// oldAttributes are n attributes of different keys.
func oldAttributes(n int) Fields {
	f := make(Fields, 0, 2*n)
	for i := range n {
		f = append(f, 7, Fields{1, fmt.Sprint("k", i), 2, Fields{3, i}})
	}
	return f
}

// upTo returns the numbers from 0.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func times(n, number int) []int { return slices.Repeat([]int{number}, n) }

// concat joins fields.
func concat(parts ...Fields) Fields { return slices.Concat(parts...) }

// oldOf is a request of OldProfile with more fields.
func oldOf(more func(size int) Fields) func(int) []byte {
	return func(size int) []byte { return OldRequest(OldProfile(more(size)...)) }
}

// older is a profile of 1.3.
func older(more func(size int) Fields) func(int) []byte {
	return func(size int) []byte { return OldRequest(Fields{2, uint64(1), 3, uint64(2), 8, more(size)}) }
}

// long is a string of half the size.
func long(size int) string { return strings.Repeat("x", size/2) }

// nestedValue is a value within lists.
func nestedValue(depth int) []byte {
	value := Fields{3, 1}.Bytes()
	for range depth {
		value = Fields{5, Fields{1, value}}.Bytes()
	}
	return value
}

// OTLP are requests of OTLP profiles of every layout, as protobuf.
var OTLP = Inputs{
	// Of the current layout.
	"profiles":     Nest(Field(2, nil), 1, 2),
	"samples":      Nest(Field(2, nil), 1, 2, 2),
	"indices":      Nest([]byte{1}, 1, 2, 2, 2),
	"small stacks": Nest(Field(7, nil), 2),
	"a stack":      Nest([]byte{1}, 2, 7, 1),
	"lines":        Nest(Field(3, nil), 2, 2),
	"strings":      Nest(Field(5, nil), 2),
	"functions":    Nest(Field(3, nil), 2),
	"attributes":   Nest(Field(6, nil), 2),
	"resources":    Nest(Field(1, nil)),
	"nested":       func(size int) []byte { return Field(2, Field(6, Field(2, nestedMessages(10_000, size)))) },
	"nested value": func(size int) []byte {
		return Fields{2, Fields{6, Fields{2, nestedValue(min(size/10, 5000))}}}.Bytes()
	},
	"empty samples": func(size int) []byte {
		return Fields{1,
			Fields{2, Fields{2, concat(Fields{7, "", 2, Fields{4, []int{1}}}, Many(size/2, 2, Fields{}))}}}.Bytes()
	},
	"samples of a long name": func(size int) []byte {
		n := size / 8
		return Fields{1, Fields{2, Fields{2, Many(n, 2, Fields{1, 1, 4, []int{1}})}},
			2, Fields{5, "", 5, long(size), 3, Fields{}, 3, Fields{1, 1}, 2, Fields{}, 2, Fields{3, Fields{1, 1}}, 7, Fields{},
				7, Fields{1, []int{1}}}}.Bytes()
	},
	"a timestamp a sample": func(size int) []byte {
		return Fields{1, Fields{2, Fields{2, Many(size/16, 2, Fields{4, []int{1}, 5, []uint64{1}})}}}.Bytes()
	},

	// Of older layouts.
	"ranges that overlap": oldOf(func(size int) Fields {
		return concat(Fields{5, make([]int, size/3)}, Many(size/20, 2, Fields{1, 0, 2, size / 3, 3, []int{1}}))
	}),
	"one long label": older(func(size int) Fields {
		return concat(Fields{6, "", 6, "key", 6, long(size), 4, Fields{3, 1}},
			Many(size/30, 2, Fields{1, []int{0}, 2, []int{1}, 3, Fields{1, 1, 2, 2}}))
	}),
	"one long label key": older(func(size int) Fields {
		return concat(Fields{6, "", 6, "val", 6, long(size), 4, Fields{3, 1}},
			Many(size/30, 2, Fields{1, []int{0}, 2, []int{1}, 3, Fields{1, 2, 2, 1}}))
	}),
	"one long build id": older(func(size int) Fields {
		return concat(Fields{6, "", 6, long(size)}, Many(size/12, 3, Fields{6, 1, 2, 5}),
			Fields{4, Fields{2, 7}, 2, Fields{1, []int{0}, 2, []int{1}}})
	}),
	"one long comment": oldOf(func(size int) Fields {
		return concat(Fields{10, long(size), 15, times(size/2, 6)}, Many(10, 2, oldSample))
	}),
	"comments of many profiles": func(size int) []byte {
		profile := Fields{8, times(50, 1), 2, oldSample, 3, []int{0}, 4, 1000}
		return join(Fields{1, Fields{2, Many(size/2/70, 2, profile)}}.Bytes(),
			Fields{2, Fields{2, Fields{2, 1}, 5, "", 5, long(size)}}.Bytes())
	},
	"comments of many 1.8 profiles": func(size int) []byte {
		profile := Fields{7, times(50, 1), 8, "0123456789abcdef", 2, Fields{1, 0, 2, []int{1}}}
		return join(Fields{1, Fields{2, Many(size/2/80, 2, profile)}}.Bytes(),
			Fields{2, Fields{2, Fields{2, 1}, 5, "", 5, long(size)}}.Bytes())
	},
	"a big scope of many profiles": func(size int) []byte {
		profile := Fields{1, Fields{1, 1}, 1, Fields{1, 2}, 4, 1000, 3, []int{0}, 2, Fields{2, 1, 3, []int{1, 1}}}
		return join(Fields{1, Fields{2, concat(Many(size/2/30, 2, profile), Fields{1, Fields{1, long(size)}})}}.Bytes(),
			Fields{2, Fields{2, Fields{2, 1}, 5, "", 5, "a", 5, "b"}}.Bytes())
	},
	"many types and samples": oldOf(func(size int) Fields {
		return concat(oldTypes(size/2/4), Many(size/2/9, 2, oldSample))
	}),
	"many types and timestamps": oldOf(func(size int) Fields {
		return concat(oldTypes(size/4/4), Fields{2, Fields{1, 0, 2, 1, 3, times(size/8, 3), 6, times(size/2, 3)}})
	}),
	"many types and attributes": oldOf(func(size int) Fields {
		return concat(oldTypes(size/4/4), oldAttributes(size/3/15),
			Fields{2, Fields{1, 0, 2, 1, 3, times(size/4/4, 1), 4, upTo(size / 3 / 15)}})
	}),
	"many types, and attributes of the profile": oldOf(func(size int) Fields {
		return concat(oldTypes(size/4/4), oldAttributes(size/3/15),
			Fields{2, Fields{1, 0, 2, 1, 3, times(size/4/4, 1)}, 22, upTo(size / 3 / 15)})
	}),
	"few types and many samples": oldOf(func(size int) Fields {
		return concat(oldTypes(100), Many(size/106, 2, Fields{2, 1, 3, times(100, 1)}))
	}),
	"few types, many samples and attributes": oldOf(func(size int) Fields {
		return concat(oldTypes(100), oldAttributes(100),
			Many(size/112, 2, Fields{2, 1, 3, times(100, 1), 4, []int{1, 2, 3, 4}}))
	}),
	"many types of one sample": oldOf(func(size int) Fields {
		return concat(oldTypes(size/5), Fields{2, Fields{2, 1, 3, times(size/5, 1)}})
	}),
	"one long key of many units": oldOf(func(size int) Fields {
		s := strings.Repeat("x", size/4)
		return concat(Fields{7, Fields{1, "key", 2, Fields{3, 1}}, 10, s, 10, s}, Many(size/2/6, 8, Fields{1, 6, 2, 7}),
			Fields{2, oldSample})
	}),
	"one long unit of many keys": oldOf(func(size int) Fields {
		n := size / 2 / 40
		f := concat(oldAttributes(n), Fields{10, long(size), 2, Fields{1, 0, 2, 1, 3, []int{1}, 4, upTo(n)}})
		for i := range n {
			f = append(f, 10, fmt.Sprint("k", i), 8, Fields{1, 7 + i, 2, 6})
		}
		return f
	}),
	"many attributes of one sample": oldOf(func(size int) Fields {
		n := size / 17
		return concat(oldAttributes(n), Fields{2, Fields{1, 0, 2, 1, 3, []int{1}, 4, upTo(n)}})
	}),
	"one attribute many times": oldOf(func(size int) Fields {
		return concat(oldAttributes(1), Fields{2, Fields{1, 0, 2, 1, 3, []int{1}, 4, make([]int, size)}})
	}),
	"many keys of one value": oldOf(func(size int) Fields {
		var keys Fields
		for i := range size / 15 {
			keys = append(keys, 1, Fields{1, fmt.Sprint("k", i), 2, Fields{3, i}})
		}
		return Fields{7, Fields{1, "map", 2, Fields{6, keys}}, 2, Fields{1, 0, 2, 1, 3, []int{1}, 4, []int{0}}}
	}),
	"nested values": oldOf(func(size int) Fields {
		return Fields{7, Fields{1, "list", 2, nestedValue(min(size/10, 5000))}, 2,
			Fields{1, 0, 2, 1, 3, []int{1}, 4, []int{0}}}
	}),
	"many lines": oldOf(func(size int) Fields {
		return Fields{4, Many(size/2, 3, Fields{}), 5, []int{1}, 2, Fields{1, 1, 2, 1, 3, []int{1}}}
	}),
	"many empty samples": oldOf(func(size int) Fields { return Many(size/2, 2, Fields{}) }),
	"many small samples": oldOf(func(size int) Fields { return Many(size/5, 2, Fields{3, []int{1}}) }),
	"many small profiles": func(size int) []byte {
		return Fields{1, Fields{2, Many(size/9, 2, Fields{2, Fields{3, []int{1}}, 4, Fields{}})}}.Bytes()
	},
	"many scopes": func(size int) []byte {
		return Fields{1, concat(Fields{2, Fields{2, OldProfile(2, oldSample)}}, Many(size/2, 2, Fields{}))}.Bytes()
	},
	"empty samples of 1.9": func(size int) []byte {
		return Fields{1, Fields{2, Fields{2, concat(Fields{2, Fields{2, []int{1}}}, Many(size/2, 2, Fields{}))}}}.Bytes()
	},
	"invalid text": oldOf(func(size int) Fields {
		return concat(Fields{10, strings.Repeat("\xff", size/2)}, Many(size/2/11, 2, oldSample))
	}),
}

// OTLPJSON are requests of OTLP profiles as JSON.
var OTLPJSON = Inputs{
	"samples":   same(`{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[`, "{},", "{}]}]}]}]}"),
	"resources": same(`{"resourceProfiles":[`, "{},", "{}]}"),
	"values":    same(`{"dictionary":{"attributeTable":[{"value":{"arrayValue":{"values":[`, "{},", "{}]}}}]}}"),
	"stacks":    same(`{"dictionary":{"stackTable":[`, "{},", "{}]}}"),
	"nesting":   same("", "[", ""),
}

// nestedMessages are values within lists, so deep or as deep as fits.
func nestedMessages(depth, size int) []byte {
	var value []byte
	for i := 0; i < depth && len(value) < size; i++ {
		value = Field(5, Field(1, value))
	}
	return value
}

// Logs are requests of OTLP log records, as protobuf.
var Logs = Inputs{
	"records":      Nest(Field(2, nil), 1, 2),
	"scopes":       Nest(Field(2, nil), 1),
	"resources":    Nest(Field(1, nil)),
	"attributes":   Nest(Field(6, nil), 1, 2, 2),
	"values":       Nest(Field(1, nil), 1, 2, 2, 5, 5),
	"small values": Nest(Field(1, Field(1, []byte("a"))), 1, 2, 2, 5, 5),
	"small records": Nest(Field(2, join(Field(5, Field(1, []byte("x"))),
		Field(6, join(Field(1, []byte("k")), Field(2, Field(1, []byte("v"))))))), 1, 2),
	"entities": Nest(Field(3, nil), 1, 1),
	"nested":   func(size int) []byte { return Field(1, Field(2, Field(2, Field(5, nestedMessages(90, size))))) },
	"nested, deeper": func(size int) []byte {
		return Field(1, Field(2, Field(2, Field(5, nestedMessages(10_000, size)))))
	},
	"many stacks": func(size int) []byte { return records(size, func(int) string { return oneStack }) },
	"a deep stack": func(size int) []byte {
		return records(0, func(int) string { return "\n\n" + strings.Repeat("at f(x:1)\n", size/10) })
	},
	"many lines": func(size int) []byte {
		return records(0, func(int) string {
			return "\n\n" + string(fill(size, nil, func(b []byte, i int) []byte { return fmt.Appendf(b, "at %d(x)\n", i) }))
		})
	},
	"many parentheses": func(size int) []byte {
		return records(0, func(int) string { return "\n\nat " + strings.Repeat("(", size/2) + strings.Repeat(")", size/2) })
	},
	"attributes of a stack": func(size int) []byte {
		return LogRecord(oneStack, fill(size, nil, func(b []byte, i int) []byte {
			return append(b, attribute(fmt.Sprint("attribute", i), "x")...)
		}))
	},
	"invalid attributes of a stack": func(size int) []byte {
		return LogRecord(oneStack, fill(size, nil, func(b []byte, i int) []byte {
			return append(b, attribute(fmt.Sprint("attribute", i), "\xff")...)
		}))
	},
}

// LogsJSON are requests of OTLP log records as JSON.
var LogsJSON = Inputs{
	"records":   same(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[`, "{},", "{}]}]}]}"),
	"resources": same(`{"resourceLogs":[`, "{},", "{}]}"),
	"values": same(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"arrayValue":{"values":[`, "{},",
		"{}]}}}]}]}]}"),
	"nested": same("", "[", ""),
}

// oneStack is a stack as text.
const oneStack = "\"main\" #1 prio=5 os_prio=0 cpu=1ms elapsed=1s tid=0x1 nid=0x1 runnable\n   java.lang.Thread.State: RUNNABLE\n\tat a.B.c(B.java:1)\n"

// attribute is an attribute of a log record, a string.
func attribute(key, value string) []byte {
	return Field(6, join(Field(1, []byte(key)), Field(2, Field(1, []byte(value)))))
}

// LogRecord is a request of one log record of Splunk's agents, with more attributes, encoded.
func LogRecord(body string, attributes []byte) []byte {
	return Field(1, Field(2, join(Field(1, Field(1, []byte("otel.profiling"))), record(body, attributes))))
}

func record(body string, attributes []byte) []byte {
	source := attribute("com.splunk.sourcetype", "otel.profiling")
	return Field(2, join(Field(5, Field(1, []byte(body))), source, attributes))
}

// records is a request of log records of about size bytes together, at least one.
func records(size int, body func(i int) string) []byte {
	content := Field(1, Field(1, []byte("otel.profiling")))
	for i := 0; i == 0 || len(content) < size; i++ {
		content = append(content, record(body(i), nil)...)
	}
	return Field(1, Field(2, content))
}

// PProfAttributes returns the attributes of a log record whose body is a pprof, as gzip and base64.
func PProfAttributes() []byte {
	return join(attribute("profiling.data.format", "pprof-gzip-base64"), attribute("profiling.data.type", "cpu"))
}
