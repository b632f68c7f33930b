// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"bytes"
	"fmt"
	"strings"
)

// around puts pieces between a head and a tail.
func around(head, tail string, piece func(i int) string) func(int) []byte {
	return func(size int) []byte {
		return append(fill(size-len(tail), []byte(head), func(b []byte, i int) []byte { return append(b, piece(i)...) }),
			tail...)
	}
}

// same puts one piece again and again between a head and a tail.
func same(head, piece, tail string) func(int) []byte {
	return func(size int) []byte { return append(repeat(size-len(tail), []byte(head), []byte(piece)), tail...) }
}

// nodesAndSamples returns a CPU profile of V8 of nodes, with a sample of each.
func nodesAndSamples(node func(i int) string) func(int) []byte {
	return func(size int) []byte {
		nodes, samples := bytes.NewBufferString(`{"nodes":[{"id":1}`), bytes.NewBufferString("0")
		for i := 2; nodes.Len()+samples.Len() < size; i++ {
			nodes.WriteString(node(i))
			fmt.Fprintf(samples, ",%d", i)
		}
		return join(nodes.Bytes(), []byte(`],"samples":[`), samples.Bytes(), []byte("]}"))
	}
}

// V8 are CPU profiles of V8, as JSON.
var V8 = Inputs{
	"chains": nodesAndSamples(func(i int) string {
		return fmt.Sprintf(`,{"id":%d,"parent":%d,"callFrame":{"functionName":"f%d"}}`, i, i-i%500, i)
	}),
	"deep":     nodesAndSamples(func(i int) string { return fmt.Sprintf(`,{"id":%d,"parent":%d}`, i, i-1) }),
	"flat":     nodesAndSamples(func(i int) string { return fmt.Sprintf(`,{"id":%d}`, i) }),
	"samples":  same(`{"nodes":[{"id":1,"callFrame":{"functionName":"f"}}],"samples":[1`, ",1", "]}"),
	"empty":    same(`{"nodes":[{}`, ",{}", "]}"),
	"children": around(`{"nodes":[{"id":1,"children":[0`, "]}]}", func(i int) string { return fmt.Sprintf(",%d", i) }),
	"nesting":  same("", "[", ""),
	"heads": around(`{"head":{"id":1,"children":[{}`, "]}}", func(i int) string {
		return fmt.Sprintf(`,{"id":%d,"selfSize":1,"callFrame":{"functionName":"%d"}}`, i, i)
	}),
	"deep heads": same(`{"head":`, `{"selfSize":1,"children":[`, ""),
	"heads within heads": around(`{"head":{"children":[{}`, "]}}", func(int) string {
		return "," + strings.Repeat(`{"selfSize":1,"children":[`, 500) + strings.Repeat("]}", 500)
	}),
	"text": same(`{"nodes":[{"callFrame":{"functionName":"`, "\xff", `"}}]}`),
	"stacks": around(`{"startTime":1,"endTime":9,"samples":[1],"timeDeltas":[1],"nodes":[{"id":0,"callFrame":{}}`, "]}",
		func(i int) string {
			return fmt.Sprintf(`,{"id":%d,"callFrame":{"functionName":"%d"}}`, i+1, i)
		}),
}

// Speedscope are files for speedscope.
var Speedscope = Inputs{
	"frames": same(`{"shared":{"frames":[{}`, ",{}", `]},"profiles":[{}]}`),
	"names": around(`{"shared":{"frames":[{}`, `]},"profiles":[{}]}`, func(i int) string {
		return fmt.Sprintf(`,{"name":"%d"}`, i)
	}),
	"profiles": same(`{"profiles":[{}`, ",{}", "]}"),
	"stacks":   same(`{"shared":{"frames":[{}]},"profiles":[{"samples":[[0]`, ",[0]", "]}]}"),
	"weights":  same(`{"shared":{"frames":[{}]},"profiles":[{"samples":[[0]],"weights":[1`, ",1", "]}]}"),
	"threads": around(`{"shared":{"frames":[{}]},"profiles":[{}`, "]}", func(i int) string {
		return fmt.Sprintf(`,{"name":"%d","samples":[[0]],"weights":[1]}`, i)
	}),
	"a deep stack": func(size int) []byte {
		n := size / 60
		return join([]byte(`{"shared":{"frames":[{}]},"profiles":[{"unit":"seconds","events":[{}`),
			bytes.Repeat([]byte(`,{"type":"O","frame":0}`), n), around("", "]}]}", func(i int) string {
				return fmt.Sprintf(`,{"type":"%c","frame":0,"at":%d}`, "CO"[i%2], i)
			})(size-23*n))
	},
	"many stacks": around(`{"shared":{"frames":[{}]},"profiles":[{"unit":"seconds","events":[{}`, "]}]}",
		func(i int) string {
			return fmt.Sprintf(`,{"type":"O","frame":0,"at":%d}`, i)
		}),
	"nesting": same(`{"profiles":`, "[", ""),
}

// Firefox are profiles of the Firefox Profiler.
var Firefox = Inputs{
	"threads":   same(`{"threads":[{}`, ",{}", "]}"),
	"processes": same(`{"processes":[{}`, ",{}", "]}"),
	"libraries": same(`{"libs":[{}`, ",{}", `],"threads":[{}]}`),
	"strings":   same(`{"threads":[{"stringArray":[""`, `,""`, `]}]}`),
	"columns":   same(`{"threads":[{"stackTable":{"frame":[0`, ",0", `]},"samples":{"stack":[0]}}]}`),
	"rows": same(`{"threads":[{"stackTable":{"schema":{"prefix":0,"frame":1},"data":[[0,0]`, ",[0]",
		`]},"samples":{"stack":[0]}}]}`),
	"samples": same(`{"threads":[{"samples":{"stack":[0`, ",0", `]}}]}`),
	"times":   same(`{"threads":[{"samples":{"stack":[0],"time":[0`, ",0", `]}}]}`),
	"nulls":   same(`{"threads":[{"samples":{"stack":[null`, ",null", `]}}]}`),
	"small":   same(`{"threads":[{}`, `,{"samples":{"stack":[0]}}`, `]}`),
	"shared stacks": func(size int) []byte {
		return join(same(`{"shared":{"frameTable":{"func":[0]},"stackTable":{"frame":[0`, ",0", `]}},"threads":[{}`)(size/2),
			same("", `,{"samples":{"stack":[0],"timeDeltas":[1]}}`, "]}")(size/2))
	},
	"deep": func(size int) []byte {
		n := size / 20
		numbers := around("", "", func(i int) string { return fmt.Sprintf(",%d", i) })
		return join([]byte(`{"threads":[{"frameTable":{"func":[0]},"stackTable":{"frame":[0`), bytes.Repeat([]byte(",0"), n),
			[]byte(`],"prefix":[null`), numbers(6*n), []byte(`]},"samples":{"timeDeltas":[1`), bytes.Repeat([]byte(",1"), n),
			[]byte(`],"stack":[0`), numbers(6*n), []byte("]}}]}"))
	},
	"frames with one long text": func(size int) []byte {
		return join([]byte(`{"threads":[{"stringTable":["`), bytes.Repeat([]byte("ä("), size/6), same(
			`"],"frameTable":{"schema":{"location":0},"data":[[0]`, ",[0]", `]}`)(size/4), around(
			`,"stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0]`, `]},"samples":{"stack":[0]}}]}`,
			func(i int) string { return fmt.Sprintf(",[null,%d]", i) })(size/2))
	},
	"frames with one long name": func(size int) []byte {
		name := strings.Repeat("ä", size/8)
		return join(fmt.Appendf(nil, `{"libs":[{"path":"%s"}],"threads":[{"stringArray":["%s"],"resourceTable":{"lib":[0]},`+
			`"funcTable":{"name":[0],"fileName":[0],"resource":[0]}`, name, name), same(
			`,"frameTable":{"func":[0`, ",0", `]}`)(size/8), around(
			`,"stackTable":{"frame":[0`, `]},"samples":{"stack":[0]}}]}`,
			func(i int) string { return fmt.Sprintf(",%d", i) })(size/4))
	},
	"circle": same(
		`{"threads":[{"frameTable":{"func":[0]},"stackTable":{"frame":[0,0],"prefix":[1,0]},"samples":{"stack":[0`, ",1",
		`]}}]}`),
}

// mangled returns a linker's name whose demangled form is four times as long.
func mangled(i int) string { return fmt.Sprintf("_Z7f%06dISsSsSsSsSsSsSsEvv", i%1e6) }

// Perf are outputs of perf script.
var Perf = Inputs{
	"processes": around("", "", func(i int) string { return fmt.Sprintf("a %d/%d 1.1: e%d:\n", i, i, i) }),
	"stacks":    around("", "", func(i int) string { return fmt.Sprintf("a 1 1.%d: e:\n\t%x f%x (x)\n", i, i, i) }),
	"small stacks": around("", "", func(i int) string {
		return fmt.Sprintf("a %d/1 9.%06d: 1 x:\n\t%x a (b)\n", i%1000, i%1e6, i)
	}),
	"deep":       same("a 1 1.1: e:\n", "\t1 a\n", ""),
	"inlined":    same("a 1 1.1: e:\n", "\t1 a (inlined)\n", ""),
	"times":      same("", "1.1: ", ""),
	"candidates": same("a ", "1 1.1: ", ""),
	"many times": same("",
		"1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1: 1.1:\n", ""),
	"many events": same("",
		"a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a: a:\n", ""),
	"addresses":   same("", "               a", ""),
	"parentheses": same("a 1 1.1: e:\n\t1 (", "()", ")"),
	"source lines": around("a 1 1.1: e:\n", "", func(i int) string {
		return fmt.Sprintf("\t%x a\n  a%d.c:%d (inlined)\n", i%7, i, i)
	}),
	"no times": around("", "", func(i int) string {
		return fmt.Sprintf("a%d %d e%d:\n\t            12%02x f%d (x%d)\n\n", i, i, i%9, i%256, i, i)
	}),
	"bare":    around("", "", func(i int) string { return fmt.Sprintf("%16s %5d  %16x f%d (x)\n", "dd", i, i+0xa000, i) }),
	"mangled": around("a 1 1.1: e:\n", "", func(i int) string { return fmt.Sprintf("\t%x %s\n", i%7, mangled(i)) }),
	"lines":   same("", "\n", ""),
	"headers": same("", "a 1 1.1: e:\n", ""),
	"spaces":  same("", " ", ""),
	"long":    same("a 1 1.1: e:\n\t1 ", "\xff", ""),
}

// Folded are folded stacks.
var Folded = Inputs{
	"keys":   around("main 1 ", "", func(i int) string { return fmt.Sprintf("k%d=v,", i) }),
	"stacks": around("", "", func(i int) string { return fmt.Sprintf("a%d 1\n", i) }),
	"keys and times": around("", "", func(i int) string {
		return fmt.Sprintf("a;%d 1 k=%d %d\n", i, i, 1687841528000000+i)
	}),
	"fractions":   around("", "", func(i int) string { return fmt.Sprintf("a%d .5\n%d 0.5\n", i, i) }),
	"pairs":       around("", "\na 1", func(i int) string { return fmt.Sprintf("%d 1 2\n", i) }),
	"one stack":   same("", "a 1\n", ""),
	"mangled":     around("", "", func(i int) string { return mangled(i) + " 1\n" }),
	"deep":        same("", "a;", " 1"),
	"times":       same("", "a 1 1687841528000\n", ""),
	"spaces":      same("", " ", "1"),
	"empty lines": same("", "\n", ""),
	"not UTF-8":   same("", "\xff", " 1"),
}

// HEC are events of Splunk's HTTP event collector.
var HEC = Inputs{
	"many fields":           around(`{"event":1,"fields":{`, `"x":1}}`, numberField),
	"many fields, profiles": around(`{"sourcetype":"otel.profiling","event":1,"fields":{`, `"x":1}}`, numberField),
	"many fields, twice": func(size int) []byte {
		event := around(`{"event":1,"fields":{`, `"x":1}}`, numberField)(size / 2)
		return join(event, event)
	},
	"lists in fields": func(size int) []byte {
		event := around(`{"event":1,"fields":{"a":[{`, `"x":1}]}}`, numberField)(size / 2)
		return join(event, event)
	},
	"a large object":    around(`{"event":{`, `"x":{}}}`, func(i int) string { return fmt.Sprintf(`"k%d":{},`, i) }),
	"a list of numbers": same(`{"event":[`, "1,", "1]}"),
	"a list of lists":   same(`{"event":[`, "[],", "1]}"),
	"nested": func(size int) []byte {
		return []byte(`{"event":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2) + "}")
	},
	"tiny events":   same("", `{"event":1}`, ""),
	"empty objects": same("", "{}", ""),
	"spaces":        same("", " ", ""),
	"a long number": same(`{"event":`, "1", "}"),
	"a long text":   same(`{"event":"`, `\u0000`, `"}`),
}

func numberField(i int) string { return fmt.Sprintf(`"k%d":1,`, i) }
