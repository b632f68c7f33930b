// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchmemory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A pickle is a program for a machine with a stack, which can import modules and call functions. This machine has only the instructions
// of protocols 2 to 5 that make data: int64, float64, bool, nil, string, *list and *dict, which the memo can share. Any other instruction is an error. The
// instructions and their arguments are those of Python's pickletools.

// list is a list or a tuple.
type list struct{ items []any }

// dict has keys and values in turn.
type dict struct{ items []any }

// maxKeys is how many entries of a dict are looked at: the allocator's have fewer than 20.
const maxKeys = 64

// at returns the value of a key, or nil.
func (d *dict) at(key string) any {
	if d == nil {
		return nil
	}
	for i := 0; i+1 < min(len(d.items), 2*maxKeys); i += 2 {
		if d.items[i] == key {
			return d.items[i+1]
		}
	}
	return nil
}

func (d *dict) text(key string) string {
	s, _ := d.at(key).(string)
	return s
}

func (d *dict) number(key string) int64 {
	n, _ := d.at(key).(int64)
	return n
}

func (d *dict) list(key string) []any {
	if l, ok := d.at(key).(*list); ok {
		return l.items
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
	step   func(memoryBytes int) error
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
	u := unpickler{data: data, memo: map[int64]any{}, step: step}
	for {
		if err := u.step(u.values * valueBytes); err != nil {
			return nil, err
		}
		op, err := u.bytes(1)
		if err != nil {
			return nil, err
		}
		if op[0] == opStop {
			items, err := u.take(1)
			if err != nil {
				return nil, err
			}
			return items[0], nil
		}
		if err := u.run(op[0]); err != nil {
			return nil, fmt.Errorf("%w (byte %d)", err, u.at)
		}
	}
}

// run runs one instruction: one that makes a value, or one that puts values together.
func (u *unpickler) run(op byte) error {
	u.values++
	value, isValue, err := u.scalar(op)
	switch {
	case err != nil:
		return err
	case isValue:
		u.stack = append(u.stack, value)
		return nil
	}
	switch op {
	case opProto:
		_, err = u.bytes(1)
	case opFrame:
		_, err = u.bytes(8)
	case opMark:
		u.marks = append(u.marks, len(u.stack))
	case opPop:
		_, err = u.take(1)
	case opPopMark:
		_, err = u.sinceMark()
	case opEmptyDict:
		u.stack = append(u.stack, &dict{})
	case opEmptyList, opEmptyTuple:
		u.stack = append(u.stack, &list{})
	case opTuple1, opTuple2, opTuple3:
		return u.collect(op)(u.take(int(op-opTuple1) + 1))
	case opTuple, opList, opDict:
		return u.collect(op)(u.sinceMark())
	case opAppend:
		return u.extend(u.take(1))
	case opSetItem:
		return u.extend(u.take(2))
	case opAppends, opSetItems:
		return u.extend(u.sinceMark())
	default:
		return u.remember(op)
	}
	return err
}

// scalar makes a value of one instruction, if that is one of them.
func (u *unpickler) scalar(op byte) (value any, ok bool, err error) {
	switch op {
	case opNone:
		return nil, true, nil
	case opTrue, opFalse:
		return op == opTrue, true, nil
	case opBinInt1, opBinInt2, opBinInt:
		n, err := u.number(map[byte]int{opBinInt1: 1, opBinInt2: 2, opBinInt: 4}[op])
		if op == opBinInt {
			n = int64(int32(n))
		}
		return n, true, err
	case opLong1, opLong4:
		value, err = u.long(op)
		return value, true, err
	case opBinFloat:
		b, err := u.bytes(8)
		if err != nil {
			return nil, true, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), true, nil
	case opShortUnicode, opBinUnicode, opUnicode8:
		n, err := u.number(map[byte]int{opShortUnicode: 1, opBinUnicode: 4, opUnicode8: 8}[op])
		if err != nil {
			return nil, true, err
		}
		b, err := u.bytes(n)
		return string(b), true, err
	}
	return nil, false, nil
}

// long reads a whole number in two's complement. One beyond 64 bits is nil: nothing that is read has it.
func (u *unpickler) long(op byte) (any, error) {
	size := 1
	if op == opLong4 {
		size = 4
	}
	n, err := u.number(size)
	if err != nil {
		return nil, err
	}
	b, err := u.bytes(n)
	if err != nil || n > 9 || n == 9 && b[8] != 0 {
		return nil, err
	}
	var v uint64
	for i := range min(n, 8) {
		v |= uint64(b[i]) << (8 * i)
	}
	if n > 0 && n < 8 && b[n-1] >= 0x80 {
		v |= math.MaxUint64 << (8 * n)
	}
	return int64(v), nil
}

// number reads a number of size bytes, the least significant first.
func (u *unpickler) number(size int) (n int64, err error) {
	b, err := u.bytes(int64(size))
	for i, c := range b {
		n |= int64(c) << (8 * i)
	}
	return n, err
}

func (u *unpickler) bytes(n int64) ([]byte, error) {
	if n < 0 || n > int64(len(u.data)-u.at) {
		return nil, fmt.Errorf("%w: it breaks off", errPickle)
	}
	u.at += int(n)
	return u.data[u.at-int(n) : u.at], nil
}

// take takes the last n values off the stack, which must be above the last mark. They are valid until the next instruction.
func (u *unpickler) take(n int) ([]any, error) {
	at := len(u.stack) - n
	if at < u.lastMark() {
		return nil, errPickle
	}
	items := u.stack[at:]
	u.stack = u.stack[:at]
	return items, nil
}

func (u *unpickler) lastMark() int {
	if n := len(u.marks); n > 0 {
		return u.marks[n-1]
	}
	return 0
}

// sinceMark takes what is above the last mark off the stack. It is valid until the next instruction.
func (u *unpickler) sinceMark() ([]any, error) {
	if len(u.marks) == 0 {
		return nil, errPickle
	}
	at := u.marks[len(u.marks)-1]
	u.marks = u.marks[:len(u.marks)-1]
	items := u.stack[at:]
	u.stack = u.stack[:at]
	return items, nil
}

// collect makes a tuple, a list or a dict of values.
func (u *unpickler) collect(op byte) func(items []any, err error) error {
	return func(items []any, err error) error {
		u.values += len(items)
		items = append([]any(nil), items...)
		if op == opDict {
			u.stack = append(u.stack, &dict{items})
		} else {
			u.stack = append(u.stack, &list{items})
		}
		return err
	}
}

// extend adds items to the list or the dict on top of the stack.
func (u *unpickler) extend(items []any, err error) error {
	switch {
	case err != nil:
		return err
	case len(u.stack) <= u.lastMark():
		return errPickle
	}
	u.values += len(items)
	switch to := u.stack[len(u.stack)-1].(type) {
	case *list:
		to.items = append(to.items, items...)
	case *dict:
		if len(items)%2 != 0 {
			return errPickle
		}
		to.items = append(to.items, items...)
	default:
		return errPickle
	}
	return nil
}

// remember runs the instructions of the memo.
func (u *unpickler) remember(op byte) (err error) {
	var key int64
	isGet := op == opBinGet || op == opLongBinGet
	switch op {
	case opMemoize:
		key = int64(len(u.memo))
	case opBinGet, opBinPut:
		key, err = u.number(1)
	case opLongBinGet, opLongBinPut:
		key, err = u.number(4)
	default:
		return fmt.Errorf("%w: instruction %#x", errObject, op)
	}
	if err != nil {
		return err
	}
	if isGet {
		value, ok := u.memo[key]
		if !ok {
			return errPickle
		}
		u.stack = append(u.stack, value)
		return nil
	}
	if len(u.stack) <= u.lastMark() {
		return errPickle
	}
	u.memo[key] = u.stack[len(u.stack)-1]
	return nil
}
