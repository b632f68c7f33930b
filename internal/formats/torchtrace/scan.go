// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchtrace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

const (
	firstBufferBytes = 64 << 10
	// maxValueBytes is the longest event, and the longest field beside the events.
	maxValueBytes = 4 << 20
)

var errSyntax = errors.New("malformed JSON")

// scanner cuts a JSON document, which need not fit into memory, into values. It looks only for where a value ends: most
// of an event is of no interest, and reading it properly costs most of the time.
type scanner struct {
	from io.Reader
	buf  []byte
	at   int   // the next byte
	read int64 // how many bytes came from the reader
	err  error // that of the reader
}

// fill reads more, after the bytes that are not used yet. It returns false at the end.
func (s *scanner) fill() bool {
	if s.err != nil {
		return false
	}
	s.buf = s.buf[:copy(s.buf, s.buf[s.at:])]
	s.at = 0
	if len(s.buf) == cap(s.buf) {
		grown := make([]byte, len(s.buf), max(firstBufferBytes, 2*cap(s.buf)))
		copy(grown, s.buf)
		s.buf = grown
	}
	n, err := io.ReadAtLeast(s.from, s.buf[len(s.buf):cap(s.buf)], 1)
	s.buf, s.read, s.err = s.buf[:len(s.buf)+n], s.read+int64(n), err
	return n > 0
}

// next returns the next byte that is not a blank, without using it.
func (s *scanner) next() (byte, error) {
	for {
		for ; s.at < len(s.buf); s.at++ {
			if c := s.buf[s.at]; !isBlank(c) {
				return c, nil
			}
		}
		if !s.fill() {
			if errors.Is(s.err, io.EOF) {
				return 0, io.ErrUnexpectedEOF
			}
			return 0, s.err
		}
	}
}

// value returns the next value as it is written. It is valid until the next call.
func (s *scanner) value() ([]byte, error) {
	if _, err := s.next(); err != nil {
		return nil, err
	}
	for {
		n, isWhole := valueLen(s.buf[s.at:])
		switch {
		case isWhole || n > 0 && errors.Is(s.err, io.EOF):
			value := s.buf[s.at : s.at+n]
			s.at += n
			return value, nil
		case len(s.buf)-s.at > maxValueBytes:
			return nil, fmt.Errorf("%w: a value of more than %d bytes", events.ErrTooLarge, maxValueBytes)
		case !s.fill():
			if !errors.Is(s.err, io.EOF) {
				return nil, s.err
			}
			return nil, io.ErrUnexpectedEOF
		}
	}
}

// list calls element in front of each element of a list, or of each key of an object; element uses it up.
func (s *scanner) list(open, shut byte, element func() error) error {
	switch c, err := s.next(); {
	case err != nil:
		return err
	case c != open:
		return fmt.Errorf("%w: found %q for %q", errSyntax, c, open)
	}
	for s.at++; ; {
		c, err := s.next()
		switch {
		case err != nil:
			return err
		case c == shut:
			s.at++
			return nil
		case c == ',':
			s.at++
		default:
			if err := element(); err != nil {
				return err
			}
		}
	}
}

// object calls field for each key of an object; field uses up its value.
func (s *scanner) object(field func(key string) error) error {
	return s.list('{', '}', func() error {
		value, err := s.value()
		if err != nil {
			return err
		}
		key := text(value)
		switch c, err := s.next(); {
		case err != nil:
			return err
		case c != ':':
			return fmt.Errorf("%w: no value for the key %q", errSyntax, key)
		}
		s.at++
		return field(key)
	})
}

// valueLen returns the length of the value at the beginning of data. If data ends before it does, isWhole is false, and
// n is 0 unless the value can end there.
func valueLen(data []byte) (n int, isWhole bool) {
	switch data[0] {
	case '"':
		n = stringLen(data)
		return n, n > 0
	case '{', '[':
		n = nestedLen(data)
		return n, n > 0
	}
	for i, c := range data {
		if c == ',' || c == '}' || c == ']' || c == ':' || isBlank(c) {
			return max(i, 1), true
		}
	}
	return len(data), false
}

// nestedLen returns the length of a list or an object, or 0 if data ends before it.
func nestedLen(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			n := stringLen(data[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		}
	}
	return 0
}

// stringLen returns the length of a string with its quotes, or 0 if data ends before it.
func stringLen(data []byte) int {
	for i := 1; ; i++ {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return 0
		}
		i += quote
		slashes := i
		for data[slashes-1] == '\\' {
			slashes--
		}
		if (i-slashes)%2 == 0 {
			return i + 1
		}
	}
}

// fields sets into[keys[k]] to the value of each key k of an object, as it is written. It returns false for anything
// else.
func fields(object []byte, keys map[string]int, into [][]byte) bool {
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	for i := 1; i < len(object)-1; {
		if c := object[i]; c == ',' || isBlank(c) {
			i++
			continue
		}
		if object[i] != '"' {
			return false
		}
		n := stringLen(object[i:])
		if n == 0 {
			return false
		}
		key := object[i+1 : i+n-1]
		for i += n; i < len(object) && (object[i] == ':' || isBlank(object[i])); i++ {
		}
		if i == len(object) {
			return false
		}
		if n, _ = valueLen(object[i:]); n == 0 {
			return false
		}
		if k, ok := keys[string(key)]; ok {
			into[k] = object[i : i+n]
		}
		i += n
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// text returns what a string says, and other values as they are written.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return string(value)
	}
	inside := value[1 : len(value)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside)
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return string(inside)
	}
	return s
}

// nanoseconds returns a number of microseconds, exactly: PyTorch writes the nanoseconds after the point, and a float
// has no room for them.
func nanoseconds(value []byte) (int64, bool) {
	whole, fraction, _ := strings.Cut(string(value), ".")
	fraction += "0000"
	nanos, err := strconv.ParseInt(whole+fraction[:3], 10, 64)
	if fraction[3] >= '5' {
		nanos++
	}
	if err == nil && whole != "" && nanos >= 0 && nanos < maxNanos && !bytes.ContainsAny(value, "eE") {
		return nanos, true
	}
	f, err := strconv.ParseFloat(string(value), 64) // with an exponent
	return int64(f * 1000), err == nil && f >= 0 && f < maxNanos/1000
}

// maxNanos is the last time: the year 2116, and far enough from an overflow for two of them to be added.
const maxNanos = 1 << 62
