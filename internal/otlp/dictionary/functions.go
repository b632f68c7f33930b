// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

// FunctionIndex is an index of the function table. 0 is no function.
type FunctionIndex int32

// Function is an entry of the function table. StartLine is ≥ 0.
type Function struct {
	Name, SystemName, Filename StringIndex
	StartLine                  int64
}

// Functions is the function table.
type Functions struct {
	Table[FunctionIndex, Function]
}

// Intern returns the index of f and adds it if it is new.
func (t *Functions) Intern(f Function) FunctionIndex {
	h := Mix(uint64(uint32(f.Name)), uint64(uint32(f.SystemName))<<32|uint64(uint32(f.Filename)))
	return t.Table.Intern(Mix(h, uint64(f.StartLine)), f)
}
