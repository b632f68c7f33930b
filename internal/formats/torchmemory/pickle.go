// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchmemory

import (
	"errors"
	"fmt"
	"math"
	"slices"
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

// at returns the value of a key, or nil.
func (o *object) at(key string) any {
	if o == nil || !o.isDict {
		return nil
	}
	for i := 0; i+1 < min(len(o.items), 2*maxKeys); i += 2 {
		if o.items[i] == key {
			return o.items[i+1]
		}
	}
	return nil
}

func (o *object) text(key string) string {
	s, _ := o.at(key).(string)
	return s
}

func (o *object) number(key string) int64 {
	n, _ := o.at(key).(int64)
	return n
}

// list returns the list of a key, or nil.
func (o *object) list(key string) *object { return listOf(o.at(key)) }

func listOf(value any) *object {
	if l, ok := value.(*object); ok && !l.isDict {
		return l
	}
	return nil
}

var (
	errPickle = errors.New("malformed pickle")
	// errObject is the error for a pickle that does more than to hold data.
	errObject = errors.New("the pickle is not of plain dictionaries, lists, texts and numbers")
)

// valueBytes is the memory of a value, and of the place where it is put: on the stack, in a list or in the memo.
const valueBytes = 96

type unpickler struct {
	data  []byte
	at    int
	stack []any
	marks []int
	memo  map[int64]any
	// values is how many values have been made or put somewhere.
	values int
	err    error // the first one, after which results are 0 or nil
}

// The instructions. Their names are Python's.
const (
	opMark, opStop, opPop, opPopMark       = '(', '.', '0', '1'
	opBinInt, opBinInt1, opBinInt2         = 'J', 'K', 'M'
	opNone, opBinUnicode, opBinFloat       = 'N', 'X', 'G'
	opAppend, opAppends, opDict, opList    = 'a', 'e', 'd', 'l'
	opSetItem, opSetItems, opTuple         = 's', 'u', 't'
	opEmptyDict, opEmptyList, opEmptyTuple = '}', ']', ')'
	opBinGet, opLongBinGet                 = 'h', 'j'
	opBinPut, opLongBinPut                 = 'q', 'r'
	opProto, opTuple1, opTuple2, opTuple3  = 0x80, 0x85, 0x86, 0x87
	opTrue, opFalse, opLong1, opLong4      = 0x88, 0x89, 0x8a, 0x8b
	opShortUnicode, opUnicode8             = 0x8c, 0x8d
	opMemoize, opFrame                     = 0x94, 0x95
)

// unpickle returns the value of a pickle. step is called for each instruction with the memory of all values so far.
func unpickle(data []byte, step func(memoryBytes int) error) (any, error) {
	u := unpickler{data: data, memo: map[int64]any{}}
	for u.err == nil {
		if err := step(u.values * valueBytes); err != nil {
			return nil, err
		}
		op := u.number(1)
		if op != opStop {
			u.values++
			u.run(op)
		} else if result := u.take(1); u.err == nil {
			return result[0], nil
		}
	}
	return nil, fmt.Errorf("%w (byte %d)", u.err, u.at)
}

// run runs one instruction.
func (u *unpickler) run(op int64) {
	switch op {
	case opProto:
		u.bytes(1)
	case opFrame:
		u.bytes(8)
	case opMark:
		u.marks = append(u.marks, len(u.stack))
	case opPop:
		u.take(1)
	case opPopMark:
		u.takeMarked()
	case opNone, opTrue, opFalse:
		u.push(nil)
	case opBinFloat:
		u.bytes(8)
		u.push(nil)
	case opBinInt1:
		u.push(u.number(1))
	case opBinInt2:
		u.push(u.number(2))
	case opBinInt:
		u.push(int64(int32(u.number(4))))
	case opLong1:
		u.push(long(u.bytes(u.number(1))))
	case opLong4:
		u.push(long(u.bytes(u.number(4))))
	case opShortUnicode:
		u.push(string(u.bytes(u.number(1))))
	case opBinUnicode:
		u.push(string(u.bytes(u.number(4))))
	case opUnicode8:
		u.push(string(u.bytes(u.number(8))))
	case opEmptyDict, opEmptyList, opEmptyTuple:
		u.collect(nil, op == opEmptyDict)
	case opTuple1, opTuple2, opTuple3:
		u.collect(u.take(int(op-opTuple1)+1), false)
	case opTuple, opList, opDict:
		u.collect(u.takeMarked(), op == opDict)
	case opAppend:
		u.extend(u.take(1))
	case opSetItem:
		u.extend(u.take(2))
	case opAppends, opSetItems:
		u.extend(u.takeMarked())
	case opMemoize:
		u.memo[int64(len(u.memo))] = u.top()
	case opBinPut:
		u.memo[u.number(1)] = u.top()
	case opLongBinPut:
		u.memo[u.number(4)] = u.top()
	case opBinGet:
		u.pushKnown(u.number(1))
	case opLongBinGet:
		u.pushKnown(u.number(4))
	default:
		u.fail(fmt.Errorf("%w: instruction %#x", errObject, op))
	}
}

func (u *unpickler) fail(err error) {
	if u.err == nil {
		u.err = err
	}
}

// long returns a whole number in two's complement. One beyond 64 bits is nil: nothing that is read has it.
func long(b []byte) any {
	if n := len(b); n > 9 || n == 9 && b[8] != 0 {
		return nil
	}
	v := little(b[:min(len(b), 8)])
	if n := len(b); n > 0 && n < 8 && b[n-1] >= 0x80 {
		v |= math.MaxUint64 << (8 * n)
	}
	return int64(v)
}

// little returns a number whose least significant byte is the first.
func little(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
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

func (u *unpickler) push(value any) { u.stack = append(u.stack, value) }

func (u *unpickler) pushKnown(key int64) {
	value, ok := u.memo[key]
	if !ok {
		u.fail(errPickle)
	}
	u.push(value)
}

// top returns the last value, which must be above the last mark.
func (u *unpickler) top() any {
	last := u.take(1)
	if last == nil {
		return nil
	}
	u.stack = u.stack[:len(u.stack)+1]
	return last[0]
}

// take takes the last n values off the stack, which must be above the last mark. They are valid until the next
// instruction.
func (u *unpickler) take(n int) []any {
	at, marks := len(u.stack)-n, len(u.marks)
	if at < 0 || marks > 0 && at < u.marks[marks-1] {
		u.fail(errPickle)
		return nil
	}
	items := u.stack[at:]
	u.stack = u.stack[:at]
	return items
}

// takeMarked takes the values above the last mark off the stack, and the mark. They are valid until the next
// instruction.
func (u *unpickler) takeMarked() []any {
	last := len(u.marks) - 1
	if last < 0 {
		u.fail(errPickle)
		return nil
	}
	at := u.marks[last]
	u.marks = u.marks[:last]
	return u.take(len(u.stack) - at)
}

// collect makes a list or a dictionary of values.
func (u *unpickler) collect(items []any, isDict bool) {
	u.values += len(items)
	u.push(&object{items: slices.Clone(items), isDict: isDict})
}

// extend adds items to the list or the dictionary on top of the stack.
func (u *unpickler) extend(items []any) {
	to, ok := u.top().(*object)
	if !ok || to.isDict && len(items)%2 != 0 {
		u.fail(errPickle)
		return
	}
	u.values += len(items)
	to.items = append(to.items, items...)
}
