// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

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
	// NumLayouts is the number of layouts.
	NumLayouts int = iota
)

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

// kind is the type of a field, as far as reading it needs.
type kind uint8

const (
	kindVarint  kind = iota // integers, bools and enums
	kindFixed64             // fixed64
	kindDouble              // double
	kindString              // string
	kindBytes               // bytes: base64 in JSON
	kindID                  // bytes that JSON writes in hexadecimal
	kindMessage             // a message, repeated or not
	kindVarints             // repeated integers, packed or not
	kindFixeds              // repeated fixed64, packed or not
)

// allows reports whether a field of this kind can have a wire type: lists of numbers can be packed or not.
func (k kind) allows(t protowire.Type) bool {
	return t == k.usual() || t == protowire.VarintType && k == kindVarints || t == protowire.Fixed64Type && k == kindFixeds
}

// usual returns the wire type that encoders use for a field of this kind: lists of numbers are packed.
func (k kind) usual() protowire.Type {
	switch k {
	case kindVarint:
		return protowire.VarintType
	case kindFixed64, kindDouble:
		return protowire.Fixed64Type
	default:
		return protowire.BytesType
	}
}

// field is one field of a message: its name in the .proto file, its type, and its message if it has one.
type field struct {
	name    string
	kind    kind
	message *message
}

func varint(name string) field                   { return field{name, kindVarint, nil} }
func varints(name string) field                  { return field{name, kindVarints, nil} }
func fixed64(name string) field                  { return field{name, kindFixed64, nil} }
func fixed64s(name string) field                 { return field{name, kindFixeds, nil} }
func double(name string) field                   { return field{name, kindDouble, nil} }
func str(name string) field                      { return field{name, kindString, nil} }
func rawBytes(name string) field                 { return field{name, kindBytes, nil} }
func hexID(name string) field                    { return field{name, kindID, nil} }
func nested(name string, message *message) field { return field{name, kindMessage, message} }

// maxFields is larger than any field's number.
const maxFields = 24

// message lists a message's fields by number.
type message struct {
	fields [maxFields]field
	// numbers has the number of each field by its name, as in the .proto file and as in JSON.
	numbers map[string]protowire.Number
}

// field returns the field of a number, or nil if there is none or it has another wire type.
func (m *message) field(number protowire.Number, t protowire.Type) *field {
	if number <= 0 || int(number) >= len(m.fields) || m.fields[number].name == "" || !m.fields[number].kind.allows(t) {
		return nil
	}
	return &m.fields[number]
}

// each calls visit for each known field of a message. It reports whether the message was read to its end.
func (m *message) each(data []byte, visit func(known *field, r *wire.Reader)) bool {
	r := wire.New(data)
	for r.Next() {
		if known := m.field(r.Number, r.Wire); known != nil {
			visit(known, &r)
		}
	}
	return !r.IsMalformed()
}

type fields map[protowire.Number]field

func newMessage(fields fields) *message {
	m := &message{numbers: make(map[string]protowire.Number, 2*len(fields))}
	for number, f := range fields {
		m.fields[number] = f
		m.numbers[f.name] = number
		m.numbers[camelCase(f.name)] = number
	}
	return m
}

// schema is the messages of one layout.
type schema struct{ request, profile, sample, dictionary *message }

// The messages that no layout changed.
var (
	messageLink          = newMessage(fields{1: hexID("trace_id"), 2: hexID("span_id")})
	messageAttributeUnit = newMessage(fields{1: varint("attribute_key_strindex"), 2: varint("unit_strindex")})
	messageValueType     = newMessage(fields{
		1: varint("type_strindex"), 2: varint("unit_strindex"), 3: varint("aggregation_temporality"),
	})
	messageLine     = newMessage(fields{1: varint("function_index"), 2: varint("line"), 3: varint("column")})
	messageFunction = newMessage(fields{
		1: varint("name_strindex"), 2: varint("system_name_strindex"), 3: varint("filename_strindex"),
		4: varint("start_line"),
	})
)

var schemas = [NumLayouts]*schema{schema1x3(), schema1x4(), schema1x6(), schema1x7(), schema1x8(), schema1x9(),
	schema1x10()}

// newSchema returns a schema whose requests have further fields beside the resources and the dictionary.
func newSchema(profile, sample, dictionary *message, request fields) *schema {
	scopeProfiles := newMessage(fields{
		1: nested("scope", messageScope), 2: nested("profiles", profile), 3: str("schema_url"),
	})
	request[1] = nested("resource_profiles", newMessage(fields{
		1: nested("resource", messageResource), 2: nested("scope_profiles", scopeProfiles), 3: str("schema_url"),
	}))
	if dictionary != nil {
		request[2] = nested("dictionary", dictionary)
	}
	return &schema{request: newMessage(request), profile: profile, sample: sample, dictionary: dictionary}
}

func schema1x3() *schema {
	sample := newMessage(fields{
		1: varints("location_index"), 2: varints("value"),
		3: nested("label", newMessage(fields{
			1: varint("key"), 2: varint("str"), 3: varint("num"), 4: varint("num_unit"),
		})),
		7: varint("locations_start_index"), 8: varint("locations_length"), 9: varint("stacktrace_id_index"),
		10: varints("attributes"), 12: varint("link"), 13: varints("timestamps_unix_nano"),
	})
	valueType := newMessage(fields{
		1: varint("type"), 2: varint("unit"), 3: varint("aggregation_temporality"),
	})
	profile := newMessage(fields{
		1: nested("sample_type", valueType), 2: nested("sample", sample),
		3: nested("mapping", newMessage(fields{
			1: varint("id"), 2: varint("memory_start"), 3: varint("memory_limit"), 4: varint("file_offset"),
			5: varint("filename"), 6: varint("build_id"), 7: varint("has_functions"), 8: varint("has_filenames"),
			9: varint("has_line_numbers"), 10: varint("has_inline_frames"), 11: varint("build_id_kind"),
			12: varints("attributes"),
		})),
		4: nested("location", newMessage(fields{
			1: varint("id"), 2: varint("mapping_index"), 3: varint("address"), 4: nested("line", messageLine),
			5: varint("is_folded"), 6: varint("type_index"), 7: varints("attributes"),
		})),
		5: nested("function", newMessage(fields{
			1: varint("id"), 2: varint("name"), 3: varint("system_name"), 4: varint("filename"),
			5: varint("start_line"),
		})),
		6: str("string_table"), 7: varint("drop_frames"), 8: varint("keep_frames"), 9: varint("time_nanos"),
		10: varint("duration_nanos"), 11: nested("period_type", valueType), 12: varint("period"),
		13: varints("comment"), 14: varint("default_sample_type"), 15: varints("location_indices"),
		16: nested("attribute_table", messageKeyValue),
		17: nested("attribute_units", newMessage(fields{1: varint("attribute_key"), 2: varint("unit")})),
		18: nested("link_table", messageLink),
	})
	container := newMessage(fields{
		1: hexID("profile_id"), 2: fixed64("start_time_unix_nano"), 3: fixed64("end_time_unix_nano"),
		4: nested("attributes", messageKeyValue), 5: varint("dropped_attributes_count"),
		6: str("original_payload_format"), 7: rawBytes("original_payload"), 8: nested("profile", profile),
	})
	return newSchema(container, sample, nil, fields{})
}

// The messages of 1.4 to 1.7.
var (
	oldSample = newMessage(fields{
		1: varint("locations_start_index"), 2: varint("locations_length"), 3: varints("value"),
		4: varints("attribute_indices"), 5: varint("link_index"), 6: varints("timestamps_unix_nano"),
	})
	oldMapping = newMessage(fields{
		1: varint("memory_start"), 2: varint("memory_limit"), 3: varint("file_offset"),
		4: varint("filename_strindex"), 5: varints("attribute_indices"), 6: varint("has_functions"),
		7: varint("has_filenames"), 8: varint("has_line_numbers"), 9: varint("has_inline_frames"),
	})
	oldLocation = newMessage(fields{
		1: varint("mapping_index"), 2: varint("address"), 3: nested("line", messageLine), 4: varint("is_folded"),
		5: varints("attribute_indices"),
	})
)

func schema1x4() *schema {
	return newSchema(newMessage(fields{
		1: nested("sample_type", messageValueType), 2: nested("sample", oldSample),
		3: nested("mapping_table", oldMapping), 4: nested("location_table", oldLocation),
		5: varints("location_indices"), 6: nested("function_table", messageFunction),
		7: nested("attribute_table", messageKeyValue), 8: nested("attribute_units", messageAttributeUnit),
		9: nested("link_table", messageLink), 10: str("string_table"), 11: varint("time_nanos"),
		12: varint("duration_nanos"), 13: nested("period_type", messageValueType), 14: varint("period"),
		15: varints("comment_strindices"), 16: varint("default_sample_type_strindex"), 17: hexID("profile_id"),
		18: nested("attributes", messageKeyValue), 19: varint("dropped_attributes_count"),
		20: str("original_payload_format"), 21: rawBytes("original_payload"), 22: varints("attribute_indices"),
	}), oldSample, nil, fields{})
}

// sharedTablesProfile is Profile of 1.6 and 1.7.
var sharedTablesProfile = newMessage(fields{
	1: nested("sample_type", messageValueType), 2: nested("sample", oldSample), 3: varints("location_indices"),
	4: varint("time_nanos"), 5: varint("duration_nanos"), 6: nested("period_type", messageValueType),
	7: varint("period"), 8: varints("comment_strindices"), 9: varint("default_sample_type_index"),
	10: hexID("profile_id"), 11: varint("dropped_attributes_count"), 12: str("original_payload_format"),
	13: rawBytes("original_payload"), 14: varints("attribute_indices"),
})

// sharedTables are the tables of 1.6, in the request from field 2 on, and of 1.7, in the dictionary from field 1 on.
func sharedTables(first protowire.Number) fields {
	return fields{
		first: nested("mapping_table", oldMapping), first + 1: nested("location_table", oldLocation),
		first + 2: nested("function_table", messageFunction), first + 3: nested("link_table", messageLink),
		first + 4: str("string_table"), first + 5: nested("attribute_table", messageKeyValue),
		first + 6: nested("attribute_units", messageAttributeUnit),
	}
}

func schema1x6() *schema { return newSchema(sharedTablesProfile, oldSample, nil, sharedTables(2)) }

func schema1x7() *schema {
	return newSchema(sharedTablesProfile, oldSample, newMessage(sharedTables(1)), fields{})
}

// newDictionary is ProfilesDictionary since 1.8. Since 1.9 the lines of a location are called lines, but only JSON of
// 1.8 is read by these names.
var newDictionary = newMessage(fields{
	1: nested("mapping_table", newMessage(fields{
		1: varint("memory_start"), 2: varint("memory_limit"), 3: varint("file_offset"),
		4: varint("filename_strindex"), 5: varints("attribute_indices"),
	})),
	2: nested("location_table", newMessage(fields{
		1: varint("mapping_index"), 2: varint("address"), 3: nested("line", messageLine),
		4: varints("attribute_indices"),
	})),
	3: nested("function_table", messageFunction), 4: nested("link_table", messageLink), 5: str("string_table"),
	6: nested("attribute_table", newMessage(fields{
		1: varint("key_strindex"), 2: nested("value", messageAnyValue), 3: varint("unit_strindex"),
	})),
	7: nested("stack_table", newMessage(fields{1: varints("location_indices")})),
})

// stackSample is Sample of 1.8 and 1.9.
var stackSample = newMessage(fields{
	1: varint("stack_index"), 2: varints("values"), 3: varints("attribute_indices"), 4: varint("link_index"),
	5: fixed64s("timestamps_unix_nano"),
})

func schema1x8() *schema {
	return newSchema(newMessage(fields{
		1: nested("sample_type", messageValueType), 2: nested("sample", stackSample), 3: fixed64("time_unix_nano"),
		4: varint("duration_nano"), 5: nested("period_type", messageValueType), 6: varint("period"),
		7: varints("comment_strindices"), 8: hexID("profile_id"), 9: varint("dropped_attributes_count"),
		10: str("original_payload_format"), 11: rawBytes("original_payload"), 12: varints("attribute_indices"),
	}), stackSample, newDictionary, fields{})
}

// newProfile is Profile since 1.9.
func newProfile(sample *message) *message {
	valueType := newMessage(fields{1: varint("type_strindex"), 2: varint("unit_strindex")})
	return newMessage(fields{
		1: nested("sample_type", valueType), 2: nested("samples", sample), 3: fixed64("time_unix_nano"),
		4: varint("duration_nano"), 5: nested("period_type", valueType), 6: varint("period"), 7: hexID("profile_id"),
		8: varint("dropped_attributes_count"), 9: str("original_payload_format"), 10: rawBytes("original_payload"),
		11: varints("attribute_indices"),
	})
}

func schema1x9() *schema {
	return newSchema(newProfile(stackSample), stackSample, newDictionary, fields{})
}

func schema1x10() *schema {
	sample := newMessage(fields{
		1: varint("stack_index"), 2: varints("attribute_indices"), 3: varint("link_index"), 4: varints("values"),
		5: fixed64s("timestamps_unix_nano"),
	})
	return newSchema(newProfile(sample), sample, newDictionary, fields{})
}

// The messages of common.proto and resource.proto, the same in all layouts.
var (
	messageAnyValue = newAnyValue()
	messageKeyValue = messageAnyValue.fields[6].message.fields[1].message
	messageResource = newMessage(fields{
		1: nested("attributes", messageKeyValue), 2: varint("dropped_attributes_count"),
	})
	messageScope = newMessage(fields{
		1: str("name"), 2: str("version"), 3: nested("attributes", messageKeyValue),
		4: varint("dropped_attributes_count"),
	})
)

func newAnyValue() *message {
	value := &message{}
	keyValue := newMessage(fields{1: str("key"), 2: nested("value", value)})
	*value = *newMessage(fields{
		1: str("string_value"), 2: varint("bool_value"), 3: varint("int_value"), 4: double("double_value"),
		5: nested("array_value", newMessage(fields{1: nested("values", value)})),
		6: nested("kvlist_value", newMessage(fields{1: nested("values", keyValue)})),
		7: rawBytes("bytes_value"),
	})
	return value
}

// camelCase returns the name of a field in JSON.
func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}
