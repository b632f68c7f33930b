// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"math"
	"regexp"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// stackKey identifies a stack: a stack trace, and for a traced method the method that it called.
type stackKey struct{ trace, method constantKey }

// stack interns the stack of an event, leaf first. If the chunk does not have the stack trace, it is empty.
func (d *decoder) stack(e *event) (dictionary.StackIndex, error) {
	ref := stackKey{e.constantOf(slotStackTrace), e.constantOf(slotMethod)}
	if known, ok := d.chunk.stacks[ref]; ok {
		return known, nil
	}
	d.stackScratch = d.stackScratch[:0]
	var err error
	if ref.method.key != 0 { // the JDK's; async-profiler has it in the stack trace
		err = d.addFrame(e.fields[slotMethod], ref.method.key, 0)
	}
	if c, of, ok := d.constant(e.fields[slotStackTrace], ref.trace.key); ok {
		c.visit(of, func(f *field) bool {
			if f.name != "frames" || !f.isArray || f.kind != 0 || f.of == nil {
				return false
			}
			for n := c.count(); n > 0 && c.err == nil && err == nil; n-- {
				err = d.frame(&c, f.of)
			}
			return true
		})
	}
	if err != nil {
		return 0, err
	}
	stack := d.Dict.Stacks.Intern(d.stackScratch)
	d.chunk.stacks[ref] = stack
	return stack, nil
}

// frame reads a frame, and adds its location to the stack.
func (d *decoder) frame(c *cursor, of *class) error {
	var methodField *field
	var method uint64
	var line int64
	c.visit(of, func(f *field) bool {
		switch {
		case f.kind != kindNumber || f.isArray:
			return false
		case f.name == "method" && f.isPool:
			methodField, method = f, c.number()
		case f.name == "lineNumber":
			line = int64(c.number())
		default:
			return false
		}
		return true
	})
	if line > math.MaxInt32 { // −1 means that the line is unknown
		line = 0
	}
	return d.addFrame(methodField, method, line)
}

// addFrame adds a location to the stack: a line of the method that a field refers to.
func (d *decoder) addFrame(f *field, key uint64, line int64) error {
	var method constantKey
	if f != nil {
		method = constantKey{f.of, key}
	}
	name, known := d.chunk.names[method]
	if !known {
		text, err := d.methodName(f, key)
		if err != nil {
			return err
		}
		name = d.Dict.Strings.Intern(text)
		d.chunk.names[method] = name
	}
	d.stackScratch = append(d.stackScratch, d.Frame(dictionary.Function{Name: name}, line, 0))
	return nil
}

// unknownMethod is the name if the chunk does not have the method.
const unknownMethod = "(unknown)"

// methodName returns a name such as java/lang/Thread.run, as Pyroscope shows it.
func (d *decoder) methodName(f *field, key uint64) (string, error) {
	name := d.nameOf(f, key)
	if class := d.nameOf(d.member(f, key, "type")); class != "" {
		name = class + "." + name
	}
	if name == "" {
		return unknownMethod, nil
	}
	if d.nameBytes -= len(name); d.nameBytes < 0 {
		return "", errNames
	}
	return name, d.Grow(len(name)) // it was put together here
}

// nameOf returns the name that a method or a class has.
func (d *decoder) nameOf(f *field, key uint64) string {
	name, symbol := d.member(f, key, "name")
	return d.CleanString(withoutNumbers(d.symbol(name, symbol, d.longest)))
}

// generated are the names of classes and libraries that differ from run to run: the JVM generates a class for each
// lambda and for reflection, frameworks generate others, and libraries are unpacked to a new file.
var generated = []struct {
	// part is in all such names: the pattern is tried only then.
	part    string
	pattern *regexp.Regexp
	name    string
}{
	// Shop$$Lambda$87+0x00007fba0c007a08/330084561, Shop$$Lambda$14.0x0000000800c03000, Shop$$Lambda/0x00007ffa600c4da0,
	// Shop$$Lambda12
	{"$$Lambda", regexp.MustCompile(`^(.+\$\$Lambda)(?:\$.*|[./+](?:0x)?[\da-f]+(?:/\d+)?|\d+)$`), "${1}_"},
	// java.lang.invoke.LambdaForm$DMH/666988784, java/lang/invoke/LambdaForm$MH+0x00007f0a0c007a08/12,
	// …$MH.0x0000000800c03000
	{"LambdaForm$", regexp.MustCompile(`^(java[./]lang[./]invoke[./]LambdaForm\$[A-Z]+)[./+](?:0x)?[\da-f]+(?:/\d+)?$`),
		"${1}_"},
	{"GeneratedMethodAccessor", regexp.MustCompile(`^(jdk/internal/reflect/GeneratedMethodAccessor)\d+$`), "${1}_"},
	{"$$EnhancerBySpringCGLIB$$", regexp.MustCompile(`^(.+\$\$EnhancerBySpringCGLIB\$\$).*$`), "${1}_"},
	{"libzstd-jni-", regexp.MustCompile(`^(?:\.?/tmp/)?libzstd-jni-\d+\.\d+\.\d+-\d+\.so(?: \(deleted\))?$`),
		"libzstd-jni-_.so"},
	{"amazonCorrettoCryptoProvider",
		regexp.MustCompile(`^(?:\.?/tmp/)?(?:lib)?amazonCorrettoCryptoProvider(?:NativeLibraries\.)?[\da-f]{16}` +
			`(?:/lib(?:crypto|amazonCorrettoCryptoProvider))?\.so(?: \(deleted\))?$`), "libamazonCorrettoCryptoProvider_.so"},
}

// withoutNumbers returns a name without what differs from run to run.
func withoutNumbers(name string) string {
	const longest = 1 << 10 // patterns are slow, and many methods can refer to one long name
	if len(name) > longest {
		return name
	}
	for i := range generated {
		if g := &generated[i]; strings.Contains(name, g.part) {
			name = g.pattern.ReplaceAllString(name, g.name)
		}
	}
	return name
}
