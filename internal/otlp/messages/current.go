// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package messages

// The messages of today's profiles.
var (
	Link = newMessage(fields{1: hexID("trace_id"), 2: hexID("span_id")}).takes(48, 0)
	Line = newMessage(fields{1: varint("function_index"), 2: varint("line"), 3: varint("column")}).
		takes(48, 0)
	Function = newMessage(fields{
		1: varint("name_strindex"), 2: varint("system_name_strindex"), 3: varint("filename_strindex"),
		4: varint("start_line"),
	}).takes(48, 0)
	Mapping = newMessage(fields{
		1: varint("memory_start"), 2: varint("memory_limit"), 3: varint("file_offset"),
		4: varint("filename_strindex"), 5: varints("attribute_indices"),
	}).takes(96, perNumber)
	Location = newMessage(fields{
		1: varint("mapping_index"), 2: varint("address"), 3: nested("lines", Line), 4: varints("attribute_indices"),
	}).takes(96, 24)
	Stack     = newMessage(fields{1: varints("location_indices")}).takes(40, perNumber)
	Attribute = newMessage(fields{
		1: varint("key_strindex"), 2: nested("value", AnyValue), 3: varint("unit_strindex"),
	}).takes(48, unbounded)
	// Dictionary is ProfilesDictionary since 1.8.
	Dictionary = newMessage(fields{
		1: nested("mapping_table", Mapping), 2: nested("location_table", Location),
		3: nested("function_table", Function), 4: nested("link_table", Link), 5: strs("string_table"),
		6: nested("attribute_table", Attribute), 7: nested("stack_table", Stack),
	}).takes(0, unbounded)
	Sample = newMessage(fields{
		1: varint("stack_index"), 2: varints("attribute_indices"), 3: varint("link_index"), 4: varints("values"),
		5: fixed64s("timestamps_unix_nano"),
	}).takes(SampleBytes, perNumber)
	Profile = newProfile(Sample)

	// Profiles is ExportProfilesServiceRequest and ProfilesData.
	Profiles = newRequest("profiles", nested("profiles", Profile), fields{2: nested("dictionary", Dictionary)})
)

// The memory for each byte of a list of numbers, and of messages that may be empty.
const perNumber, unbounded = 8, -1

// newProfile is Profile since 1.9.
func newProfile(sample *Message) *Message {
	valueType := newMessage(fields{1: varint("type_strindex"), 2: varint("unit_strindex")}).takes(48, 0)
	return newMessage(fields{
		1: nested("sample_type", valueType), 2: nested("samples", sample), 3: fixed64("time_unix_nano"),
		4: varint("duration_nano"), 5: nested("period_type", valueType), 6: varint("period"), 7: hexID("profile_id"),
		8: varint("dropped_attributes_count"), 9: str("original_payload_format"), 10: rawBytes("original_payload"),
		11: varints("attribute_indices"),
	}).takes(320, unbounded)
}

// newRequest returns a request whose scopes have items, with further fields beside the resources.
func newRequest(signal string, item Field, others fields) *Message {
	others[1] = nested("resource_"+signal, newMessage(fields{
		1: nested("resource", Resource), 2: nested("scope_"+signal, newMessage(fields{
			1: nested("scope", Scope), 2: item, 3: str("schema_url"),
		}).takes(ScopeBytes, unbounded)), 3: str("schema_url"),
	}).takes(ResourceBytes, unbounded))
	return newMessage(others)
}

// The memory of a resource and a scope, with what is in them once, and of a sample.
const (
	ResourceBytes = 192
	ScopeBytes    = 160
	SampleBytes   = 128
)

// Logs is ExportLogsServiceRequest and LogsData.
var Logs = newRequest("logs", nested("log_records", newMessage(fields{
	5: nested("body", AnyValue), 6: nested("attributes", KeyValue),
}).takes(208, unbounded)), fields{})

// The messages of common.proto and resource.proto.
var (
	AnyValue = newAnyValue()
	KeyValue = AnyValue.Fields[6].Message.Fields[1].Message
	Resource = newMessage(fields{
		1: nested("attributes", KeyValue), 2: varint("dropped_attributes_count"),
		3: nested("entity_refs", newMessage(fields{
			1: str("schema_url"), 2: str("type"), 3: strs("id_keys"), 4: strs("description_keys"),
		}).takes(80, unbounded)),
	}).takes(64, unbounded)
	Scope = newMessage(fields{
		1: str("name"), 2: str("version"), 3: nested("attributes", KeyValue), 4: varint("dropped_attributes_count"),
	}).takes(64, unbounded)
)

func newAnyValue() *Message {
	value := new(Message).takes(40, unbounded)
	keyValue := newMessage(fields{
		1: str("key"), 2: nested("value", value), 3: {"key_strindex", Strindex, nil},
	}).takes(64, unbounded)
	return value.set(fields{
		1: str("string_value"), 2: varint("bool_value"), 3: varint("int_value"), 4: {"double_value", Double, nil},
		5: nested("array_value", newMessage(fields{1: nested("values", value)}).takes(24, unbounded)),
		6: nested("kvlist_value", newMessage(fields{1: nested("values", keyValue)}).takes(24, unbounded)),
		7: rawBytes("bytes_value"), 8: {"string_value_strindex", Strindex, nil},
	})
}
