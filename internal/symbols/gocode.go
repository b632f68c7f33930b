// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxCodeBytes bounds the code of one function that GoFunctions returns: functions of the runtime have a few thousand
// bytes.
const maxCodeBytes = 64 << 10

const (
	// maxWantedName is the longest name that GoFunctions looks for, with the zero bytes around it.
	maxWantedName = 64
	// nearFunctions is how much is read at once where the functions of the table are.
	nearFunctions = int64(16 << 10)
)

// GoFunction is the code of a function of a Go program.
type GoFunction struct {
	Address uint64
	Code    []byte
}

// GoVersion returns the version of the Go compiler in the build information, such as go1.26.1. Programs of Go before
// 1.18 have it in another form, and none is returned.
func (m *Image) GoVersion() string {
	const header, isInline, maxVersion = 32, 2, 256
	s := m.section(".go.buildinfo")
	if s == nil {
		return ""
	}
	e := m.extentOf(s)
	b, err := e.bytes(0, min(e.size, header+binary.MaxVarintLen64+maxVersion))
	if err != nil || len(b) < header || string(b[:14]) != "\xff Go buildinf:" || b[15]&isInline == 0 {
		return ""
	}
	length, n := binary.Uvarint(b[header:])
	if n <= 0 || length > maxVersion || length > uint64(len(b)-header-n) {
		return ""
	}
	return string(b[header+n:][:length])
}

// Architecture returns the machine that the program is for.
func (m *Image) Architecture() elf.Machine { return m.arch }

// InitialData fills b with the file's bytes at a virtual address of writable memory; bytes that it does not have
// begins as zeros. It returns false unless all of b is in such memory.
func (m *Image) InitialData(addr uint64, b []byte) bool {
	for _, s := range m.segments {
		if s.flags&elf.PF_W == 0 || addr < s.addr || s.memorySz < uint64(len(b)) || addr-s.addr > s.memorySz-uint64(len(b)) {
			continue
		}
		clear(b)
		off := addr - s.addr
		if off >= s.fileSize || s.off > uint64(m.file.size) {
			return true
		}
		n := min(uint64(len(b)), s.fileSize-off)
		e := extent{r: m.file.r, off: int64(s.off), size: int64(min(s.fileSize, uint64(m.file.size)-s.off))}
		return e.read(b[:n], int64(off)) == nil
	}
	return false
}

// GoFunctions returns the functions of those names that the program has. It reads the whole table of functions, which
// takes milliseconds.
func (m *Image) GoFunctions(names ...string) (found map[string]GoFunction, err error) {
	defer recovered(&err)
	m.work = meter{left: m.limits.Work}
	m.readTables()
	t := m.tables.goTable
	if t == nil {
		return nil, m.tables.errs[0]
	}
	offsets, err := m.goNameOffsets(t, names)
	if err != nil || len(offsets) == 0 {
		return nil, err
	}
	found = map[string]GoFunction{}
	err = m.eachGoFunction(t, func(i int64, name uint32) bool {
		if wanted, ok := offsets[name]; ok {
			if f, ok := m.goCode(t.entry(i), t.entry(i+1)); ok {
				found[wanted] = f
			}
		}
		return len(found) < len(offsets)
	})
	return found, err
}

// goCode returns the code between two addresses.
func (m *Image) goCode(start, end uint64) (GoFunction, bool) {
	if end <= start || end-start > maxCodeBytes || !m.isText(start) {
		return GoFunction{}, false
	}
	code, err := m.extentAt(start).bytes(0, int64(end-start))
	return GoFunction{Address: start, Code: code}, err == nil
}

// goNameOffsets finds names in the table of names, where each ends with a zero byte and follows one.
func (m *Image) goNameOffsets(t *goTable, names []string) (map[uint32]string, error) {
	const partBytes = 256 << 10
	table := extent{r: t.table.r, off: t.table.off + t.nameTable, size: max(0, t.nameTableEnd()-t.nameTable)}
	offsets := map[uint32]string{}
	buffer := make([]byte, min(table.size, partBytes+maxWantedName))
	for at := int64(0); at < table.size && len(offsets) < len(names); at += partBytes {
		part := buffer[:min(int64(len(buffer)), table.size-at)] // parts overlap, since a name can cross the border
		if !m.work.spend(int64(len(part))) {
			return nil, ErrTooMuchWork
		}
		if err := table.read(part, at); err != nil {
			return nil, err
		}
		for _, name := range names {
			if i := bytes.Index(part, []byte("\x00"+name+"\x00")); i >= 0 {
				offsets[uint32(at+int64(i)+1)] = name
			}
		}
	}
	return offsets, nil
}

// nameTableEnd returns where the next table begins.
func (t *goTable) nameTableEnd() int64 {
	end := t.table.size
	for _, next := range []int64{t.unitTable, t.fileTable, t.pcTable, t.functionTable} {
		if next > t.nameTable {
			end = min(end, next)
		}
	}
	return end
}

// eachGoFunction calls visit with the number and the name's offset of each function until it returns false.
func (m *Image) eachGoFunction(t *goTable, visit func(i int64, name uint32) bool) error {
	if t.version < go118 {
		return fmt.Errorf("pclntab before Go 1.18: %w", ErrMalformed)
	}
	const entrySize, nameField = 8, 4
	// The functions follow each other in the order of the table.
	var near []byte
	nearAt := int64(0)
	entries := extent{r: t.table.r, off: t.table.off + t.functionTable, size: t.functions * entrySize}
	var failed error
	err := m.eachBlock(entries, 0, entrySize, func(off int64, block []byte) bool {
		for i := 0; i < len(block); i += entrySize {
			at := t.functionTable + int64(t.order.Uint32(block[i+4:])) + nameField
			if at < nearAt || at+4 > nearAt+int64(len(near)) {
				n := min(nearFunctions, t.table.size-at)
				if n < 4 || !m.work.spend(n) {
					failed = ErrTooMuchWork
					return false
				}
				if near, failed = t.table.bytes(at, n); failed != nil {
					return false
				}
				nearAt = at
			}
			if !visit((off+int64(i))/entrySize, t.order.Uint32(near[at-nearAt:])) {
				return false
			}
		}
		return true
	})
	return errors.Join(err, failed)
}

// ReadGoTable reads the table of Go's functions, and no other: Resolve then has the functions of Go alone.
func (m *Image) ReadGoTable() (err error) {
	defer recovered(&err)
	m.work.left = m.limits.Work
	m.tables = &tables{errs: make([]error, 1)}
	m.tables.goTable, err = m.readGoTable()
	return err
}
