// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplayouts

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
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
	kindText                // string
	kindBytes               // bytes: base64 in JSON
	kindID                  // bytes that JSON writes in hexadecimal
	kindMessage             // a message, repeated or not
	kindVarints             // repeated integers, packed or not
	kindFixeds              // repeated fixed64, packed or not
)

// allows reports whether a field of this kind can have the wire type.
func (k kind) allows(wire protowire.Type) bool {
	switch k {
	case kindVarint:
		return wire == protowire.VarintType
	case kindFixed64, kindDouble:
		return wire == protowire.Fixed64Type
	case kindVarints:
		return wire == protowire.VarintType || wire == protowire.BytesType
	case kindFixeds:
		return wire == protowire.Fixed64Type || wire == protowire.BytesType
	default:
		return wire == protowire.BytesType
	}
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

// message lists a message's fields by number.
type message struct {
	fields [24]field
	// numbers has the number of each field by its name, as in the .proto file and as in JSON.
	numbers map[string]protowire.Number
}

func (m *message) field(number protowire.Number) (field, bool) {
	if number <= 0 || int(number) >= len(m.fields) || m.fields[number].name == "" {
		return field{}, false
	}
	return m.fields[number], true
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
type schema struct {
	request, resourceProfiles, scopeProfiles, profile, sample, dictionary *message
}

// The messages that no layout changed.
var (
	messageLink = newMessage(fields{
		1: {"trace_id", kindID, nil}, 2: {"span_id", kindID, nil},
	})
	messageAttributeUnit = newMessage(fields{
		1: {"attribute_key_strindex", kindVarint, nil}, 2: {"unit_strindex", kindVarint, nil},
	})
	messageValueType = newMessage(fields{
		1: {"type_strindex", kindVarint, nil}, 2: {"unit_strindex", kindVarint, nil},
		3: {"aggregation_temporality", kindVarint, nil},
	})
	messageLine = newMessage(fields{
		1: {"function_index", kindVarint, nil}, 2: {"line", kindVarint, nil}, 3: {"column", kindVarint, nil},
	})
	messageFunction = newMessage(fields{
		1: {"name_strindex", kindVarint, nil}, 2: {"system_name_strindex", kindVarint, nil},
		3: {"filename_strindex", kindVarint, nil}, 4: {"start_line", kindVarint, nil},
	})
)

var schemas = [NumLayouts]*schema{schema1x3(), schema1x4(), schema1x6(), schema1x7(), schema1x8(), schema1x9(), schema1x10()}

func newSchema(profile, sample, dictionary *message, request fields) *schema {
	s := &schema{profile: profile, sample: sample, dictionary: dictionary}
	s.scopeProfiles = newMessage(fields{
		1: {"scope", kindMessage, messageScope}, 2: {"profiles", kindMessage, profile}, 3: {"schema_url", kindText, nil},
	})
	s.resourceProfiles = newMessage(fields{
		1: {"resource", kindMessage, messageResource}, 2: {"scope_profiles", kindMessage, s.scopeProfiles},
		3: {"schema_url", kindText, nil},
	})
	request[1] = field{"resource_profiles", kindMessage, s.resourceProfiles}
	s.request = newMessage(request)
	return s
}

func schema1x3() *schema {
	sample := newMessage(fields{
		1: {"location_index", kindVarints, nil}, 2: {"value", kindVarints, nil},
		3: {"label", kindMessage, newMessage(fields{
			1: {"key", kindVarint, nil}, 2: {"str", kindVarint, nil}, 3: {"num", kindVarint, nil}, 4: {"num_unit", kindVarint, nil},
		})},
		7: {"locations_start_index", kindVarint, nil}, 8: {"locations_length", kindVarint, nil},
		9: {"stacktrace_id_index", kindVarint, nil}, 10: {"attributes", kindVarints, nil},
		12: {"link", kindVarint, nil}, 13: {"timestamps_unix_nano", kindVarints, nil},
	})
	valueType := newMessage(fields{
		1: {"type", kindVarint, nil}, 2: {"unit", kindVarint, nil}, 3: {"aggregation_temporality", kindVarint, nil},
	})
	profile := newMessage(fields{
		1: {"sample_type", kindMessage, valueType}, 2: {"sample", kindMessage, sample},
		3: {"mapping", kindMessage, newMessage(fields{
			1: {"id", kindVarint, nil}, 2: {"memory_start", kindVarint, nil}, 3: {"memory_limit", kindVarint, nil},
			4: {"file_offset", kindVarint, nil}, 5: {"filename", kindVarint, nil}, 6: {"build_id", kindVarint, nil},
			7: {"has_functions", kindVarint, nil}, 8: {"has_filenames", kindVarint, nil},
			9: {"has_line_numbers", kindVarint, nil}, 10: {"has_inline_frames", kindVarint, nil},
			11: {"build_id_kind", kindVarint, nil}, 12: {"attributes", kindVarints, nil},
		})},
		4: {"location", kindMessage, newMessage(fields{
			1: {"id", kindVarint, nil}, 2: {"mapping_index", kindVarint, nil}, 3: {"address", kindVarint, nil},
			4: {"line", kindMessage, messageLine}, 5: {"is_folded", kindVarint, nil}, 6: {"type_index", kindVarint, nil},
			7: {"attributes", kindVarints, nil},
		})},
		5: {"function", kindMessage, newMessage(fields{
			1: {"id", kindVarint, nil}, 2: {"name", kindVarint, nil}, 3: {"system_name", kindVarint, nil},
			4: {"filename", kindVarint, nil}, 5: {"start_line", kindVarint, nil},
		})},
		6: {"string_table", kindText, nil}, 7: {"drop_frames", kindVarint, nil}, 8: {"keep_frames", kindVarint, nil},
		9: {"time_nanos", kindVarint, nil}, 10: {"duration_nanos", kindVarint, nil},
		11: {"period_type", kindMessage, valueType}, 12: {"period", kindVarint, nil},
		13: {"comment", kindVarints, nil}, 14: {"default_sample_type", kindVarint, nil},
		15: {"location_indices", kindVarints, nil}, 16: {"attribute_table", kindMessage, messageKeyValue},
		17: {"attribute_units", kindMessage, newMessage(fields{
			1: {"attribute_key", kindVarint, nil}, 2: {"unit", kindVarint, nil},
		})},
		18: {"link_table", kindMessage, messageLink},
	})
	container := newMessage(fields{
		1: {"profile_id", kindID, nil}, 2: {"start_time_unix_nano", kindFixed64, nil}, 3: {"end_time_unix_nano", kindFixed64, nil},
		4: {"attributes", kindMessage, messageKeyValue}, 5: {"dropped_attributes_count", kindVarint, nil},
		6: {"original_payload_format", kindText, nil}, 7: {"original_payload", kindBytes, nil},
		8: {"profile", kindMessage, profile},
	})
	return newSchema(container, sample, nil, fields{})
}

// The messages of 1.4 to 1.7.
var (
	oldSample = newMessage(fields{
		1: {"locations_start_index", kindVarint, nil}, 2: {"locations_length", kindVarint, nil}, 3: {"value", kindVarints, nil},
		4: {"attribute_indices", kindVarints, nil}, 5: {"link_index", kindVarint, nil}, 6: {"timestamps_unix_nano", kindVarints, nil},
	})
	oldMapping = newMessage(fields{
		1: {"memory_start", kindVarint, nil}, 2: {"memory_limit", kindVarint, nil}, 3: {"file_offset", kindVarint, nil},
		4: {"filename_strindex", kindVarint, nil}, 5: {"attribute_indices", kindVarints, nil},
		6: {"has_functions", kindVarint, nil}, 7: {"has_filenames", kindVarint, nil},
		8: {"has_line_numbers", kindVarint, nil}, 9: {"has_inline_frames", kindVarint, nil},
	})
	oldLocation = newMessage(fields{
		1: {"mapping_index", kindVarint, nil}, 2: {"address", kindVarint, nil}, 3: {"line", kindMessage, messageLine},
		4: {"is_folded", kindVarint, nil}, 5: {"attribute_indices", kindVarints, nil},
	})
)

func schema1x4() *schema {
	return newSchema(newMessage(fields{
		1: {"sample_type", kindMessage, messageValueType}, 2: {"sample", kindMessage, oldSample},
		3: {"mapping_table", kindMessage, oldMapping}, 4: {"location_table", kindMessage, oldLocation},
		5: {"location_indices", kindVarints, nil}, 6: {"function_table", kindMessage, messageFunction},
		7: {"attribute_table", kindMessage, messageKeyValue}, 8: {"attribute_units", kindMessage, messageAttributeUnit},
		9: {"link_table", kindMessage, messageLink}, 10: {"string_table", kindText, nil},
		11: {"time_nanos", kindVarint, nil}, 12: {"duration_nanos", kindVarint, nil},
		13: {"period_type", kindMessage, messageValueType}, 14: {"period", kindVarint, nil},
		15: {"comment_strindices", kindVarints, nil}, 16: {"default_sample_type_strindex", kindVarint, nil},
		17: {"profile_id", kindID, nil}, 18: {"attributes", kindMessage, messageKeyValue},
		19: {"dropped_attributes_count", kindVarint, nil}, 20: {"original_payload_format", kindText, nil},
		21: {"original_payload", kindBytes, nil}, 22: {"attribute_indices", kindVarints, nil},
	}), oldSample, nil, fields{})
}

// sharedTablesProfile is Profile of 1.6 and 1.7.
var sharedTablesProfile = newMessage(fields{
	1: {"sample_type", kindMessage, messageValueType}, 2: {"sample", kindMessage, oldSample},
	3: {"location_indices", kindVarints, nil}, 4: {"time_nanos", kindVarint, nil}, 5: {"duration_nanos", kindVarint, nil},
	6: {"period_type", kindMessage, messageValueType}, 7: {"period", kindVarint, nil},
	8: {"comment_strindices", kindVarints, nil}, 9: {"default_sample_type_index", kindVarint, nil},
	10: {"profile_id", kindID, nil}, 11: {"dropped_attributes_count", kindVarint, nil},
	12: {"original_payload_format", kindText, nil}, 13: {"original_payload", kindBytes, nil},
	14: {"attribute_indices", kindVarints, nil},
})

func schema1x6() *schema {
	return newSchema(sharedTablesProfile, oldSample, nil, fields{
		2: {"mapping_table", kindMessage, oldMapping}, 3: {"location_table", kindMessage, oldLocation},
		4: {"function_table", kindMessage, messageFunction}, 5: {"link_table", kindMessage, messageLink},
		6: {"string_table", kindText, nil}, 7: {"attribute_table", kindMessage, messageKeyValue},
		8: {"attribute_units", kindMessage, messageAttributeUnit},
	})
}

func schema1x7() *schema {
	dictionary := newMessage(fields{
		1: {"mapping_table", kindMessage, oldMapping}, 2: {"location_table", kindMessage, oldLocation},
		3: {"function_table", kindMessage, messageFunction}, 4: {"link_table", kindMessage, messageLink},
		5: {"string_table", kindText, nil}, 6: {"attribute_table", kindMessage, messageKeyValue},
		7: {"attribute_units", kindMessage, messageAttributeUnit},
	})
	return newSchema(sharedTablesProfile, oldSample, dictionary, fields{2: {"dictionary", kindMessage, dictionary}})
}

// newDictionary is ProfilesDictionary since 1.8. lines is what a location's lines are called: only JSON writes it.
func newDictionary(lines string) *message {
	return newMessage(fields{
		1: {"mapping_table", kindMessage, newMessage(fields{
			1: {"memory_start", kindVarint, nil}, 2: {"memory_limit", kindVarint, nil}, 3: {"file_offset", kindVarint, nil},
			4: {"filename_strindex", kindVarint, nil}, 5: {"attribute_indices", kindVarints, nil},
		})},
		2: {"location_table", kindMessage, newMessage(fields{
			1: {"mapping_index", kindVarint, nil}, 2: {"address", kindVarint, nil}, 3: {lines, kindMessage, messageLine},
			4: {"attribute_indices", kindVarints, nil},
		})},
		3: {"function_table", kindMessage, messageFunction}, 4: {"link_table", kindMessage, messageLink},
		5: {"string_table", kindText, nil},
		6: {"attribute_table", kindMessage, newMessage(fields{
			1: {"key_strindex", kindVarint, nil}, 2: {"value", kindMessage, messageAnyValue}, 3: {"unit_strindex", kindVarint, nil},
		})},
		7: {"stack_table", kindMessage, newMessage(fields{1: {"location_indices", kindVarints, nil}})},
	})
}

// stackSample is Sample of 1.8 and 1.9.
var stackSample = newMessage(fields{
	1: {"stack_index", kindVarint, nil}, 2: {"values", kindVarints, nil}, 3: {"attribute_indices", kindVarints, nil},
	4: {"link_index", kindVarint, nil}, 5: {"timestamps_unix_nano", kindFixeds, nil},
})

func schema1x8() *schema {
	dictionary := newDictionary("line")
	return newSchema(newMessage(fields{
		1: {"sample_type", kindMessage, messageValueType}, 2: {"sample", kindMessage, stackSample},
		3: {"time_unix_nano", kindFixed64, nil}, 4: {"duration_nano", kindVarint, nil},
		5: {"period_type", kindMessage, messageValueType}, 6: {"period", kindVarint, nil},
		7: {"comment_strindices", kindVarints, nil}, 8: {"profile_id", kindID, nil},
		9: {"dropped_attributes_count", kindVarint, nil}, 10: {"original_payload_format", kindText, nil},
		11: {"original_payload", kindBytes, nil}, 12: {"attribute_indices", kindVarints, nil},
	}), stackSample, dictionary, fields{2: {"dictionary", kindMessage, dictionary}})
}

// newProfile is Profile since 1.9.
func newProfile(sample *message) *message {
	valueType := newMessage(fields{1: {"type_strindex", kindVarint, nil}, 2: {"unit_strindex", kindVarint, nil}})
	return newMessage(fields{
		1: {"sample_type", kindMessage, valueType}, 2: {"samples", kindMessage, sample},
		3: {"time_unix_nano", kindFixed64, nil}, 4: {"duration_nano", kindVarint, nil},
		5: {"period_type", kindMessage, valueType}, 6: {"period", kindVarint, nil},
		7: {"profile_id", kindID, nil}, 8: {"dropped_attributes_count", kindVarint, nil},
		9: {"original_payload_format", kindText, nil}, 10: {"original_payload", kindBytes, nil},
		11: {"attribute_indices", kindVarints, nil},
	})
}

func schema1x9() *schema {
	dictionary := newDictionary("lines")
	return newSchema(newProfile(stackSample), stackSample, dictionary, fields{2: {"dictionary", kindMessage, dictionary}})
}

func schema1x10() *schema {
	dictionary := newDictionary("lines")
	sample := newMessage(fields{
		1: {"stack_index", kindVarint, nil}, 2: {"attribute_indices", kindVarints, nil}, 3: {"link_index", kindVarint, nil},
		4: {"values", kindVarints, nil}, 5: {"timestamps_unix_nano", kindFixeds, nil},
	})
	return newSchema(newProfile(sample), sample, dictionary, fields{2: {"dictionary", kindMessage, dictionary}})
}

// The messages of common.proto and resource.proto, the same in all layouts.
var (
	messageAnyValue = newAnyValue()
	messageKeyValue = messageAnyValue.fields[6].message.fields[1].message
	messageResource = newMessage(fields{
		1: {"attributes", kindMessage, messageKeyValue}, 2: {"dropped_attributes_count", kindVarint, nil},
	})
	messageScope = newMessage(fields{
		1: {"name", kindText, nil}, 2: {"version", kindText, nil}, 3: {"attributes", kindMessage, messageKeyValue},
		4: {"dropped_attributes_count", kindVarint, nil},
	})
)

func newAnyValue() *message {
	value := &message{}
	keyValue := newMessage(fields{1: {"key", kindText, nil}, 2: {"value", kindMessage, value}})
	*value = *newMessage(fields{
		1: {"string_value", kindText, nil}, 2: {"bool_value", kindVarint, nil}, 3: {"int_value", kindVarint, nil},
		4: {"double_value", kindDouble, nil},
		5: {"array_value", kindMessage, newMessage(fields{1: {"values", kindMessage, value}})},
		6: {"kvlist_value", kindMessage, newMessage(fields{1: {"values", kindMessage, keyValue}})},
		7: {"bytes_value", kindBytes, nil},
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
