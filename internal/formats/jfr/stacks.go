// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"math"
	"strings"

	"github.com/grafana/jfr-parser/parser/types"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// stack interns a stack trace, leaf first. If the chunk does not have it, the stack is empty.
func (d *decoder) stack(ref types.StackTraceRef) (dictionary.StackIndex, error) {
	if known, ok := d.chunk.stacks[ref]; ok {
		return known, nil
	}
	d.stackScratch = d.stackScratch[:0]
	if trace := d.parser.GetStacktrace(ref); trace != nil {
		for i := range trace.Frames {
			location, err := d.location(&trace.Frames[i])
			if err != nil {
				return 0, err
			}
			d.stackScratch = append(d.stackScratch, location)
		}
	}
	stack := d.Dict.Stacks.Intern(d.stackScratch)
	d.chunk.stacks[ref] = stack
	return stack, nil
}

func (d *decoder) location(frame *types.StackFrame) (int32, error) {
	name, known := d.chunk.names[frame.Method]
	if !known {
		method, err := d.methodName(frame.Method)
		if err != nil {
			return 0, err
		}
		name = d.Dict.Strings.Intern(method)
		d.chunk.names[frame.Method] = name
	}
	line := int64(frame.LineNumber)
	if line > math.MaxInt32 { // −1 means that the line is unknown
		line = 0
	}
	return d.Frame(dictionary.Function{Name: name}, line, 0), nil
}

// unknownMethod is the name if the chunk does not have the method.
const unknownMethod = "(unknown)"

// methodName returns a name such as java/lang/Thread.run, as Pyroscope shows it.
func (d *decoder) methodName(ref types.MethodRef) (string, error) {
	method := d.parser.GetMethod(ref)
	if method == nil {
		return unknownMethod, nil
	}
	name := d.CleanString(d.parser.GetSymbolString(method.Name))
	if class := d.parser.GetClass(method.Type); class != nil {
		if className := d.CleanString(withoutAddress(d.parser.GetSymbolString(class.Name))); className != "" {
			name = className + "." + name
		}
	}
	if name == "" {
		return unknownMethod, nil
	}
	if d.nameBytes -= len(name); d.nameBytes < 0 {
		return "", errNames
	}
	return name, d.Take(len(name)) // it was put together here
}

// withoutAddress removes the part of the JDK's name for a lambda's class that differs from run to run:
// Shop$$Lambda$87+0x00007fba0c007a08/330084561. The parser does the same for async-profiler's form.
func withoutAddress(class string) string {
	const lambda = "$$Lambda"
	if i := strings.Index(class, lambda+"$"); i >= 0 {
		return class[:i+len(lambda)] + "_"
	}
	return class
}
