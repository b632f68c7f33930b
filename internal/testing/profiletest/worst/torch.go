// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// torchHead begins a trace of PyTorch's profiler; the events that follow begin with a comma.
const torchHead = `{"schemaVersion":1,"baseTimeNanoseconds":1790000000000000000,"traceEvents":[{}`

// TraceEvents are Chrome's trace events: of PyTorch's profiler, with profiles of V8, and spans.
var TraceEvents = Inputs{
	"deep": around(torchHead, "]}", func(i int) string { return torchEvent("cpu_op", i, 1e9-2*i, "") }),
	"wide": around(torchHead, "]}", func(i int) string { return torchEvent("kernel", i, 1, correlation(i)) }),
	// Python frames that many events name, and launches below them.
	"shared call stack": around(torchHead+torchEvent("cpu_op", 0, 1e9, `"Call stack":"`+strings.Repeat("a;b;", 512)+`"`),
		"]}", func(i int) string {
			return torchEvent("cuda_runtime", i+1, 1, correlation(i)) + torchEvent("kernel", i, 1, correlation(i))
		}),
	"threads of ends": around(torchHead, "]}", func(i int) string { return fmt.Sprintf(`,{"ph":"E","pid":%d,"ts":1}`, i) }),
	"ends":            same(torchHead, `,{"ph":"E","ts":1}`, "]}"),
	"brackets":        same(`{"schemaVersion":1,"a":`, "[", ""),
	"empty":           same(torchHead, ",{}", torchEvent("cpu_op", 1, 1, "")+"]}"),
	"spans": around("[{}", "]", func(i int) string {
		return fmt.Sprintf(`,{"ph":"B","ts":%d,"tid":"t%d","name":"n%d"}`, i, i%99, i)
	}),
	"events":   same("[{}", ",{}", "]"),
	"profiles": same("[{}", `,{"name":"Profile"}`, "]"),
	"chunks": around(`[{"name":"Profile"}`, "]", func(i int) string {
		return fmt.Sprintf(`,{"name":"ProfileChunk","ts":%d}`, 1<<30-i)
	}),
	"threads": around("[{}", "]", func(i int) string {
		return fmt.Sprintf(`,{"ph":"M","name":"thread_name","tid":%d,"args":{"name":"%d"}}`, i, i)
	}),
}

// torchEvent returns an interval with a name of its own.
func torchEvent(category string, ts, duration int, args string) string {
	return fmt.Sprintf(`,{"ph":"X","cat":%q,"name":"%d","pid":1,"tid":2,"ts":%d,"dur":%d,"args":{%s}}`, category, ts, ts,
		duration, args)
}

func correlation(i int) string { return fmt.Sprintf(`"correlation":%d`, i) }

// torchKey begins a snapshot, with the key of its segments; torchFrames goes on to the frames of the first.
const (
	torchKey    = "\x80\x04}\x94\x8c\x08segments"
	torchFrames = torchKey + "](}(\x8c\x06frames"
)

// TorchMemory are pickles such as PyTorch's memory snapshots.
var TorchMemory = Inputs{
	"lists":   same("\x80\x04(", "]", "t."),
	"dicts":   same("\x80\x04", "}", "."),
	"memo":    same("\x80\x04N", "\x94", "."),
	"marks":   same("\x80\x04", "(", "."),
	"texts":   same("\x80\x04", "\x8c\x00", "."),
	"numbers": same("\x80\x04", "J\xff\xff\xff\xff", "."),
	"keys":    same(torchKey+"](}(", "NN", "ues."),
	"nested": func(size int) []byte {
		return append(same("\x80\x04", "]", "")(size/2), same("", "a", ".")(size/2)...)
	},
	"memo bomb": same(torchKey+"]\x94", "](h\x00h\x00e\x94", "s."),
	// A list of many segments, all the same one, which has a list of as many blocks, all the same one.
	"shared": func(size int) []byte {
		const block = "}(\x8c\x05state\x8c\x06active\x8c\x04size\x4b\x01u\x94"
		return append(same(torchKey+"](}(\x8c\x06blocks]("+block, "h\x01", "eu\x94")(size/2),
			same("", "h\x02", "es.")(size/2)...)
	},
	// A stack of many frames, all the same one or of one name, which is long.
	"frames of the capture": func(size int) []byte {
		name := pickled(strings.Repeat("ä", size/4) + "gather_with_cpp")
		return same(torchFrames+"](}(\x8c\x04name"+name+"u\x94", "h\x01", "eues.")(size)
	},
	"frames of one name": func(size int) []byte {
		frames := "}(h\x01](" + strings.Repeat("}h\x02h\x03s", 1000) + "eu"
		name := pickled(strings.Repeat("ä", size/4))
		return same(torchFrames+"\x94](}\x8c\x04name\x94"+name+"\x94seu", frames, "es.")(size)
	},
}

// pickled returns a string as pickles have it.
func pickled(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}
