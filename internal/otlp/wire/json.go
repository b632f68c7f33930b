// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// JSON reads a document piece by piece: a stranger's may have more than fits into memory.
type JSON struct {
	*json.Decoder
	// Check is nil, or called before each key and element. Its error ends the reading.
	Check func() error
	// NullIsEmpty means that null is an object or a list without elements, as serializers write what is not set.
	NullIsEmpty bool
}

// NewJSON returns a reader of a document, which may begin with a byte order mark, and in which null is empty.
func NewJSON(data []byte) JSON {
	return JSON{Decoder: json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff")))), NullIsEmpty: true}
}

// ErrNull is the error of Object and Array for a null.
var ErrNull = errors.New("found null")

// Object calls field for each key of the next value, which must be an object; field reads what the key has.
func (j JSON) Object(field func(key string) error) error {
	return j.each('{', "an object", func() error {
		key, err := j.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		return field(name)
	})
}

// Each reads an element of a list.
type Each func() error

// Fields reads the next value, which must be an object. Keys have what reads their value: the Fields of an object, Each
// for a list, a function, or what Read reads into. Other keys are skipped.
func (j JSON) Fields(fields map[string]any) error {
	return j.Object(func(key string) error {
		switch to := fields[key].(type) {
		case nil:
			return j.Skip()
		case map[string]any:
			return j.Fields(to)
		case Each:
			return j.Array(to)
		case func() error:
			return to()
		default:
			return j.Read(to)
		}
	})
}

// Array calls element for each element of the next value, which must be a list; element reads it.
func (j JSON) Array(element func() error) error { return j.each('[', "a list", element) }

func (j JSON) each(open json.Delim, name string, read func() error) error {
	switch token, err := j.Token(); {
	case err != nil:
		return err
	case token == nil && j.NullIsEmpty:
		return nil
	case token == nil:
		return fmt.Errorf("a value must be %s: %w", name, ErrNull)
	case token != open:
		return fmt.Errorf("a value must be %s, found %v", name, token)
	}
	for j.More() {
		if j.Check != nil {
			if err := j.Check(); err != nil {
				return err
			}
		}
		if err := read(); err != nil {
			return err
		}
	}
	_, err := j.Token() // the closing bracket
	return err
}

// Value reads the next value into to. It is false for a value of another type, of which to may have a part.
func (j JSON) Value(to any) (ok bool, err error) {
	err = j.Decode(to)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return false, nil
	}
	return err == nil, err
}

// Read reads the next value into to. It ignores a value of another type.
func (j JSON) Read(to any) error {
	_, err := j.Value(to)
	return err
}

// Skip reads the next value.
func (j JSON) Skip() error { return j.Decode(&skipped{}) }

// skipped is a value that is not kept.
type skipped struct{}

// UnmarshalJSON reads nothing.
func (*skipped) UnmarshalJSON([]byte) error { return nil }
