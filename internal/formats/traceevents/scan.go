// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package traceevents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

const (
	firstBufferBytes = 64 << 10
	// maxValueBytes is the longest event, and the longest field beside the events. Chrome up to 66 wrote a whole CPU
	// profile as one event.
	maxValueBytes = 64 << 20
)

// Errors for a document that is damaged, or more than one.
var (
	errSyntax = errors.New("malformed JSON")
	errBroken = errors.New("the trace breaks off: it was not written to its end")
	errMore   = errors.New("something follows the trace: send each trace by itself")
)

// scanner cuts a JSON document, which need not fit into memory, into tokens: brackets, keys and values. It looks only
// for where each ends: most of an event is of no interest, and reading it properly costs most of the time.
//
// Kineto writes what is not JSON: inf for a number, nothing for a value, and quotes within a name. If their number is
// even, what looks like brackets and commas between them is within one of the strings that they make. If it is odd, the
// event is lost, but not the next one (stringLen).
type scanner struct {
	*bufio.Scanner
	// opens is whether the next token is only an opening bracket. delimiter is what follows the last one: a colon if it
	// is a key.
	opens     bool
	delimiter byte
	// used is how many bytes have been read, longest the most that were looked at at once. grow reserves their memory.
	used, longest int
	grow          func(n int) error
}

func newScanner(r io.Reader, grow func(n int) error) *scanner {
	s := &scanner{Scanner: bufio.NewScanner(whole{r}), grow: grow}
	s.Buffer(make([]byte, firstBufferBytes), maxValueBytes)
	s.Split(s.split)
	return s
}

// bufferFactor is the memory of the buffer, which doubles, for each byte that is looked at.
const bufferFactor = 3

func (s *scanner) split(data []byte, atEOF bool) (n int, token []byte, err error) {
	if more := len(data) - s.longest; more > 0 {
		s.longest += more
		err = s.grow(bufferFactor * more)
	}
	if s.opens {
		token = bytes.TrimLeft(data, "\ufeff"+blanks)
		if len(token) > 0 {
			token, n = token[:1], len(data)-len(token)+1
		}
	} else {
		token, s.delimiter, n = cut(data)
		if n == 0 && atEOF && len(data) > 0 { // a list needs no bracket at its end, since a crash may have been it
			token, s.delimiter, n = cut(append(slices.Clip(data), ']'))
			n = min(n, len(data))
		}
	}
	if s.used += n; n > 0 && token == nil {
		token = data[:0] // a value that is nothing
	}
	return n, token, err
}

// whole is a reader that reads as much as there is room for: a token that does not fit is looked at again only when the
// buffer has doubled.
type whole struct{ io.Reader }

func (w whole) Read(p []byte) (int, error) { return io.ReadFull(w.Reader, p) }

// end returns why there are no more tokens: nil at the end of the document, errBroken within it.
func (s *scanner) end(isWhole bool) error {
	switch err := s.Err(); {
	case err != nil && err != io.ErrUnexpectedEOF: //nolint:errorlint // that of whole; damaged compression wraps one
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("%w: a value of more than %d bytes", events.ErrTooLarge, maxValueBytes)
		}
		return err
	case isWhole:
		return nil
	default:
		return errBroken
	}
}

const blanks = " \t\r\n"

func isEnd(token []byte) bool { return len(token) == 1 && (token[0] == ']' || token[0] == '}') }

// cut cuts off the first token: a closing bracket, or all before a colon, a comma or a closing bracket, which may be
// nothing. n is its length with the delimiter, or 0 if data ends before.
func cut(data []byte) (token []byte, delimiter byte, n int) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			length, isString := stringLen(data[i:])
			switch {
			case length == 0:
				return nil, 0, 0
			case !isString:
				return data[:i+length], 0, i + length
			}
			i += length - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth >= 0 {
				continue
			}
			if token = bytes.TrimSpace(data[:i]); len(token) > 0 {
				return token, 0, i
			}
			return data[i : i+1], 0, i + 1
		case ',', ':':
			if depth == 0 {
				return bytes.TrimSpace(data[:i]), c, i + 1
			}
		}
	}
	return nil, 0, 0
}

// nextEvent is how Kineto begins an event. It writes no lines within a string.
var nextEvent = []byte("\n  {")

// stringLen returns the length of a string with its quotes, or 0 if data ends before it. If another event begins in it,
// it is no string, and the length is that of what is before.
func stringLen(data []byte) (n int, isString bool) {
	for i := 1; ; i++ {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return 0, false
		}
		i += quote
		if slashes := len(data[:i]) - len(bytes.TrimRight(data[:i], `\`)); slashes%2 != 0 {
			continue
		}
		if data[i-1] == ' ' { // before the first key of an event
			if at := bytes.Index(data[:i], nextEvent); at > 0 {
				return at, false
			}
		}
		return i + 1, true
	}
}

// fields sets *into[key] to the value of each key of an object, as it is written. It is false for any other value.
func fields(object []byte, into map[string]*[]byte) bool {
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	var field *[]byte
	for rest := object[1:]; ; {
		token, delimiter, n := cut(rest)
		switch {
		case n == 0 || isEnd(token):
			return true
		case delimiter == ':':
			field = into[string(inside(token))]
		case field != nil:
			*field, field = token, nil
		}
		rest = rest[n:]
	}
}

// inside returns a value without its quotes.
func inside(value []byte) []byte {
	if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
		return value[1 : n-1]
	}
	return value
}

// text returns what a string says, and other values as they are written.
func text(value []byte) string {
	var s string
	if bytes.IndexByte(value, '\\') < 0 || json.Unmarshal(value, &s) != nil {
		return string(inside(value))
	}
	return s
}

// none is a number that an event does not have.
const none = math.MinInt64

// integer returns the first value that is a whole number, which may be written as a string, or none.
func integer(values ...[]byte) int64 {
	for _, value := range values {
		if n, err := strconv.ParseInt(string(inside(value)), 0, 64); err == nil {
			return n
		}
	}
	return none
}

// maxNanos is the last time: the year 2116, and far enough from an overflow for two of them to be added.
const maxNanos = 1 << 62

// nanoseconds returns a number of microseconds, of which PyTorch writes the nanoseconds after the point.
func nanoseconds(value []byte) (int64, bool) {
	whole, fraction, ok := events.ParseDecimal(value)
	if ok && min(whole, fraction) >= 0 && whole < maxNanos/1000 {
		return whole*1000 + (fraction+5e5)/1e6, true
	}
	f, err := strconv.ParseFloat(string(value), 64) // with an exponent
	return int64(f * 1000), err == nil && f >= 0 && f < maxNanos/1000
}
