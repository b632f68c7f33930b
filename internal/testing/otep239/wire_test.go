// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otep239

import (
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Messages are structs whose fields have their number in a tag `p`, such as `p:"3"` or `p:"5,fixed"`. Numbers that are zero and
// texts that are empty are not written, as proto3 has it.

type fieldInfo struct {
	number protowire.Number
	fixed  bool
}

var infos = map[reflect.Type][]fieldInfo{}

func infosOf(t reflect.Type) []fieldInfo {
	if known, ok := infos[t]; ok {
		return known
	}
	list := make([]fieldInfo, t.NumField())
	for i := range list {
		number, kind, _ := strings.Cut(t.Field(i).Tag.Get("p"), ",")
		n, err := strconv.Atoi(number)
		if err != nil {
			panic(t.Name() + "." + t.Field(i).Name + " has no number")
		}
		list[i] = fieldInfo{protowire.Number(n), kind == "fixed"}
	}
	infos[t] = list
	return list
}

// marshal returns the bytes of a message, allocated at once, as generated code does it.
func marshal(message any) []byte {
	scratch = appendMessage(scratch[:0], reflect.ValueOf(message).Elem())
	out := make([]byte, len(scratch))
	copy(out, scratch)
	return out
}

// scratch is not part of what is measured.
var scratch = make([]byte, 0, 256<<20)

func appendMessage(b []byte, v reflect.Value) []byte {
	for i, info := range infosOf(v.Type()) {
		b = appendField(b, info, v.Field(i))
	}
	return b
}

func appendField(b []byte, info fieldInfo, f reflect.Value) []byte {
	switch f.Kind() {
	case reflect.Slice:
		return appendList(b, info, f)
	case reflect.Pointer:
		if f.IsNil() {
			return b
		}
		if f.Elem().Kind() != reflect.Struct {
			return appendField(b, info, f.Elem())
		}
		return appendNested(b, info.number, f.Elem())
	case reflect.Struct:
		return appendNested(b, info.number, f)
	case reflect.String:
		if f.Len() == 0 {
			return b
		}
		return protowire.AppendString(protowire.AppendTag(b, info.number, protowire.BytesType), f.String())
	}
	n := numberOf(f)
	switch {
	case n == 0:
		return b
	case info.fixed:
		return protowire.AppendFixed64(protowire.AppendTag(b, info.number, protowire.Fixed64Type), n)
	default:
		return protowire.AppendVarint(protowire.AppendTag(b, info.number, protowire.VarintType), n)
	}
}

func numberOf(f reflect.Value) uint64 {
	switch {
	case f.Kind() == reflect.Bool && f.Bool():
		return 1
	case f.Kind() == reflect.Bool:
		return 0
	case f.CanInt():
		return uint64(f.Int())
	default:
		return f.Uint()
	}
}

func appendList(b []byte, info fieldInfo, list reflect.Value) []byte {
	n := list.Len()
	switch list.Type().Elem().Kind() {
	case reflect.Uint8:
		if n == 0 {
			return b
		}
		return protowire.AppendBytes(protowire.AppendTag(b, info.number, protowire.BytesType), list.Bytes())
	case reflect.String:
		for i := range n { // empty ones too
			b = protowire.AppendString(protowire.AppendTag(b, info.number, protowire.BytesType), list.Index(i).String())
		}
		return b
	case reflect.Pointer:
		for i := range n {
			b = appendNested(b, info.number, list.Index(i).Elem())
		}
		return b
	case reflect.Struct:
		for i := range n {
			b = appendNested(b, info.number, list.Index(i))
		}
		return b
	}
	if n == 0 {
		return b
	}
	b = protowire.AppendTag(b, info.number, protowire.BytesType)
	start := len(b)
	for i := range n {
		if info.fixed {
			b = protowire.AppendFixed64(b, numberOf(list.Index(i)))
		} else {
			b = protowire.AppendVarint(b, numberOf(list.Index(i)))
		}
	}
	return insertLength(b, start)
}

func appendNested(b []byte, number protowire.Number, v reflect.Value) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	start := len(b)
	return insertLength(appendMessage(b, v), start)
}

// insertLength moves what follows start to make room for its length.
func insertLength(b []byte, start int) []byte {
	n := len(b) - start
	b = protowire.AppendVarint(b, uint64(n))
	size := len(b) - start - n
	var length [10]byte
	copy(length[:], b[start+n:])
	copy(b[start+size:], b[start:start+n])
	copy(b[start:], length[:size])
	return b
}

// unmarshal reads a message whose fields are all known.
func unmarshal(data []byte, v reflect.Value) {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		size := protowire.ConsumeFieldValue(number, wire, data[n:])
		if n < 0 || size < 0 {
			panic("not a message")
		}
		value := data[n : n+size]
		data = data[n+size:]
		for i, info := range infosOf(v.Type()) {
			if info.number == number {
				setField(v.Field(i), wire, value)
			}
		}
	}
}

func setField(f reflect.Value, wire protowire.Type, value []byte) {
	if wire == protowire.VarintType {
		n, _ := protowire.ConsumeVarint(value)
		switch {
		case f.Kind() == reflect.Slice:
			appendNumber(f, n)
		case f.Kind() == reflect.Bool:
			f.SetBool(n != 0)
		case f.CanInt():
			f.SetInt(int64(n))
		default:
			f.SetUint(n)
		}
		return
	}
	content, _ := protowire.ConsumeBytes(value)
	switch {
	case f.Kind() == reflect.String:
		f.SetString(string(content))
	case f.Kind() == reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
		unmarshal(content, f.Elem())
	case f.Type().Elem().Kind() == reflect.String:
		f.Set(reflect.Append(f, reflect.ValueOf(string(content))))
	case f.Type().Elem().Kind() == reflect.Pointer:
		item := reflect.New(f.Type().Elem().Elem())
		unmarshal(content, item.Elem())
		f.Set(reflect.Append(f, item))
	default:
		for len(content) > 0 {
			n, size := protowire.ConsumeVarint(content)
			appendNumber(f, n)
			content = content[size:]
		}
	}
}

func appendNumber(f reflect.Value, n uint64) {
	item := reflect.New(f.Type().Elem()).Elem()
	if item.CanInt() {
		item.SetInt(int64(n))
	} else {
		item.SetUint(n)
	}
	f.Set(reflect.Append(f, item))
}
