// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package messages

import "google.golang.org/protobuf/encoding/protowire"

// Layout is the messages of one wire layout of profiles. Dictionary is nil before 1.7.
type Layout struct{ Request, Profile, Sample, Dictionary *Message }

// Layouts are all that were released, oldest first: of 1.3, 1.4, 1.6, 1.7, 1.8, 1.9 and 1.10.
var Layouts = [...]*Layout{
	schema1x3(), schema1x4(), schema1x6(), schema1x7(), schema1x8(), schema1x9(), {Profiles, Profile, Sample, Dictionary},
}

// newLayout returns a layout whose requests have further fields beside the resources and the dictionary.
func newLayout(profile, sample, dictionary *Message, request fields) *Layout {
	if dictionary != nil {
		request[2] = nested("dictionary", dictionary)
	}
	return &Layout{newRequest("profiles", nested("profiles", profile), request), profile, sample, dictionary}
}

// The messages that the layouts before 1.9 share.
var (
	attributeUnit = newMessage(fields{1: varint("attribute_key_strindex"), 2: varint("unit_strindex")})
	oldValueType  = newMessage(fields{
		1: varint("type_strindex"), 2: varint("unit_strindex"), 3: varint("aggregation_temporality"),
	})
)

func schema1x3() *Layout {
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
			1: varint("id"), 2: varint("mapping_index"), 3: varint("address"), 4: nested("line", Line),
			5: varint("is_folded"), 6: varint("type_index"), 7: varints("attributes"),
		})),
		5: nested("function", newMessage(fields{
			1: varint("id"), 2: varint("name"), 3: varint("system_name"), 4: varint("filename"),
			5: varint("start_line"),
		})),
		6: str("string_table"), 7: varint("drop_frames"), 8: varint("keep_frames"), 9: varint("time_nanos"),
		10: varint("duration_nanos"), 11: nested("period_type", valueType), 12: varint("period"),
		13: varints("comment"), 14: varint("default_sample_type"), 15: varints("location_indices"),
		16: nested("attribute_table", KeyValue),
		17: nested("attribute_units", newMessage(fields{1: varint("attribute_key"), 2: varint("unit")})),
		18: nested("link_table", Link),
	})
	container := newMessage(fields{
		1: hexID("profile_id"), 2: fixed64("start_time_unix_nano"), 3: fixed64("end_time_unix_nano"),
		4: nested("attributes", KeyValue), 5: varint("dropped_attributes_count"),
		6: str("original_payload_format"), 7: rawBytes("original_payload"), 8: nested("profile", profile),
	})
	return newLayout(container, sample, nil, fields{})
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
		1: varint("mapping_index"), 2: varint("address"), 3: nested("line", Line), 4: varint("is_folded"),
		5: varints("attribute_indices"),
	})
)

func schema1x4() *Layout {
	return newLayout(newMessage(fields{
		1: nested("sample_type", oldValueType), 2: nested("sample", oldSample),
		3: nested("mapping_table", oldMapping), 4: nested("location_table", oldLocation),
		5: varints("location_indices"), 6: nested("function_table", Function),
		7: nested("attribute_table", KeyValue), 8: nested("attribute_units", attributeUnit),
		9: nested("link_table", Link), 10: str("string_table"), 11: varint("time_nanos"),
		12: varint("duration_nanos"), 13: nested("period_type", oldValueType), 14: varint("period"),
		15: varints("comment_strindices"), 16: varint("default_sample_type_strindex"), 17: hexID("profile_id"),
		18: nested("attributes", KeyValue), 19: varint("dropped_attributes_count"),
		20: str("original_payload_format"), 21: rawBytes("original_payload"), 22: varints("attribute_indices"),
	}), oldSample, nil, fields{})
}

// sharedTablesProfile is Profile of 1.6 and 1.7.
var sharedTablesProfile = newMessage(fields{
	1: nested("sample_type", oldValueType), 2: nested("sample", oldSample), 3: varints("location_indices"),
	4: varint("time_nanos"), 5: varint("duration_nanos"), 6: nested("period_type", oldValueType),
	7: varint("period"), 8: varints("comment_strindices"), 9: varint("default_sample_type_index"),
	10: hexID("profile_id"), 11: varint("dropped_attributes_count"), 12: str("original_payload_format"),
	13: rawBytes("original_payload"), 14: varints("attribute_indices"),
})

// sharedTables are the tables of 1.6, in the request from field 2 on, and of 1.7, in the dictionary from field 1 on.
func sharedTables(first protowire.Number) fields {
	return fields{
		first: nested("mapping_table", oldMapping), first + 1: nested("location_table", oldLocation),
		first + 2: nested("function_table", Function), first + 3: nested("link_table", Link),
		first + 4: str("string_table"), first + 5: nested("attribute_table", KeyValue),
		first + 6: nested("attribute_units", attributeUnit),
	}
}

func schema1x6() *Layout { return newLayout(sharedTablesProfile, oldSample, nil, sharedTables(2)) }

func schema1x7() *Layout {
	return newLayout(sharedTablesProfile, oldSample, newMessage(sharedTables(1)), fields{})
}

// stackSample is Sample of 1.8 and 1.9.
var stackSample = newMessage(fields{
	1: varint("stack_index"), 2: varints("values"), 3: varints("attribute_indices"), 4: varint("link_index"),
	5: fixed64s("timestamps_unix_nano"),
})

func schema1x8() *Layout {
	Location.Numbers["line"] = Location.Numbers["lines"] // in JSON of 1.8
	return newLayout(newMessage(fields{
		1: nested("sample_type", oldValueType), 2: nested("sample", stackSample), 3: fixed64("time_unix_nano"),
		4: varint("duration_nano"), 5: nested("period_type", oldValueType), 6: varint("period"),
		7: varints("comment_strindices"), 8: hexID("profile_id"), 9: varint("dropped_attributes_count"),
		10: str("original_payload_format"), 11: rawBytes("original_payload"), 12: varints("attribute_indices"),
	}), stackSample, Dictionary, fields{})
}

func schema1x9() *Layout {
	return newLayout(newProfile(stackSample), stackSample, Dictionary, fields{})
}
