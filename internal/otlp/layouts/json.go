// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// UnmarshalJSON is Unmarshal for OTLP's JSON. The keys identify the layout. 1.9 and 1.10 differ only in field numbers,
// so they are the same here. Messages of older layouts are turned into bytes first.
func UnmarshalJSON(data []byte, meter *size.Meter) (pprofile.Profiles, Stats, error) {
	data = withoutBOM(data)
	layout, err := detectJSON(data)
	stats := Stats{Layout: layout}
	if err == nil {
		err = meter.Grow(len(data)) // for strictly
	}
	if err != nil {
		return pprofile.Profiles{}, stats, err
	}
	data = strictly(data)
	if layout == Current {
		memory, err := size.JSON(data)
		if err == nil {
			err = meter.Grow(memory)
		}
		if err != nil {
			return pprofile.Profiles{}, stats, err
		}
		profiles, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(data)
		return profiles, stats, err
	}
	if err := meter.Grow(len(data)); err != nil {
		return pprofile.Profiles{}, stats, err
	}
	t := transcoder{decoder: wire.NewJSON(data)}
	t.decoder.UseNumber()
	request, err := t.next(messages.Field{Kind: messages.Nested, Message: messages.Layouts[layout].Request}, 0)
	if err != nil {
		return pprofile.Profiles{}, stats, fmt.Errorf("JSON of layout %s, at byte %d: %w", layout, t.decoder.InputOffset(),
			err)
	}
	var profiles pprofile.Profiles
	if layout == V1_8 {
		profiles, err = unmarshalMoved(request, layout, &stats, meter)
	} else {
		profiles, err = readLegacy(request, layout, &stats, meter)
	}
	return profiles, stats, err
}

var (
	errTooNested = errors.New("messages are nested too deeply")
	errNotSingle = errors.New("a request must be one JSON value, and more follows after it: send each message in a request of its own")
)

// maxNesting bounds how deep messages are nested, because the transcoder recurses as deep.
const maxNesting = 200

// detectJSON returns the layout that the message's keys imply: each layout has keys that the newer ones do not have.
func detectJSON(data []byte) (Layout, error) {
	seen := jsonKeys{decoder: json.NewDecoder(bytes.NewReader(data))}
	seen.decoder.UseNumber()
	_, err := seen.readValue(0)
	if err == nil {
		if _, err = seen.decoder.Token(); !errors.Is(err, io.EOF) {
			return Current, errNotSingle
		}
	}
	if errors.Is(err, errTooNested) {
		return Current, err
	}
	if !errors.Is(err, io.EOF) { // a message that is cut off is refused when it is unmarshalled
		return Current, fmt.Errorf("not JSON: %w", err)
	}
	switch {
	case seen.container:
		return V1_3, nil
	case seen.dictionary && seen.sample && !seen.samples && seen.stacks:
		return V1_8, nil
	case seen.dictionary && seen.sample && !seen.samples:
		return V1_7, nil
	case seen.dictionary || seen.samples:
		return Current, nil
	case seen.topTables:
		return V1_6, nil
	case seen.tables || seen.sample:
		return V1_4, nil
	default:
		return Current, nil
	}
}

// jsonKeys records which of the keys that tell layouts apart a message has.
type jsonKeys struct {
	decoder *json.Decoder
	// container is the key profile with an object. topTables are tables in the outermost object.
	container, dictionary, tables, topTables, stacks, samples, sample bool
}

// readValue reads the next value, which is nested in depth others, and reports whether it is an object.
func (k *jsonKeys) readValue(depth int) (isObject bool, err error) {
	token, err := k.decoder.Token()
	isObject = token == json.Delim('{')
	if err != nil || !isObject && token != json.Delim('[') {
		return isObject, err
	}
	if depth == maxNesting {
		return isObject, errTooNested
	}
	for k.decoder.More() {
		var key json.Token
		if isObject {
			if key, err = k.decoder.Token(); err != nil {
				return isObject, err
			}
			k.record(key.(string), depth == 0)
		}
		hasObject, err := k.readValue(depth + 1)
		k.container = k.container || hasObject && key == "profile"
		if err != nil {
			return isObject, err
		}
	}
	_, err = k.decoder.Token() // the closing bracket
	return isObject, err
}

func (k *jsonKeys) record(key string, isTop bool) {
	switch key {
	case "dictionary":
		k.dictionary = k.dictionary || isTop
	case "stackTable", "stack_table", "stackIndex", "stack_index":
		k.stacks = true
	case "locationTable", "location_table", "stringTable", "string_table":
		k.tables = true
		k.topTables = k.topTables || isTop
	case "samples":
		k.samples = true
	case "sample":
		k.sample = true
	}
}

// transcoder turns JSON into the bytes of a message.
type transcoder struct{ decoder wire.JSON }

var errUnexpectedToken = errors.New("unexpected token")

// next reads the next value and returns its bytes as f's content: of a message its fields, of a scalar its wire form,
// of null nil.
func (t *transcoder) next(f messages.Field, depth int) ([]byte, error) {
	token, err := t.decoder.Token()
	if err != nil {
		return nil, err
	}
	return t.value(token, f, depth)
}

// value is next for a value whose first token was already read.
func (t *transcoder) value(token json.Token, f messages.Field, depth int) ([]byte, error) {
	switch {
	case token == nil:
		return nil, nil
	case f.Kind != messages.Nested:
		return scalar(f.Kind, token)
	case token != json.Delim('{'):
		return nil, fmt.Errorf("%w %v instead of an object", errUnexpectedToken, token)
	case depth == maxNesting:
		return nil, errTooNested
	}
	message := []byte{}
	for t.decoder.More() {
		key, err := t.decoder.Token()
		if err != nil {
			return nil, err
		}
		number, known := f.Message.Numbers[key.(string)]
		if !known {
			if err := t.decoder.Skip(); err != nil {
				return nil, err
			}
			continue
		}
		if message, err = t.field(message, number, f.Message.Fields[number], depth); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	_, err := t.decoder.Token() // '}'
	return message, err
}

// field appends a field of a message: of an array each element.
func (t *transcoder) field(message []byte, number protowire.Number, f messages.Field, depth int) ([]byte, error) {
	token, err := t.decoder.Token()
	if err != nil {
		return nil, err
	}
	if token != json.Delim('[') {
		content, err := t.value(token, f, depth+1)
		return appendField(message, number, f.Kind, content), err
	}
	for t.decoder.More() {
		content, err := t.next(f, depth+1)
		if err != nil {
			return nil, err
		}
		if content == nil && f.Kind == messages.Nested {
			content = []byte{} // a table's entry keeps its index
		}
		message = appendField(message, number, f.Kind, content)
	}
	_, err = t.decoder.Token() // ']'
	return message, err
}

// appendField appends a field to a message. Content that is nil (null in JSON) adds no field.
func appendField(message []byte, number protowire.Number, k messages.Kind, content []byte) []byte {
	if content == nil {
		return message
	}
	switch k {
	case messages.Varint, messages.Varints:
		return append(protowire.AppendTag(message, number, protowire.VarintType), content...)
	case messages.Fixed64, messages.Fixed64s, messages.Double:
		return append(protowire.AppendTag(message, number, protowire.Fixed64Type), content...)
	default:
		return appendBytesField(message, number, content)
	}
}

// scalar returns the wire form of a JSON value. 64-bit integers are strings in JSON, or numbers.
func scalar(k messages.Kind, token json.Token) ([]byte, error) {
	s, isString := token.(string)
	number, isNumber := token.(json.Number)
	flag, isFlag := token.(bool)
	switch k {
	case messages.String, messages.Strings:
		if isString {
			return []byte(s), nil
		}
	case messages.Bytes:
		if isString {
			return base64.StdEncoding.DecodeString(s)
		}
	case messages.ID:
		if isString {
			return hex.DecodeString(s)
		}
	case messages.Double:
		if isString {
			number, isNumber = json.Number(s), true
		}
		if isNumber {
			v, err := number.Float64()
			return protowire.AppendFixed64(nil, math.Float64bits(v)), err
		}
	default:
		var v uint64
		switch {
		case isFlag:
			v = protowire.EncodeBool(flag)
		case isString || isNumber:
			var err error
			if v, err = integer(s + string(number)); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%w %v instead of a number", errUnexpectedToken, token)
		}
		if k == messages.Fixed64 || k == messages.Fixed64s {
			return protowire.AppendFixed64(nil, v), nil
		}
		return protowire.AppendVarint(nil, v), nil
	}
	return nil, fmt.Errorf("%w %v", errUnexpectedToken, token)
}

// enums are the names that JSON may have in place of the numbers of enums.
var enums = map[string]uint64{
	"AGGREGATION_TEMPORALITY_UNSPECIFIED": 0, "AGGREGATION_TEMPORALITY_DELTA": temporalityDelta,
	"AGGREGATION_TEMPORALITY_CUMULATIVE": temporalityCumulative,
	"BUILD_ID_LINKER":                    0, "BUILD_ID_BINARY_HASH": buildIDBinaryHash,
}

func integer(s string) (uint64, error) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(v), nil
	}
	if v, known := enums[s]; known {
		return v, nil
	}
	return strconv.ParseUint(s, 10, 64)
}
