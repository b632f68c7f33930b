// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// JFRWriter writes recordings of one chunk with the fewest classes that the parser requires.
type JFRWriter struct {
	classes []string // name, then its fields as name:class, name:class[] or name:class* for a reference
	pools   []byte   // what follows the number of pools
	nPools  uint64
	events  []byte
	delta   int64 // to the pools before
}

// jfrHeaderBytes is the size of a chunk's header.
const jfrHeaderBytes = 68

// The numbers of classes are their places in this list.
var jfrClasses = []string{
	"int", "long", "short", "float", "boolean", "java.lang.String",
	"jdk.types.FrameType description:java.lang.String",
	"jdk.types.ThreadState name:java.lang.String",
	"java.lang.Thread osName:java.lang.String osThreadId:long javaName:java.lang.String javaThreadId:long",
	"java.lang.Class name:jdk.types.Symbol*",
	"jdk.types.Method type:java.lang.Class* name:jdk.types.Symbol*",
	"jdk.types.Package name:jdk.types.Symbol*",
	"jdk.types.Symbol string:java.lang.String",
	"jdk.types.StackTrace truncated:boolean frames:jdk.types.StackFrame[]",
	"jdk.types.StackFrame method:jdk.types.Method* lineNumber:int",
	"jdk.types.ClassLoader name:jdk.types.Symbol*",
	"jdk.ExecutionSample startTime:long sampledThread:java.lang.Thread* stackTrace:jdk.types.StackTrace* contextId:long spanId:long",
	"jdk.ThreadPark startTime:long duration:long eventThread:java.lang.Thread* stackTrace:jdk.types.StackTrace*",
}

// NewJFR returns a writer with more classes.
func NewJFR(more ...string) *JFRWriter {
	return &JFRWriter{classes: append(append([]string{}, jfrClasses...), more...)}
}

func (w *JFRWriter) class(name string) uint64 {
	for i, c := range w.classes {
		if first, _, _ := strings.Cut(c, " "); first == name {
			return uint64(i)
		}
	}
	panic(name)
}

// Pool begins a constant pool of n entries.
func (w *JFRWriter) Pool(class string, n int) *JFRWriter {
	w.nPools++
	w.pools = jfrNumbers(w.pools, w.class(class), uint64(n))
	return w
}

// Entry appends to the pools: numbers, and strings.
func (w *JFRWriter) Entry(values ...any) *JFRWriter {
	for _, v := range values {
		switch v := v.(type) {
		case []byte: // as it is
			w.pools = append(w.pools, v...)
		case int:
			w.pools = jfrNumbers(w.pools, uint64(v))
		case string:
			w.pools = append(jfrNumbers(append(w.pools, 3), uint64(len(v))), v...)
		}
	}
	return w
}

// Event appends an event of a class.
func (w *JFRWriter) Event(class string, values ...uint64) *JFRWriter {
	return w.RawEvent(class, jfrNumbers(nil, values...))
}

// RawEvent appends an event of a class whose content is written by hand.
func (w *JFRWriter) RawEvent(class string, content []byte) *JFRWriter {
	content = append(jfrNumbers(nil, w.class(class)), content...)
	w.events = append(jfrNumbers(w.events, uint64(len(content)+1)), content...)
	return w
}

// jfrNumbers appends numbers of variable length, of which the ninth byte has eight bits.
func jfrNumbers(b []byte, values ...uint64) []byte {
	for _, v := range values {
		n := 1
		for ; n < 9 && v >= 0x80; n++ {
			b = append(b, byte(v)|0x80)
			v >>= 7
		}
		b = append(b, byte(v))
	}
	return b
}

// metadata returns the event with the classes.
func (w *JFRWriter) metadata() []byte {
	var strs []string
	index := map[string]uint64{}
	at := func(s string) uint64 {
		if _, known := index[s]; !known {
			index[s] = uint64(len(strs))
			strs = append(strs, s)
		}
		return index[s]
	}
	element := func(tree []byte, name string, children int, attributes ...string) []byte {
		tree = jfrNumbers(tree, at(name), uint64(len(attributes)/2))
		for _, a := range attributes {
			tree = jfrNumbers(tree, at(a))
		}
		return jfrNumbers(tree, uint64(children))
	}
	tree := element(nil, "root", 1)
	tree = element(tree, "metadata", len(w.classes))
	for i, c := range w.classes {
		parts := strings.Fields(c)
		tree = element(tree, "class", len(parts)-1, "id", strconv.Itoa(i), "name", parts[0])
		for _, f := range parts[1:] {
			name, class, _ := strings.Cut(f, ":")
			attributes := []string{"name", name, "class", strconv.FormatUint(w.class(strings.Trim(class, "*[]")), 10)}
			if strings.HasSuffix(class, "*") {
				attributes = append(attributes, "constantPool", "true")
			}
			if strings.HasSuffix(class, "[]") {
				attributes = append(attributes, "dimension", "1")
			}
			tree = element(tree, "field", 0, attributes...)
		}
	}
	b := jfrNumbers(nil, 0, 0, 0, 0, uint64(len(strs))) // type, start, duration, id
	for _, s := range strs {
		b = append(jfrNumbers(append(b, 3), uint64(len(s))), s...)
	}
	return jfrSized(append(b, tree...))
}

// jfrSized puts the size of an event before it, in four bytes.
func jfrSized(b []byte) []byte {
	n := len(b) + 4
	return append([]byte{byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21)}, b...)
}

// Bytes returns the chunk: header, events, pools, metadata.
func (w *JFRWriter) Bytes() []byte {
	// type, start, duration, the distance to those before, flags
	pools := jfrNumbers(nil, 1, 0, 0, uint64(w.delta), 1, w.nPools)
	return recordingOf(w.events, jfrSized(append(pools, w.pools...)), w.metadata())
}

func recordingOf(events, pools, metadata []byte) []byte {
	b := append([]byte("FLR\x00"), 0, 2, 0, 0)
	at := uint64(jfrHeaderBytes + len(events))
	for _, v := range []uint64{
		at + uint64(len(pools)+len(metadata)), at, at + uint64(len(pools)), 1795293131e9, 1e9, 0, 1e9,
	} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(append(b, 0, 0, 0, 0), events...)
	return append(append(b, pools...), metadata...)
}

// manyJFR is a recording to which one adds something small again and again.
func manyJFR(one func(w *JFRWriter, i int)) func(int) []byte {
	return moreJFR(func(int) *JFRWriter { return NewJFR() }, one)
}

// moreJFR is manyJFR that begins with something large.
func moreJFR(begin func(size int) *JFRWriter, one func(w *JFRWriter, i int)) func(int) []byte {
	return func(size int) []byte {
		w := begin(size)
		for i := 0; len(w.events)+len(w.pools) < size; i++ {
			one(w, i)
		}
		return w.Bytes()
	}
}

// fixed is an input of one size.
func fixed(recording func() []byte) func(int) []byte { return func(int) []byte { return recording() } }

// huge is a count that nothing follows.
const huge = 1<<31 - 1

// metadataOf is a recording whose metadata ends after these numbers.
func metadataOf(tree ...uint64) func(int) []byte {
	return fixed(func() []byte {
		return recordingOf(nil, jfrSized(jfrNumbers(nil, 1, 0, 0, 0, 1, 0)),
			jfrSized(jfrNumbers(jfrNumbers(nil, 0, 0, 0, 0), tree...)))
	})
}

// longName is a name that many refer to.
func longName(size int) string { return strings.Repeat("x", min(64<<10, max(1, size/4))) }

// JFR are recordings of Java Flight Recorder.
var JFR = Inputs{
	"symbols": fixed(func() []byte { return NewJFR().Pool("jdk.types.Symbol", huge).Bytes() }),
	"stacks":  fixed(func() []byte { return NewJFR().Pool("jdk.types.StackTrace", huge).Bytes() }),
	"frames":  fixed(func() []byte { return NewJFR().Pool("jdk.types.StackTrace", 1).Entry(1, 0, huge).Bytes() }),
	"characters": fixed(func() []byte {
		w := NewJFR().Pool("jdk.types.Symbol", 1).Entry(1)
		w.pools = jfrNumbers(append(w.pools, 4), huge)
		return w.Bytes()
	}),
	"metadata of 1":  metadataOf(huge),
	"metadata of 9":  metadataOf(1, 3, 4, 'r', 'o', 'o', 't', 0, huge),
	"metadata of 10": metadataOf(1, 3, 4, 'r', 'o', 'o', 't', 0, 0, huge),
	"objects without fields": fixed(func() []byte {
		return NewJFR("Empty", "jdk.Outer array:Empty[]").Pool("jdk.Outer", 1).Entry(1, 100).Bytes()
	}),
	"an event beyond its end": fixed(func() []byte {
		return NewJFR("profiler.Malloc array:long[]").Event("profiler.Malloc", 1<<20).Bytes()
	}),

	// Pools before others, in a circle or one within the other.
	"pools in a circle": fixed(func() []byte {
		w := NewJFR()
		w.delta = 1
		return w.Bytes()
	}),
	"pools within pools": poolsWithinPools,

	// What others refer to, again and again.
	"long names": func(size int) []byte {
		long, n := longName(size), size/8
		return stackOfMethods(NewJFR().Pool("jdk.types.Symbol", 2).Entry(1, long, 2, long), n)
	},
	"a long state": moreJFR(func(size int) *JFRWriter {
		return NewJFR("profiler.WallClockSample startTime:long state:jdk.types.ThreadState*").
			Pool("jdk.types.ThreadState", 1).Entry(1, strings.Repeat("x", size/2))
	}, func(w *JFRWriter, _ int) { w.Event("profiler.WallClockSample", 1, 1) }),
	"a long name of a collector": moreJFR(func(size int) *JFRWriter {
		return NewJFR("jdk.types.GCName name:java.lang.String", "jdk.GarbageCollection startTime:long name:jdk.types.GCName*").
			Pool("jdk.types.GCName", 1).Entry(1, strings.Repeat("x", size/2))
	}, func(w *JFRWriter, _ int) { w.Event("jdk.GarbageCollection", 1, 1) }),
	"a thread's long name": moreJFR(func(size int) *JFRWriter {
		return NewJFR().Pool("java.lang.Thread", 1).Entry(1, "", 1, longName(size), 1)
	}, func(w *JFRWriter, i int) { w.Event("jdk.ExecutionSample", 1, 1, 1, 0, uint64(i)) }),
	"threads with one long name": func(size int) []byte {
		return sharedNames(size, "java.lang.Thread", 1, []byte{0}, 0)
	},
	"states with one long name": func(size int) []byte { return sharedNames(size, "jdk.types.ThreadState") },
	"methods with one long name": func(size int) []byte {
		w, n := NewJFR().Pool("java.lang.String", 1).Entry(1, latin1(size/2)), size/16
		return stackOfMethods(w.Pool("jdk.types.Symbol", 2).Entry(1, constant, 2, "short"), n)
	},
	"collectors and causes with one long name": moreJFR(func(size int) *JFRWriter {
		return NewJFR("jdk.types.GCName name:java.lang.String", "jdk.types.GCCause cause:java.lang.String",
			"jdk.GarbageCollection startTime:long name:jdk.types.GCName* cause:jdk.types.GCCause*").
			Pool("jdk.types.GCName", 1).Entry(1, latin1(size/2))
	}, func(w *JFRWriter, i int) { w.Event("jdk.GarbageCollection", 1, 1, uint64(i)) }),
	"empty pools of many fields": func(size int) []byte {
		var wide strings.Builder
		wide.WriteString("Wide")
		for i := range min(5_000, size/32) {
			fmt.Fprintf(&wide, " f%d:int", i)
		}
		w := NewJFR(wide.String())
		for len(w.pools) < size {
			w.Pool("Wide", 0)
		}
		return w.Bytes()
	},
	"a long name of a field": func(size int) []byte {
		w := NewJFR()
		w.classes[0] = "int " + strings.Repeat("x", min(size, 4096)) + ":long"
		return w.Bytes()
	},
	"chunks": func(size int) []byte {
		return repeat(size, nil, NewJFR().Event("jdk.ExecutionSample", 1, 1, 1, 0, 0).Bytes())
	},

	// Much of what is small.
	"events": manyJFR(func(w *JFRWriter, i int) {
		w.Event("jdk.ExecutionSample", uint64(i), 0, 0, 0, 0)
	}),
	"events that each become two": manyJFR(func(w *JFRWriter, _ int) { w.Event("jdk.ThreadPark", 1, 1, 1, 0) }),
	"spans": manyJFR(func(w *JFRWriter, i int) {
		w.Event("jdk.ThreadPark", 1, 1, 1, 0).Event("jdk.ExecutionSample", 1, 1, 1, 0, uint64(i))
	}),
	"small stacks": manyJFR(func(w *JFRWriter, i int) {
		w.Pool("jdk.types.StackTrace", 1).Entry(i, 0, 1, 1, i).Event("jdk.ExecutionSample", 1, 1, uint64(i), 0, 0)
	}),
	"live objects": moreJFR(func(int) *JFRWriter { return NewJFR("jdk.OldObjectSample startTime:long") },
		func(w *JFRWriter, _ int) { w.Event("jdk.OldObjectSample", 1) }),
	"symbols of characters": manyJFR(func(w *JFRWriter, i int) {
		w.Pool("jdk.types.Symbol", 1).Entry(i)
		w.pools = append(w.pools, 4, 1, 'x')
	}),
	"spans of a context": manyJFR(func(w *JFRWriter, i int) { w.Event("jdk.ExecutionSample", 1, 1, 1, 7, uint64(i)) }),
}

// constant is a string that is the first one in the pool of strings.
var constant = []byte{2, 1}

// latin1 is a string of n bytes that becomes one of two times as many.
func latin1(n int) []byte {
	return append(jfrNumbers([]byte{5}, uint64(n)), bytes.Repeat([]byte{0xe4}, n)...)
}

// sharedNames are constants of a class whose name is one long string, each in an event of its own.
func sharedNames(size int, class string, rest ...any) []byte {
	w, n := NewJFR(), size/32
	w.classes[w.class("jdk.ExecutionSample")] += " state:jdk.types.ThreadState*"
	w.Pool("java.lang.String", 1).Entry(1, latin1(size/2)).Pool(class, n)
	for i := range n {
		w.Entry(i, constant).Entry(rest...)
	}
	for i := range n {
		w.Event("jdk.ExecutionSample", 1, uint64(i), 0, 0, 0, uint64(i))
	}
	return w.Bytes()
}

// stackOfMethods adds a sample of a stack of n methods, whose class and name are the two symbols that w has.
func stackOfMethods(w *JFRWriter, n int) []byte {
	w.Pool("java.lang.Class", 1).Entry(1, 1).Pool("jdk.types.Method", n)
	for i := range n {
		w.Entry(i, 1, 2)
	}
	w.Pool("jdk.types.StackTrace", 1).Entry(1, 0, n)
	for i := range n {
		w.Entry(i, 1)
	}
	return w.Event("jdk.ExecutionSample", 1, 1, 1, 0, 0).Bytes()
}

// poolsWithinPools are pools of which each has a string that holds all those behind it.
func poolsWithinPools(size int) []byte {
	const each = 4 + 1 + 1 + 1 + 9 + 1 + 1 + 1 + 1 + 1 + 1 + 4
	count := size / each
	nested := make([]byte, 0, count*each)
	for i := range count {
		b := jfrNumbers(nil, 1, 0, 0, -each+1<<64, 1, 1, NewJFR().class("jdk.types.Symbol"), 1, 1, 3)
		n := (count - 1 - i) * each
		b = append(b, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21))
		nested = append(nested, jfrSized(b)...)
	}
	return recordingOf(nested, jfrSized(jfrNumbers(nil, 1, 0, 0, -each+1<<64, 1, 0)), NewJFR().metadata())
}

// JFRLabels are labels of Pyroscope's for the recording "spans of a context".
var JFRLabels = Inputs{
	"many labels": func(size int) []byte {
		var context, snapshot []byte
		for i := 0; len(snapshot) < size; i++ {
			pair := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(i))
			pair = protowire.AppendVarint(protowire.AppendTag(pair, 2, protowire.VarintType), uint64(i))
			context = append(context, Field(1, pair)...)
			snapshot = append(snapshot, jfrLabel(2, uint64(i), fmt.Appendf(nil, "%d%s", i, strings.Repeat("x", 1000)))...)
		}
		return append(snapshot, jfrLabel(1, 7, context)...)
	},
	"many contexts": func(size int) []byte {
		return fill(size, nil, func(b []byte, i int) []byte { return append(b, jfrLabel(1, uint64(i), nil)...) })
	},
}

func jfrLabel(number protowire.Number, key uint64, value []byte) []byte {
	content := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), key)
	return Field(number, protowire.AppendBytes(protowire.AppendTag(content, 2, protowire.BytesType), value))
}

// SoundJFR is a small recording with nothing wrong: two events with a stack and a thread.
func SoundJFR() []byte {
	w := NewJFR()
	w.Pool("jdk.types.Symbol", 2).Entry(1, "Shop", 2, "buy").Pool("java.lang.Class", 1).Entry(1, 1)
	w.Pool("jdk.types.Method", 1).Entry(1, 1, 2).Pool("jdk.types.StackTrace", 1).Entry(1, 0, 1, 1, 7)
	w.Pool("java.lang.Thread", 1).Entry(5, "os", 9, "java", 3)
	return w.Event("jdk.ExecutionSample", 500, 5, 1, 0, 0).Event("jdk.ThreadPark", 100, 50, 5, 1).Bytes()
}
