// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// writer writes recordings of one chunk with the fewest classes that the parser requires.
type writer struct {
	classes []string // name, then its fields as name:class, name:class[] or name:class* for a reference
	pools   []byte   // what follows the number of pools
	nPools  uint64
	events  []byte
	delta   int64 // to the pools before
}

// The numbers of classes are their places in this list.
var basicClasses = []string{
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

func newWriter(more ...string) *writer {
	return &writer{classes: append(append([]string{}, basicClasses...), more...)}
}

func (w *writer) class(name string) uint64 {
	for i, c := range w.classes {
		if first, _, _ := strings.Cut(c, " "); first == name {
			return uint64(i)
		}
	}
	panic(name)
}

// pool begins a constant pool of n entries.
func (w *writer) pool(class string, n int) *writer {
	w.nPools++
	w.pools = numbers(w.pools, w.class(class), uint64(n))
	return w
}

// entry appends to the pools: numbers, and texts.
func (w *writer) entry(values ...any) *writer {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			w.pools = numbers(w.pools, uint64(v))
		case string:
			w.pools = append(numbers(append(w.pools, 3), uint64(len(v))), v...)
		}
	}
	return w
}

func (w *writer) event(class string, values ...uint64) *writer {
	content := numbers(numbers(nil, w.class(class)), values...)
	w.events = append(numbers(w.events, uint64(len(content)+1)), content...)
	return w
}

// numbers appends numbers of variable length, of which the ninth byte has eight bits.
func numbers(b []byte, values ...uint64) []byte {
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
func (w *writer) metadata() []byte {
	var texts []string
	index := map[string]uint64{}
	at := func(s string) uint64 {
		if _, known := index[s]; !known {
			index[s] = uint64(len(texts))
			texts = append(texts, s)
		}
		return index[s]
	}
	element := func(tree []byte, name string, children int, attributes ...string) []byte {
		tree = numbers(tree, at(name), uint64(len(attributes)/2))
		for _, a := range attributes {
			tree = numbers(tree, at(a))
		}
		return numbers(tree, uint64(children))
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
	b := numbers(nil, 0, 0, 0, 0, uint64(len(texts))) // type, start, duration, id
	for _, s := range texts {
		b = append(numbers(append(b, 3), uint64(len(s))), s...)
	}
	return sized(append(b, tree...))
}

// sized puts the size of an event before it, in four bytes.
func sized(b []byte) []byte {
	n := len(b) + 4
	return append([]byte{byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21)}, b...)
}

// bytes returns the chunk: header, events, pools, metadata.
func (w *writer) bytes() []byte {
	pools := numbers(nil, 1, 0, 0, uint64(w.delta), 1, w.nPools) // type, start, duration, the distance to those before, flags
	return chunkOf(w.events, sized(append(pools, w.pools...)), w.metadata())
}

func chunkOf(events, pools, metadata []byte) []byte {
	b := append([]byte(chunkMagic), 0, 2, 0, 0)
	at := uint64(chunkHeaderBytes + len(events))
	for _, v := range []uint64{
		at + uint64(len(pools)+len(metadata)), at, at + uint64(len(pools)), 1795293131e9, 1e9, 0, 1e9,
	} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(append(b, 0, 0, 0, 0), events...)
	return append(append(b, pools...), metadata...)
}

// The decoder reads what the writer writes, so that hostile recordings are refused only for their fault.
func TestWriter(t *testing.T) {
	w := newWriter()
	w.pool("jdk.types.Symbol", 2).entry(1, "Shop", 2, "buy").pool("java.lang.Class", 1).entry(1, 1)
	w.pool("jdk.types.Method", 1).entry(1, 1, 2).pool("jdk.types.StackTrace", 1).entry(1, 0, 1, 1, 7)
	w.pool("java.lang.Thread", 1).entry(5, "os", 9, "java", 3)
	w.event("jdk.ExecutionSample", 500, 5, 1, 0, 0).event("jdk.ThreadPark", 100, 50, 5, 1)
	pd, stats, err := Decode(w.bytes(), Options{})
	require.NoError(t, err)
	require.Equal(t, events.Stats{Events: 3}, stats)
	text := profiletest.Render(pd)
	require.Contains(t, text, "sample @1795293131000000500 {thread.id=3, thread.name=\"java\"}\n        Shop.buy :7")
	require.Contains(t, text, "sample 50@1795293131000000150 {thread.id=3, thread.name=\"java\"}\n        Shop.buy :7")
}

// hostile returns recordings that are made to cost much, and labels for them.
var hostile = sync.OnceValue(func() map[string][2][]byte {
	out := map[string][2][]byte{}
	add := func(name string, data []byte) { out[name] = [2][]byte{data, nil} }
	many := func(n int, one func(w *writer, i int)) []byte {
		w := newWriter()
		for i := range n {
			one(w, i)
		}
		return w.bytes()
	}

	// Counts that nothing follows.
	const huge = 1<<31 - 1
	add("symbols", newWriter().pool("jdk.types.Symbol", huge).bytes())
	add("stacks", newWriter().pool("jdk.types.StackTrace", huge).bytes())
	add("frames", newWriter().pool("jdk.types.StackTrace", 1).entry(1, 0, huge).bytes())
	characters := newWriter().pool("jdk.types.Symbol", 1).entry(1)
	characters.pools = numbers(append(characters.pools, 4), huge)
	add("characters", characters.bytes())
	for _, tree := range [][]uint64{{huge}, {1, 3, 4, 'r', 'o', 'o', 't', 0, huge}, {1, 3, 4, 'r', 'o', 'o', 't', 0, 0, huge}} {
		pools := sized(numbers(nil, 1, 0, 0, 0, 1, 0))
		add(fmt.Sprint("metadata of ", len(tree)), chunkOf(nil, pools, sized(numbers(numbers(nil, 0, 0, 0, 0), tree...))))
	}
	empty := newWriter("Empty", "jdk.Outer array:Empty[]")
	add("objects without fields", empty.pool("jdk.Outer", 1).entry(1, 100).bytes())
	add("an event beyond its end", newWriter("profiler.Malloc array:long[]").event("profiler.Malloc", 1<<20).bytes())

	// Pools before others, in a circle or one within the other.
	circle := newWriter()
	circle.delta = 1
	add("pools in a circle", circle.bytes())
	// Each has a text that holds all those behind it.
	const count, size = 5_000, 4 + 1 + 1 + 1 + 9 + 1 + 1 + 1 + 1 + 1 + 1 + 4
	nested := make([]byte, 0, count*size)
	for i := range count {
		b := numbers(nil, 1, 0, 0, -size+1<<64, 1, 1, newWriter().class("jdk.types.Symbol"), 1, 1, 3)
		n := (count - 1 - i) * size
		b = append(b, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21))
		nested = append(nested, sized(b)...)
	}
	last := sized(numbers(nil, 1, 0, 0, -size+1<<64, 1, 0))
	add("pools within pools", chunkOf(nested, last, newWriter().metadata()))

	// What others refer to, again and again.
	long := strings.Repeat("x", 64<<10)
	names := newWriter().pool("jdk.types.Symbol", 2).entry(1, long, 2, long).pool("java.lang.Class", 1).entry(1, 1).pool("jdk.types.Method", 50_000)
	for i := range 50_000 {
		names.entry(i, 1, 2)
	}
	names.pool("jdk.types.StackTrace", 1).entry(1, 0, 50_000)
	for i := range 50_000 {
		names.entry(i, 1)
	}
	add("long names", names.event("jdk.ExecutionSample", 1, 1, 1, 0, 0).bytes())
	var state string
	for range 20 {
		state += long
	}
	states := newWriter("profiler.WallClockSample startTime:long state:jdk.types.ThreadState*")
	states.pool("jdk.types.ThreadState", 1).entry(1, state)
	for range 40_000 {
		states.event("profiler.WallClockSample", 1, 1)
	}
	add("a long state", states.bytes())
	threads := newWriter().pool("java.lang.Thread", 1).entry(1, "", 1, long, 1)
	for i := range 50_000 {
		threads.event("jdk.ExecutionSample", 1, 1, 1, 0, uint64(i))
	}
	add("a thread's long name", threads.bytes())
	wide := "Wide"
	for i := range 5_000 {
		wide += fmt.Sprintf(" f%d:int", i)
	}
	pools := newWriter(wide)
	for range 60_000 {
		pools.pool("Wide", 0)
	}
	add("empty pools of many fields", pools.bytes())
	number := newWriter()
	number.classes[0] = "int " + strings.Repeat("x", 4096) + ":long"
	add("a long name of a field", number.bytes())
	add("chunks", []byte(strings.Repeat(string(newWriter().event("jdk.ExecutionSample", 1, 1, 1, 0, 0).bytes()), 300)))

	// Much of what is small.
	add("events", many(60_000, func(w *writer, i int) { w.event("jdk.ExecutionSample", uint64(i), 0, 0, 0, 0) }))
	add("events that each become two", many(60_000, func(w *writer, i int) { w.event("jdk.ThreadPark", 1, 1, 1, 0) }))
	add("spans", many(40_000, func(w *writer, i int) {
		w.event("jdk.ThreadPark", 1, 1, 1, 0).event("jdk.ExecutionSample", 1, 1, 1, 0, uint64(i))
	}))
	add("small stacks", many(50_000, func(w *writer, i int) {
		w.pool("jdk.types.StackTrace", 1).entry(i, 0, 1, 1, i).event("jdk.ExecutionSample", 1, 1, uint64(i), 0, 0)
	}))
	add("symbols of characters", many(40_000, func(w *writer, i int) {
		w.pool("jdk.types.Symbol", 1).entry(i)
		w.pools = append(w.pools, 4, 1, 'x')
	}))

	// Labels.
	entry := func(number protowire.Number, key uint64, value []byte) []byte {
		content := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), key)
		content = protowire.AppendBytes(protowire.AppendTag(content, 2, protowire.BytesType), value)
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	var context, snapshot []byte
	for i := range 1000 {
		pair := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(i))
		pair = protowire.AppendVarint(protowire.AppendTag(pair, 2, protowire.VarintType), uint64(i))
		context = protowire.AppendBytes(protowire.AppendTag(context, 1, protowire.BytesType), pair)
		snapshot = append(snapshot, entry(2, uint64(i), []byte(fmt.Sprint(i, strings.Repeat("x", 1000))))...)
	}
	spans := many(50_000, func(w *writer, i int) { w.event("jdk.ExecutionSample", 1, 1, 1, 7, uint64(i)) })
	out["many labels"] = [2][]byte{spans, append(snapshot, entry(1, 7, context)...)}
	var contexts []byte
	for i := range 40_000 {
		contexts = append(contexts, entry(1, uint64(i), nil)...)
	}
	out["many contexts"] = [2][]byte{spans, contexts}
	return out
})

func requireBounded(t *testing.T, data, labels []byte) (err error) {
	t.Helper()
	var result any
	cost := profiletest.MeasureReserved(t, 4<<20, func(reserve func(int) error) {
		result, _, err = Decode(data, Options{Labels: labels, Options: events.Options{Meter: &pdatasize.Meter{Reserve: reserve}}})
	})
	profiletest.RequireBounded(t, cost, len(data)+len(labels), 8<<20, 120)
	_ = result
	return err
}

// wantErrors are the errors for hostile recordings that are refused; the others are read.
var wantErrors = map[string]error{
	"symbols": errCount, "stacks": errCount, "frames": errCount, "characters": errCount, "metadata of 1": errCount,
	"metadata of 9": errCount, "metadata of 10": errCount, "an event beyond its end": errCount, "objects without fields": errClass,
	"pools in a circle": errPools, "pools within pools": errCostly, "empty pools of many fields": errCostly, "long names": errNames,
	"a long name of a field": errMetadata,
}

func TestDecodeIsBounded(t *testing.T) {
	for name, of := range hostile() {
		t.Run(name, func(t *testing.T) {
			if err := requireBounded(t, of[0], of[1]); wantErrors[name] != nil {
				require.ErrorIs(t, err, wantErrors[name])
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"nativemem", "new_spancontext", "wall_tick_sample"} {
		data, options := recording(f, name)
		f.Add(data, options.Labels)
	}
	for _, of := range hostile() {
		if len(of[0]) < 64<<10 {
			f.Add(of[0], of[1])
		}
	}
	f.Fuzz(func(t *testing.T, data, labels []byte) {
		if requireBounded(t, data, labels) == nil {
			pd, _, err := Decode(data, Options{Labels: labels})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
		}
	})
}
