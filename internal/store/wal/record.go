// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"encoding/binary"
	"reflect"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Struct writes and reads the fields of a struct in their order, without those whose tag for Parquet is "-". They are
// integers, strings, arrays of bytes, and structs of these.
type Struct[T any] struct{ fields [][]int }

// StructOf returns that of a type.
func StructOf[T any]() Struct[T] { return Struct[T]{fieldsOf(reflect.TypeFor[T](), nil)} }

func fieldsOf(t reflect.Type, within []int) (fields [][]int) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(within[:len(within):len(within)], i)
		switch {
		case f.Tag.Get("parquet") == "-":
		case f.Type.Kind() == reflect.Struct:
			fields = append(fields, fieldsOf(f.Type, index)...)
		default:
			fields = append(fields, index)
		}
	}
	return fields
}

// Append appends the fields.
func (s Struct[T]) Append(b []byte, of *T) []byte {
	for _, index := range s.fields {
		switch v := reflect.ValueOf(of).Elem().FieldByIndex(index); v.Kind() {
		case reflect.String:
			b = dictionary.AppendString(b, v.String())
		case reflect.Array:
			b = append(b, v.Bytes()...)
		default:
			b = binary.AppendVarint(b, v.Int())
		}
	}
	return b
}

// Read reads the fields.
func (s Struct[T]) Read(r *dictionary.RecordReader) (of T) {
	for _, index := range s.fields {
		switch v := reflect.ValueOf(&of).Elem().FieldByIndex(index); v.Kind() {
		case reflect.String:
			v.SetString(string(r.Bytes(r.Count())))
		case reflect.Array:
			r.Fill(v.Bytes())
		default:
			v.SetInt(r.Varint())
		}
	}
	return of
}
