// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import "go.opentelemetry.io/collector/pdata/pprofile"

// FunctionIndex is an index of the function table. 0 is no function.
type FunctionIndex int32

// Function is an entry of the function table. StartLine is ≥ 0.
type Function struct {
	Name, SystemName, Filename StringIndex
	StartLine                  int64
}

func (f Function) hash() uint64 {
	h := Mix(uint64(uint32(f.Name)), uint64(uint32(f.SystemName))<<32|uint64(uint32(f.Filename)))
	return Mix(h, uint64(f.StartLine))
}

// Functions is the function table.
type Functions struct {
	entries []Function
	index   HashIndex
}

func (t *Functions) reset(entries int) {
	t.entries = append(room(t.entries, entries+1), Function{})
	t.index.Reset(entries)
}

// Len is the number of entries, the zero value at index 0 included.
func (t *Functions) Len() int { return len(t.entries) }

// At returns an entry.
func (t *Functions) At(i FunctionIndex) Function { return t.entries[i] }

// Intern returns the index of f and adds it if it is new.
func (t *Functions) Intern(f Function) FunctionIndex {
	if f == (Function{}) {
		return 0
	}
	p := t.index.Start(f.hash())
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if t.entries[e] == f {
			return FunctionIndex(e)
		}
	}
	i := len(t.entries)
	t.entries = append(t.entries, f)
	t.index.Insert(p, int32(i))
	return FunctionIndex(i)
}

func (t *Functions) copyTo(dst pprofile.FunctionSlice) {
	dst.EnsureCapacity(len(t.entries))
	for _, f := range t.entries {
		entry := dst.AppendEmpty()
		entry.SetNameStrindex(int32(f.Name))
		entry.SetSystemNameStrindex(int32(f.SystemName))
		entry.SetFilenameStrindex(int32(f.Filename))
		entry.SetStartLine(f.StartLine)
	}
}
