// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// What protobuf's mapping to JSON allows and pdata's reader refuses: null for any field, and base64 with either
// alphabet, padded or not. OTLP has an exception for trace ids and span ids, which are hexadecimal; others write a
// profile's id so, too.

// withoutBOM removes the byte order mark that some editors write.
func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// unset takes the place of a field that is null: readers skip a key that they do not know.
const unset = `"_":0`

// strictly returns a valid JSON message as pdata reads it: the same one, or a copy.
func strictly(data []byte) []byte {
	var out []byte
	copied := 0 // how much of data is in out
	replace := func(start, end int, by string) {
		out = append(append(out, data[copied:start]...), by...)
		copied = end
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		start := i
		if i = endOfString(data, i); i >= len(data) {
			break
		}
		value := valueOf(data, i+1)
		if value < 0 {
			continue // not a key
		}
		key := string(data[start+1 : i])
		switch rest := data[value:]; {
		case bytes.HasPrefix(rest, []byte("null")):
			i = value + len("null") - 1
			replace(start, i+1, unset)
		case rest[0] == '"':
			end := endOfString(data, value)
			if end >= len(data) {
				break
			}
			i = end
			if text, changed := encoded(key, string(data[value+1:end])); changed {
				replace(value+1, end, text)
			}
		}
	}
	if out == nil {
		return data
	}
	return append(out, data[copied:]...)
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

// encoded returns the value of a field as pdata reads it, and whether that is another one.
func encoded(key, value string) (text string, changed bool) {
	switch key {
	case "profileId", "profile_id":
		const idBytes = 16
		if len(value) == hex.EncodedLen(idBytes) {
			return value, false
		}
		if id, err := decodeBase64(value); err == nil && len(id) == idBytes {
			return hex.EncodeToString(id), true
		}
	case "originalPayload", "original_payload", "bytesValue", "bytes_value":
		if _, err := base64.StdEncoding.DecodeString(value); err == nil {
			return value, false
		}
		if raw, err := decodeBase64(value); err == nil {
			return base64.StdEncoding.EncodeToString(raw), true
		}
	}
	return value, false
}

// decodeBase64 reads base64 with either alphabet, padded or not.
func decodeBase64(s string) ([]byte, error) {
	plain := []byte(s)
	for i, c := range plain {
		switch c {
		case '-':
			plain[i] = '+'
		case '_':
			plain[i] = '/'
		}
	}
	return base64.RawStdEncoding.DecodeString(string(bytes.TrimRight(plain, "=")))
}
