// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchtrace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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

// scanner cuts a JSON document, which need not fit into memory, into values and closing brackets. It looks only for
// where a value ends: most of an event is of no interest, and reading it properly costs most of the time. Besides,
// Kineto writes what is not JSON, such as inf for a number.
type scanner struct {
	*bufio.Scanner
	// opens is whether the next value is only its opening bracket.
	opens bool
	// used is how many bytes have been read, longest the most that were looked at at once.
	used, longest int
	err           error // after which values are nil
}

func newScanner(r io.Reader) *scanner {
	s := &scanner{Scanner: bufio.NewScanner(whole{r})}
	s.Buffer(make([]byte, firstBufferBytes), maxValueBytes)
	s.Split(s.cut)
	return s
}

func (s *scanner) cut(data []byte, _ bool) (advance int, value []byte, err error) {
	s.longest = max(s.longest, len(data))
	rest := skipSeparators(data)
	n := min(len(rest), 1)
	if !s.opens {
		n = valueLen(rest)
	}
	if n > 0 {
		value, advance = rest[:n], len(data)-len(rest)+n
	}
	s.used += advance
	return advance, value, nil
}

// whole is a reader that reads as much as there is room for: a value that does not fit is looked at again only when the
// buffer has doubled.
type whole struct{ io.Reader }

func (w whole) Read(p []byte) (int, error) { return io.ReadFull(w.Reader, p) }

// next returns the next value, as it is written. It is valid until the next one is read.
func (s *scanner) next() []byte {
	if s.err == nil && !s.Scan() {
		s.err = cmp.Or(s.Err(), io.ErrUnexpectedEOF)
	}
	if errors.Is(s.err, bufio.ErrTooLong) {
		s.err = fmt.Errorf("%w: a value of more than %d bytes", events.ErrTooLarge, maxValueBytes)
	}
	if s.err != nil {
		return nil
	}
	return s.Bytes()
}

// open reads the bracket that opens the next value, which must be one of these.
func (s *scanner) open(brackets string) string {
	s.opens = true
	bracket := string(s.next())
	s.opens = false
	if !strings.Contains(brackets, bracket) {
		s.err = fmt.Errorf("%w: found %q for one of %q", errSyntax, bracket, brackets)
	}
	return bracket
}

// isEnd reports whether there are no more values: next has returned a closing bracket, or nothing.
func isEnd(value []byte) bool { return value == nil || value[0] == ']' || value[0] == '}' }

func isSeparator(c byte) bool {
	return c == ',' || c == ' ' || c == ':' || c == '\n' || c == '\r' || c == '\t'
}

func skipSeparators(data []byte) []byte {
	for len(data) > 0 && isSeparator(data[0]) {
		data = data[1:]
	}
	return data
}

// valueLen returns the length of the value or the closing bracket at the beginning of data, or 0 if data ends before it
// does.
func valueLen(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			n := stringLen(data[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 && i > 0 {
				return i // the end of a number
			}
			depth--
		default:
			if depth > 0 || !isSeparator(c) {
				continue
			}
			return i
		}
		if depth <= 0 {
			return i + 1
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
		if slashes := len(data[:i]) - len(bytes.TrimRight(data[:i], `\`)); slashes%2 == 0 {
			return i + 1
		}
	}
}

// fields sets *into[key] to the value of each key of an object, as it is written. It is false for any other value.
func fields(object []byte, into map[string]*[]byte) bool {
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	for rest := object[1:]; ; {
		var pair [2][]byte
		for i := range pair {
			rest = skipSeparators(rest)
			n := valueLen(rest)
			pair[i], rest = rest[:n], rest[n:]
		}
		if len(pair[1]) == 0 {
			return true
		}
		if field := into[string(inside(pair[0]))]; field != nil {
			*field = pair[1]
		}
	}
}

// inside returns a value without quotes.
func inside(value []byte) []byte { return bytes.Trim(value, `"`) }

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
