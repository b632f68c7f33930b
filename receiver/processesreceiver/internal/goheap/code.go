// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"debug/elf"
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// addresses are addresses of memory that code refers to.
type addresses map[uint64]bool

func (a addresses) and(other addresses) addresses {
	both := addresses{}
	for address := range a {
		if other[address] {
			both[address] = true
		}
	}
	return both
}

// references returns the variables that a function refers to: addresses in writable memory, aligned as words are.
func references(image *symbols.Image, f symbols.GoFunction) addresses {
	found := addresses{}
	add := func(address uint64) {
		var word [8]byte
		if address%8 == 0 && image.InitialData(address, word[:]) {
			found[address] = true
		}
	}
	switch image.Architecture() {
	case elf.EM_X86_64:
		referencesAMD64(f, add)
	case elf.EM_AARCH64:
		referencesARM64(f, add)
	}
	return found
}

// referencesAMD64 calls add with the addresses relative to the instruction pointer, which Go's compiler uses for all
// variables.
func referencesAMD64(f symbols.GoFunction, add func(uint64)) {
	// x86asm panics at some instructions that are cut off. Code of Go has none: the bytes after one are ignored.
	defer func() { _ = recover() }()
	for at := 0; at < len(f.Code); {
		inst, err := x86asm.Decode(f.Code[at:], 64)
		if err != nil || inst.Len == 0 {
			at++
			continue
		}
		at += inst.Len
		for _, arg := range inst.Args {
			if memory, ok := arg.(x86asm.Mem); ok && memory.Base == x86asm.RIP && memory.Index == 0 {
				add(f.Address + uint64(at) + uint64(memory.Disp))
			}
		}
	}
}

// referencesARM64 calls add with the addresses that ADRP and the instruction after it make: a page, and the offset in
// it by ADD, or by a load or store. The names of the masks are those of the architecture's manual.
func referencesARM64(f symbols.GoFunction, add func(uint64)) {
	const (
		adrpMask, adrp           = 0x9f000000, 0x90000000
		addMask, addImmediate    = 0xffc00000, 0x91000000
		accessMask, accessOffset = 0x3b000000, 0x39000000 // LDR, STR and their kin with an unsigned offset, of any size
		page                     = 0xfff
	)
	var pages [32]uint64 // by register; 0 is none
	for at := 0; at+4 <= len(f.Code); at += 4 {
		inst := binary.LittleEndian.Uint32(f.Code[at:])
		target, base := inst&31, inst>>5&31
		offset := uint64(inst >> 10 & page)
		switch {
		case inst&adrpMask == adrp:
			immediate := int64(int32(inst>>5&0x7ffff<<2|inst>>29&3)<<11) >> 11
			pages[target] = (f.Address+uint64(at))&^page + uint64(immediate<<12)
			continue
		case pages[base] == 0:
		case inst&addMask == addImmediate:
			add(pages[base] + offset)
		case inst&accessMask == accessOffset:
			add(pages[base] + offset<<(inst>>30))
		}
	}
}
