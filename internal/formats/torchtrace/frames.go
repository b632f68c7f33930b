// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchtrace

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// frameTypes are the values of profile.frame.type: the semantic conventions have cpython alone.
var frameTypes = [numCategories]string{
	annotation: "torch_annotation", python: "cpython", op: "torch_op", runtime: "gpu_runtime", gpu: "gpu_kernel",
}

// frame interns the frame of an event, by its name as it is written.
func (d *decoder) frame(name []byte, is category) int32 {
	if i, ok := d.frames[frameKey{string(name), is}]; ok {
		return i
	}
	d.textBytes += len(name)
	i := d.newFrame(text(name), is)
	d.frames[frameKey{string(name), is}] = i
	return i
}

// newFrame interns a frame. Python's name their file and line: file(line): function.
func (d *decoder) newFrame(name string, is category) int32 {
	typ := frameTypes[is]
	var f dictionary.Function
	switch {
	case is == python:
		if file, line, function, ok := cutPython(name); ok {
			f.Filename, f.StartLine, name = d.b.Dict.Strings.Intern(d.b.CleanString(file)), line, function
		}
		name = withoutAddress(name)
	case strings.HasPrefix(name, "Memcpy"), strings.HasPrefix(name, "Memset"):
		typ = "gpu_memory"
	}
	f.Name = d.b.Dict.Strings.Intern(d.b.CleanString(name))
	return d.b.TypedFrame(f, f.StartLine, typ)
}

// cutPython cuts the name of a Python function: file(line): function.
func cutPython(s string) (file string, line int64, function string, ok bool) {
	before, function, ok := strings.Cut(s, "): ")
	at := strings.LastIndexByte(before, '(')
	if !ok || at < 0 {
		return "", 0, "", false
	}
	line, err := strconv.ParseInt(before[at+1:], 10, 32)
	return before[:at], max(line, 0), function, err == nil
}

// withoutAddress removes the address of an object, which is another one in each process: <built-in method f of C object at 0x7f1ff11e0800>.
func withoutAddress(s string) string {
	before, after, ok := strings.Cut(s, " at 0x")
	if !ok {
		return s
	}
	return before + strings.TrimLeft(after, "0123456789abcdef")
}

// callStack returns the number of a list of Python frames, which is written from the leaf: name;name;.
func (d *decoder) callStack(value []byte) int32 {
	if i, ok := d.callStacks[string(value)]; ok {
		return i
	}
	var list []int32
	for name := range strings.SplitSeq(text(value), ";") {
		if name != "" && len(list) < maxDepth {
			list = append(list, d.frame([]byte(name), python))
		}
	}
	i := int32(noList)
	if len(list) > 0 {
		slices.Reverse(list)
		i = int32(len(d.lists))
		d.lists = append(d.lists, list)
	}
	d.textBytes += len(value) + 4*cap(list)
	d.callStacks[string(value)] = i
	return i
}
