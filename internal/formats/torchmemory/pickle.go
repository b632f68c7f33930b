// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchmemory

import (
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// A pickle is a program for a machine with a stack, which can import modules and call functions. This machine has only
// the instructions of protocols 2 to 5 that make data: int64, string, *object, and nil for values that no snapshot
// needs. The memo can share them. Any other instruction is an error. The instructions and their arguments are those of
// Python's pickletools.

// object is a list or a tuple, or a dictionary: keys and values in turn.
type object struct {
	items  []any
	isDict bool
}

// maxKeys is how many entries of a dictionary are looked at: the allocator's have fewer than 20.
const maxKeys = 64

// get returns the value that a dictionary has for a key, or the zero value if it has none of this type.
func get[T any](o *object, key string) (value T) {
	if o == nil || !o.isDict {
		return value
	}
	for i := 0; i+1 < min(len(o.items), 2*maxKeys); i += 2 {
		if o.items[i] == key {
			value, _ = o.items[i+1].(T)
			break
		}
	}
	return value
}

var (
	errPickle = errors.New("malformed pickle")
	// errObject is the error for a pickle that does more than to hold data.
	errObject = errors.New("the pickle is not of plain dictionaries, lists, texts and numbers")
)

// toMark is how many values an instruction takes that takes those above the last mark.
const toMark = -1

// The memory of an object, of another value, and of a place in a list that may just have grown, to which the stack and
// the memo belong.
const objectBytes, valueBytes, placeBytes = 48, 32, 2 * 16

type unpickler struct {
	data  []byte
	at    int
	stack []any
	marks []int // what is on the stack below them
	memo  []any
	kept  int // the memory of all values
	b     *events.Builder
	err   error // the first one, after which results are 0 or nil
}

// argumentBytes is the length of the argument that an instruction has. It is a number: a value, the length of one, or
// that of an entry of the memo.
var argumentBytes = map[int64]int64{
	0x80: 1, 0x95: 8, 'G': 8, 'J': 4, 'K': 1, 'M': 2, 0x8a: 1, 0x8b: 4, 0x8c: 1, 'X': 4, 0x8d: 8, 'q': 1, 'r': 4,
	'h': 1, 'j': 4,
}

// unpickle returns the value of a pickle. The builder reserves the memory of all values.
func unpickle(b *events.Builder, data []byte) (any, error) {
	u := unpickler{data: data, b: b}
	for u.err == nil {
		if err := b.Check(u.kept + placeBytes*(cap(u.stack)+cap(u.marks)+cap(u.memo))); err != nil {
			return nil, err
		}
		op := u.number(1)
		if op != '.' {
			u.run(op, u.number(argumentBytes[op]))
		} else if result := u.take(1); u.err == nil {
			return result[0], b.Grow(u.kept)
		}
	}
	return nil, fmt.Errorf("%w (byte %d)", u.err, u.at)
}

// run runs one instruction.
func (u *unpickler) run(op, argument int64) {
	switch op {
	case 0x80, 0x95: // PROTO, FRAME
	case '(': // MARK
		u.marks = append(u.marks, len(u.stack))
	case 'N', 0x88, 0x89, 'G': // NONE, NEWTRUE, NEWFALSE, BINFLOAT
		u.push(nil)
	case 'K', 'M': // BININT1, BININT2
		u.pushNew(argument)
	case 'J': // BININT
		u.pushNew(int64(int32(argument)))
	case 0x8a, 0x8b: // LONG1, LONG4
		u.pushNew(long(u.bytes(argument)))
	case 0x8c, 'X', 0x8d: // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
		u.pushNew(u.text(argument))
		u.kept += int(argument)
	case '}', ']', ')': // EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE
		u.collect(nil, op == '}')
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		u.collect(u.take(int(op-0x85)+1), false)
	case 't': // TUPLE
		u.collect(u.take(toMark), false)
	case 'a': // APPEND
		u.extend(u.take(1))
	case 's': // SETITEM
		u.extend(u.take(2))
	case 'e', 'u': // APPENDS, SETITEMS
		u.extend(u.take(toMark))
	case 0x94: // MEMOIZE
		u.put(int64(len(u.memo)))
	case 'q', 'r': // BINPUT, LONG_BINPUT
		u.put(argument)
	case 'h', 'j': // BINGET, LONG_BINGET
		if argument >= int64(len(u.memo)) || u.memo[argument] == nil {
			u.fail(errPickle)
			return
		}
		u.push(u.memo[argument])
	default:
		u.fail(fmt.Errorf("%w: instruction %#x", errObject, op))
	}
}

func (u *unpickler) fail(err error) {
	if u.err == nil {
		u.err = err
	}
}

// little returns a number whose least significant byte is the first.
func little(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// long returns a whole number in two's complement. One beyond 64 bits is nil: nothing that is read has it.
func long(b []byte) any {
	if len(b) > 8 {
		return nil
	}
	unused := 64 - 8*len(b)
	return int64(little(b)<<unused) >> unused
}

// number reads a number of size bytes.
func (u *unpickler) number(size int64) int64 { return int64(little(u.bytes(size))) }

func (u *unpickler) bytes(n int64) []byte {
	if n < 0 || n > int64(len(u.data)-u.at) {
		u.fail(fmt.Errorf("%w: it breaks off", errPickle))
		return nil
	}
	u.at += int(n)
	return u.data[u.at-int(n) : u.at]
}

// maxTextBytes is the longest string: very many frames can have one name.
const maxTextBytes = 8 << 10

// text reads a string, and cuts and repairs it.
func (u *unpickler) text(n int64) string {
	s := string(u.bytes(n))
	if len(s) > maxTextBytes {
		u.b.Stats.Truncated++
		s = dictionary.CutUTF8(s, maxTextBytes)
	}
	return u.b.CleanString(s)
}

func (u *unpickler) push(value any) { u.stack = append(u.stack, value) }

// pushNew pushes a number or a string.
func (u *unpickler) pushNew(value any) {
	u.kept += valueBytes
	u.push(value)
}

// put keeps the last value in the memo. Pickles number its places from 0.
func (u *unpickler) put(place int64) {
	if place > int64(len(u.data)) {
		u.fail(errPickle)
		return
	}
	if more := int(place) + 1 - len(u.memo); more > 0 {
		u.memo = append(u.memo, make([]any, more)...)
	}
	u.memo[place] = u.top()
}

// top returns the last value, which must be above the last mark.
func (u *unpickler) top() any {
	last := u.take(1)
	if last == nil {
		return nil
	}
	u.push(last[0])
	return last[0]
}

// take takes the last n values off the stack, or those above the last mark and the mark. They are valid until the next
// instruction.
func (u *unpickler) take(n int) []any {
	bottom, marks := 0, len(u.marks)
	if marks > 0 {
		bottom = u.marks[marks-1]
	}
	if n == toMark && marks > 0 {
		n, u.marks = len(u.stack)-bottom, u.marks[:marks-1]
	}
	at := len(u.stack) - n
	if n < 0 || at < bottom {
		u.fail(errPickle)
		return nil
	}
	items := u.stack[at:]
	u.stack = u.stack[:at]
	return items
}

// collect makes a list or a dictionary of values.
func (u *unpickler) collect(items []any, isDict bool) {
	u.kept += objectBytes + placeBytes*len(items)
	u.push(&object{items: slices.Clone(items), isDict: isDict})
}

// extend adds items to the list or the dictionary on top of the stack.
func (u *unpickler) extend(items []any) {
	to, ok := u.top().(*object)
	if !ok || to.isDict && len(items)%2 != 0 {
		u.fail(errPickle)
		return
	}
	before := cap(to.items)
	to.items = append(to.items, items...)
	u.kept += placeBytes * (cap(to.items) - before)
}
