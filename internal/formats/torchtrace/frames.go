// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchtrace

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// frameTypes are the values of profile.frame.type: the semantic conventions have cpython alone.
var frameTypes = [numCategories]string{
	annotation: "torch_annotation", python: "cpython", op: "torch_op", runtime: "gpu_runtime", kernel: "gpu_kernel",
	transfer: "gpu_memory",
}

// frameKey is the name of a frame and the category of its event.
type frameKey struct {
	name string
	is   category
}

// frame interns the frame of an event, by its name as it is written.
func (d *decoder) frame(name []byte, is category) int32 {
	if i, ok := d.frames[frameKey{string(name), is}]; ok {
		return i
	}
	d.keptBytes += entryBytes + len(name)
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
	var f dictionary.Function
	if is == python {
		if parts := pythonName.FindStringSubmatch(name); parts != nil {
			line, _ := strconv.ParseInt(parts[2], 10, 64)
			f.Filename, f.StartLine, name = d.b.InternString(parts[1]), max(line, 0), parts[3]
		}
		name = address.ReplaceAllLiteralString(name, "")
	}
	f.Name = d.b.InternString(name)
	return d.b.TypedFrame(f, f.StartLine, frameTypes[is])
}

// callStack interns Python frames, which are written from the leaf: name;name;.
func (d *decoder) callStack(value []byte) dictionary.StackIndex {
	if stack, ok := d.callStacks[string(value)]; ok {
		return stack
	}
	var frames []int32
	for name := range strings.SplitSeq(text(value), ";") {
		if name != "" {
			frames = append(frames, d.frame([]byte(name), python))
		}
	}
	stack := d.b.Dict.Stacks.Intern(frames)
	d.callStacks[string(value)] = stack
	d.keptBytes += entryBytes + len(value)
	return stack
}
