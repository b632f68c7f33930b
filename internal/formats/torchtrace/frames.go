// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchtrace

import (
	"regexp"
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

// pythonName is how Python's frames are named: file(line): function. Objects have an address, which is another one in
// each process.
var (
	pythonName = regexp.MustCompile(`(?s)^(.*?)\((-?\d{1,9})\): (.*)$`)
	address    = regexp.MustCompile(` at 0x[0-9a-f]*`)
)

func (d *decoder) newFrame(name string, is category) int32 {
	typ := frameTypes[is]
	var f dictionary.Function
	switch {
	case is == python:
		if parts := pythonName.FindStringSubmatch(name); parts != nil {
			line, _ := strconv.ParseInt(parts[2], 10, 64)
			f.Filename, f.StartLine, name = d.b.Dict.Strings.Intern(d.b.CleanString(parts[1])), max(line, 0), parts[3]
		}
		name = address.ReplaceAllLiteralString(name, "")
	case strings.HasPrefix(name, "Memcpy"), strings.HasPrefix(name, "Memset"):
		typ = "gpu_memory"
	}
	f.Name = d.b.Dict.Strings.Intern(d.b.CleanString(name))
	return d.b.TypedFrame(f, f.StartLine, typ)
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
