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
	"regexp"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// UnmarshalJSON is Unmarshal for OTLP's JSON, which becomes bytes first. The keys identify the layout; 1.9 and 1.10
// differ only in field numbers, so they are the same here. It reads what protobuf's mapping to JSON allows: either name
// of a field, null for any, base64 with either alphabet, padded or not, 1e7 for a whole number; and ids, which OTLP
// writes in hexadecimal, in both forms.
func UnmarshalJSON(data []byte, meter *size.Meter) (profiles pprofile.Profiles, stats Stats, err error) {
	stats.Layout = detectJSON(data)
	if err := meter.Grow(2 * len(data)); err != nil { // a message and what is appended to it
		return profiles, stats, err
	}
	t := transcoder{decoder: wire.NewJSON(data)}
	t.decoder.UseNumber()
	request, err := t.next(messages.Field{Kind: messages.Nested, Message: messages.Layouts[stats.Layout].Request}, 0)
	if err != nil {
		return profiles, stats, fmt.Errorf("not JSON of OTLP profiles, layout %s, at byte %d: %w", stats.Layout,
			t.decoder.InputOffset(), err)
	}
	if _, err := t.decoder.Token(); !errors.Is(err, io.EOF) {
		return profiles, stats, errNotSingle
	}
	// A message of another signal has keys, but none that is known here.
	if len(request) == 0 && bytes.ContainsRune(data, '"') && !profilesKey.Match(data) {
		return profiles, stats, errOtherSignal
	}
	switch stats.Layout {
	case Current:
		profiles, err = unmarshalCurrent(request, &stats, meter)
	case V1_8:
		profiles, err = unmarshalMoved(request, V1_8, &stats, meter)
	default:
		profiles, err = readLegacy(request, stats.Layout, &stats, meter)
	}
	return profiles, stats, err
}

var profilesKey = regexp.MustCompile(`"(resource_?[pP]rofiles|dictionary)"`)

var (
	errTooNested = errors.New("messages are nested too deeply")
	errNotSingle = errors.New("a request must be one JSON value, and more follows after it: send each message in a request of its own")
)

// maxNesting bounds how deep messages are nested, because the transcoder recurses as deep.
const maxNesting = 200

// detectJSON returns the layout that the message's keys imply: each layout has keys that the newer ones do not have.
// The transcoder sees whether the text is valid.
func detectJSON(data []byte) Layout {
	// container is the key profile with an object. topTables are tables in the outermost object.
	var container, dictionary, tables, topTables, stacks, samples, sample bool
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			start := i + 1
			i = endOfString(data, i)
			value := valueOf(data, i+1)
			if value < 0 {
				continue // not a key
			}
			switch string(data[start:i]) {
			case "profile":
				container = container || data[value] == '{'
			case "dictionary":
				dictionary = dictionary || depth == 1
			case "stackTable", "stack_table", "stackIndex", "stack_index":
				stacks = true
			case "locationTable", "location_table", "stringTable", "string_table":
				tables = true
				topTables = topTables || depth == 1
			case "samples":
				samples = true
			case "sample":
				sample = true
			}
		}
	}
	switch {
	case container:
		return V1_3
	case dictionary && sample && !samples && stacks:
		return V1_8
	case dictionary && sample && !samples:
		return V1_7
	case dictionary || samples:
		return Current
	case topTables:
		return V1_6
	case tables || sample:
		return V1_4
	default:
		return Current
	}
}

// endOfString returns the position of the quote that ends the string that begins at i, or one beyond data.
func endOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// valueOf returns the position of the value of a key that ends before i, or -1 if that was not a key.
func valueOf(data []byte, i int) int {
	isKey := false
	for ; i < len(data); i++ {
		switch data[i] {
		case ' ', '\t', '\r', '\n':
		case ':':
			isKey = true
		default:
			if isKey {
				return i
			}
			return -1
		}
	}
	return -1
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
	case messages.Varint, messages.Varints, messages.Strindex:
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
			return decodeBase64(s)
		}
	case messages.ID:
		switch len(s) {
		case hex.EncodedLen(len(pcommon.TraceID{})), hex.EncodedLen(len(pcommon.SpanID{})):
			return hex.DecodeString(s)
		}
		if isString {
			return decodeBase64(s)
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
	v, err := strconv.ParseUint(s, 10, 64)
	if err == nil {
		return v, nil
	}
	if f, floatErr := strconv.ParseFloat(s, 64); floatErr == nil && f == math.Trunc(f) && math.Abs(f) < math.MaxInt64 {
		return uint64(int64(f)), nil
	}
	return 0, err
}

// decodeBase64 reads base64 with either alphabet, padded or not.
func decodeBase64(s string) ([]byte, error) {
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(standard)
}
