// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package traceevents

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// capture returns one of the traces of PyTorch 2.11 on an H200: three steps of a small transformer.
func capture(t testing.TB, name string) []byte {
	return profiletest.ReadFile(t, "../../../testdata/torch/torch-"+name+".json.gz")
}

// sums adds up the values of a type by what key returns for the functions of a stack, the leaf first.
func sums(pd pprofile.Profiles, sampleType string, key func(functions []string) string) (
	values map[string]int64, counts map[string]int) {
	values, counts = map[string]int64{}, map[string]int{}
	for o := range profiletest.Observations(pd) {
		if o.SampleType == sampleType {
			values[key(o.Functions)] += o.Value
			counts[key(o.Functions)]++
		}
	}
	return values, counts
}

func all([]string) string { return "" }

// kindOf distinguishes work on a GPU as PyTorch does.
func kindOf(frames []string) string {
	if word, _, _ := strings.Cut(frames[0], " "); word == "Memcpy" || word == "Memset" {
		return word
	}
	return "kernel"
}

// opOf returns the innermost op around a launch.
func opOf(frames []string) string {
	for _, f := range frames[1:] {
		if strings.HasPrefix(f, "aten::") {
			return f
		}
	}
	return ""
}

// The numbers are those of PyTorch's own tables, and of the traces added up with jq.
func TestCaptures(t *testing.T) {
	for name, want := range map[string]struct {
		kinds                      map[string]int64
		ops                        map[string]int64
		cpu, delay, allocated, all int64
	}{
		"plain": {
			kinds: map[string]int64{"kernel": 28_120_956, "Memcpy": 209_249, "Memset": 42_435},
			ops: map[string]int64{
				"aten::mm": 14_779_987, "aten::addmm": 5_125_256, "aten::_efficient_attention_backward": 2_056_744,
				"aten::copy_": 1_532_532, "aten::_efficient_attention_forward": 993_270,
			},
			cpu: 50_825_948, delay: 101_529_485, all: 28_372_640,
		},
		"stacks": {
			kinds: map[string]int64{"kernel": 28_309_664, "Memcpy": 206_877, "Memset": 40_256},
			ops:   map[string]int64{"aten::mm": 14_884_986, "aten::addmm": 5_158_469},
			cpu:   120_678_694, delay: 54_775_100, allocated: 8_187_821_568, all: 28_556_797,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode(bytes.NewReader(capture(t, name)), Options{})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Zero(t, stats.Dropped+stats.Truncated+stats.Filtered)
			total := func(name string) int64 {
				values, _ := sums(pd, name, all)
				return values[""]
			}
			kinds, counts := sums(pd, "gpu_time", kindOf)
			assert.Equal(t, want.kinds, kinds)
			assert.Equal(t, map[string]int{"kernel": 693, "Memcpy": 42, "Memset": 51}, counts)
			assert.Equal(t, want.all, total("gpu_time"))
			ops, _ := sums(pd, "gpu_time", opOf)
			for op, nanos := range want.ops {
				assert.Equal(t, nanos, ops[op], op)
			}
			assert.NotContains(t, ops, "", "each has a launch in an op")
			_, threads := sums(pd, "gpu_time", func(frames []string) string {
				isBackward := slices.ContainsFunc(frames, func(f string) bool {
					return strings.HasPrefix(f, "autograd::engine::evaluate_function")
				})
				return fmt.Sprint(isBackward)
			})
			assert.Equal(t, map[string]int{"true": 591, "false": 195}, threads,
				"launches of autograd's thread and of the main one")
			launches, _ := sums(pd, "gpu_time", func(frames []string) string { return frames[1][:2] })
			assert.Equal(t, map[string]int64{"cu": want.all}, launches, "each is below a call of CUDA's")
			for o := range profiletest.Observations(pd) {
				if o.SampleType == "gpu_time" {
					require.Subset(t, o.Attributes(), map[string]any{"gpu.device": int64(0), "gpu.stream": int64(7)})
				}
			}
			assert.Equal(t, want.cpu, total("cpu_time"))
			assert.Equal(t, want.delay, total("gpu_launch_delay"))
			assert.Equal(t, want.allocated, total("allocated_space"))
			assert.Equal(t, want.allocated, total("freed_space"), "all of it was freed again")
		})
	}
}

// Each event becomes a span of its thread or stream.
func TestSpans(t *testing.T) {
	for name, want := range map[string]map[category]int{
		"plain":  {kernel: 693, transfer: 42 + 51},
		"stacks": {kernel: 693, transfer: 42 + 51, python: 4863},
	} {
		d := newDecoder(bytes.NewReader(capture(t, name)), Options{})
		d.b.Reset(events.Options{})
		require.NoError(t, d.read())
		got := map[category]int{}
		for _, t := range d.list {
			for _, s := range t.spans {
				if s.is.isGPU() || s.is == python {
					got[s.is]++
				}
			}
		}
		assert.Equal(t, want, got, name)
	}
}

// Python's frames lead from the module to the ops of both threads.
func TestPythonStacks(t *testing.T) {
	pd, _, err := Decode(bytes.NewReader(capture(t, "stacks")), Options{})
	require.NoError(t, err)
	text := profiletest.Render(pd)
	for _, want := range []string{`
        "Memcpy DtoD (Device -> Device)" {profile.frame.type="gpu_memory"}
        cudaMemcpyAsync {profile.frame.type="gpu_runtime"}
        aten::copy_ {profile.frame.type="torch_op"}
        aten::pow {profile.frame.type="torch_op"}
        PowBackward0 {profile.frame.type="torch_op"}
        "autograd::engine::evaluate_function: PowBackward0" {profile.frame.type="torch_op"}
        "<built-in method run_backward of torch._C._EngineBase object>" {profile.frame.type="cpython"}
        _engine_run_backward from line 860 torch/autograd/graph.py:860 {profile.frame.type="cpython"}
        backward from line 253 torch/autograd/__init__.py:253 {profile.frame.type="cpython"}
        backward from line 576 torch/_tensor.py:576 {profile.frame.type="cpython"}
        step from line 10 gpu.py:10 {profile.frame.type="cpython"}
        run from line 14 gpu.py:14 {profile.frame.type="cpython"}
        "<module>" from line 30 gpu.py:30 {profile.frame.type="cpython"}
`, `
        cudaLaunchKernel {profile.frame.type="gpu_runtime"}
        aten::normal_ {profile.frame.type="torch_op"}
        aten::randn {profile.frame.type="torch_op"}
        "<built-in method randn of type object>" {profile.frame.type="cpython"}
        step from line 10 gpu.py:10 {profile.frame.type="cpython"}
        run from line 14 gpu.py:14 {profile.frame.type="cpython"}
        "<module>" from line 30 gpu.py:30 {profile.frame.type="cpython"}
`} {
		assert.Contains(t, text, want)
	}
	assert.Contains(t, text, "sample 7711@1795748711473895761",
		"the end of the first kernel: 1790857026000000000 + 1000 × 4891685473888.05 + 7711")
}

func written(phase, category, name string, ts, more string) string {
	return fmt.Sprintf(`{"ph":%q,"cat":%q,"name":%q,"pid":1,"tid":2,"ts":%s%s}`, phase, category, name, ts, more)
}

func trace(list ...string) string {
	return `{"schemaVersion":1,"baseTimeNanoseconds":1790000000000000000,"traceEvents":[` + strings.Join(list, ",\n") +
		`]}`
}

// stack returns a stack as profiletest.Render writes it: names and types of frames in turn.
func stack(frames ...string) (text string) {
	for i := 0; i < len(frames); i += 2 {
		text += fmt.Sprintf("\n        %s {profile.frame.type=%q}", frames[i], frames[i+1])
	}
	return text + "\n"
}

var guess = events.Options{Anchor: events.Anchor{EndNanos: 1790000000000000000, Guess: "arrival"}}

func TestEvents(t *testing.T) {
	const noTimes = `{"ph":"X","cat":"cpu_op"}`
	for name, tc := range map[string]struct {
		text    string
		want    []string
		dropped int
		unread  map[string]int
	}{
		"time of its own, out of order": {text: trace(
			written("X", "cpu_op", "inner", "2", `,"dur":1`), written("X", "cpu_op", "outer", "1", `,"dur":4.5`),
			written("X", "cpu_op", "last", "9", `,"dur":1`),
		), want: []string{
			"sample 1000@1790000000000002000 2500@1790000000000005500 {process.pid=1, thread.id=2}\n        outer ",
			"sample 1000@1790000000000003000 {process.pid=1, thread.id=2}\n        inner {profile.frame.type=\"torch_op\"}\n        outer ",
			"sample 1000@1790000000000010000 {process.pid=1, thread.id=2}\n        last ",
		}},
		"begin and end are events": {text: trace(
			written("E", "cpu_op", "a", "8", ""), written("B", "cpu_op", "a", "1", ""), written("B", "cpu_op", "b", "2", ""),
			written("E", "", "", "4", ""),
		), want: []string{
			"sample 1000@1790000000000002000 4000@1790000000000008000 {process.pid=1, thread.id=2}\n        a ",
			"sample 2000@1790000000000004000 {process.pid=1, thread.id=2}\n        b ",
		}},
		"a kernel whose begin and end are events": {text: trace(
			written("B", "kernel", "k", "20", `,"args":{"stream":7}`), written("E", "kernel", "k", "22.5", ""),
		), want: []string{"sample 2500@1790000000000022500 {gpu.device=1, gpu.stream=7, "}},
		"a span of two events within one of one": {text: trace(
			written("X", "cpu_op", "outer", "0", `,"dur":10`), written("B", "cpu_op", "inner", "0", ""),
			written("E", "cpu_op", "inner", "5", ""), written("B", "cpu_op", "first", "20", ""),
			written("B", "cpu_op", "second", "20", ""), written("E", "", "", "22", ""), written("E", "", "", "22", ""),
		), want: []string{
			"sample 5000@1790000000000010000 {process.pid=1, thread.id=2}\n        outer ",
			"sample 5000@1790000000000005000 {process.pid=1, thread.id=2}\n        inner {profile.frame.type=\"torch_op\"}\n        outer ",
			"sample 2000@1790000000000022000 {process.pid=1, thread.id=2}\n        second {profile.frame.type=\"torch_op\"}\n        first ",
		}},
		"what does not end lasts as long as the trace": {text: trace(
			written("B", "cpu_op", "a", "1", ""), written("X", "cpu_op", "b", "3", `,"dur":4`), written("E", "", "", "0", ""),
		), want: []string{"sample 2000@1790000000000003000 {", "sample 4000@1790000000000007000 {"}},
		"spans that overlap count each moment once": {text: trace(
			written("X", "cpu_op", "a", "0", `,"dur":10`), written("X", "cpu_op", "b", "5", `,"dur":10`),
		), want: []string{
			"sample 5000@1790000000000005000 {process.pid=1, thread.id=2}" + stack("a", "torch_op"),
			"sample 5000@1790000000000010000 {process.pid=1, thread.id=2}" + stack("b", "torch_op", "a", "torch_op"),
			"sample 5000@1790000000000015000 {process.pid=1, thread.id=2}" + stack("b", "torch_op"),
		}},
		"a span that outlasts its caller is no caller of what the thread does then": {text: trace(
			written("X", "cpu_op", "forward", "0", `,"dur":100`), written("X", "cpu_op", "send", "10", `,"dur":10`),
			written("X", "user_annotation", "nccl", "12", `,"dur":60`),
			written("X", "cuda_runtime", "launch1", "15", `,"dur":1,"args":{"correlation":1}`),
			written("X", "cuda_runtime", "launch2", "30", `,"dur":1,"args":{"correlation":2}`),
			written("X", "cuda_runtime", "launch3", "80", `,"dur":1,"args":{"correlation":3}`),
			written("X", "kernel", "k1", "90", `,"dur":1,"args":{"correlation":1}`),
			written("X", "kernel", "k2", "91", `,"dur":1,"args":{"correlation":2}`),
			written("X", "kernel", "k3", "92", `,"dur":1,"args":{"correlation":3}`),
		), want: []string{
			stack("k1", "gpu_kernel", "launch1", "gpu_runtime", "nccl", "torch_annotation", "send", "torch_op", "forward",
				"torch_op"),
			stack("k2", "gpu_kernel", "launch2", "gpu_runtime", "nccl", "torch_annotation", "forward", "torch_op"),
			stack("k3", "gpu_kernel", "launch3", "gpu_runtime", "forward", "torch_op"),
		}},
		"two ranks in one trace have the same ids": {text: strings.NewReplacer(
			`"pid":1,"tid":2,"ts":1`, `"pid":"[TP00] 7","tid":2,"ts":1`,
			`"pid":1,"tid":2,"ts":2`, `"pid":"[TP01-DP00] 7","tid":2,"ts":2`).Replace(trace(
			written("X", "cuda_runtime", "first", "10", `,"dur":1,"args":{"correlation":1}`),
			written("X", "kernel", "k1", "12", `,"dur":1,"args":{"correlation":1}`),
			written("X", "cuda_runtime", "second", "20", `,"dur":1,"args":{"correlation":1}`),
			written("X", "kernel", "k2", "22", `,"dur":1,"args":{"correlation":1}`),
		)), want: []string{
			`process.pid=7, thread.id=2, torch.rank=0}` + stack("first", "gpu_runtime"),
			`torch.rank=0}` + stack("k1", "gpu_kernel", "first", "gpu_runtime"),
			`torch.rank="TP01-DP00"}` + stack("k2", "gpu_kernel", "second", "gpu_runtime"),
		}},
		"a microsecond of rounding": {text: trace(
			written("X", "cpu_op", "outer", "0", `,"dur":10`), written("X", "cpu_op", "inner", "1", `,"dur":10`),
		), want: []string{"sample 10000@1790000000000011000 {process.pid=1, thread.id=2}" +
			stack("inner", "torch_op", "outer", "torch_op")}},
		"a launch of many kernels, a step, and a rank": {text: strings.Replace(trace(
			written("X", "kernel", "k1", "20", `,"dur":2,"args":{"device":3,"stream":7,"correlation":5}`),
			written("X", "user_annotation", "ProfilerStep#12", "0", `,"dur":10`),
			written("X", "cuda_runtime", "cudaGraphLaunch", "1", `,"dur":1,"args":{"correlation":5}`),
			written("X", "kernel", "k2", "30",
				`,"dur":3,"args":{"device":3,"stream":7,"correlation":5,"grid":[4,2,1],"block":[128, 1, 1]}`),
		), "{", `{"distributedInfo":{"backend":"nccl","rank":6,"world_size":8},`, 1), want: []string{
			"sample 2000@1790000000000022000 {gpu.device=3, gpu.stream=7, thread.name=\"GPU 3 stream 7\", torch.profiler.step=12}\n        k1 {profile.frame.type=\"gpu_kernel\"}\n        cudaGraphLaunch ",
			"sample 3000@1790000000000033000 {gpu.device=3, gpu.stream=7, thread.name=\"GPU 3 stream 7\", torch.profiler.step=12}\n        k2 ",
			"sample 19000 {", "sample 29000 {", "torch.rank=6", "torch.world_size=8",
		}},
		"no launch, but the op is known": {text: trace(
			written("X", "kernel", "k", "20", `,"dur":2,"args":{"stream":7,"External id":9,"correlation":5}`),
			written("X", "cpu_op", "op", "1", `,"dur":1,"args":{"External id":9}`),
		), want: []string{"thread.name=\"GPU 1 stream 7\"}\n        k {profile.frame.type=\"gpu_kernel\"}\n        op "}},
		"no launch": {
			text: trace(written("X", "Kernel", "k", "20", `,"dur":2`),
				written("X", "cuda_runtime", "cudaMalloc", "1", `,"dur":1`),
				written("X", "cpu_op", "op", "3", `,"dur":1`), written("X", "Kernel", "k2", "30", `,"dur":2`)),
			want: []string{"sample 2000@1790000000000022000 {", "        k {profile.frame.type=\"gpu_kernel\"}\n      sample"},
		},
		"what begins together": {text: trace(
			written("X", "cpu_op", "inner", "1", `,"dur":1`), written("X", "cpu_op", "outer", "1", `,"dur":3`),
		), want: []string{"inner {profile.frame.type=\"torch_op\"}\n        outer {"}},
		"allocations": {text: trace(
			written("X", "cpu_op", "op", "1", `,"dur":3`),
			written("i", "cpu_instant_event", "[memory]", "2", `,"args":{"Bytes":512,"Device Type":1,"Device Id":3}`),
			written("i", "cpu_instant_event", "[memory]", "3", `,"args":{"Bytes":-512,"Device Type":1}`),
		), want: []string{
			"sample 512@1790000000000002000 {gpu.device=3, process.pid=1, thread.id=2}\n        op ",
			"sample 512@1790000000000003000 {process.pid=1, thread.id=2}\n        op ",
		}},
		"before, in and after a step": {text: trace(
			written("X", "user_annotation", "ProfilerStep#7", "3", `,"dur":2`), written("X", "cpu_op", "a", "1", `,"dur":1`),
			written("X", "cpu_op", "b", "3", `,"dur":1`), written("X", "cpu_op", "c", "5", `,"dur":1`),
		), want: []string{
			"thread.id=2}\n        a ", "thread.id=2, torch.profiler.step=7}\n        b ", "thread.id=2}\n        c ",
		}},
		"the names of AMD, and a number that is not JSON": {
			text: trace(written("X", "gpu_memcpy", "CopyDeviceToHost", "20", `,"dur":2,"args":{"warps per SM":inf,"stream":0}`)),
			want: []string{"gpu.stream=0", "CopyDeviceToHost {profile.frame.type=\"gpu_memory\"}"},
		},
		"a call stack of an op within an op": {text: trace(
			written("X", "cpu_op", "outer", "1", `,"dur":4,"args":{"Call stack":"a.py(7): f;<string>(2): g;"}`),
			written("X", "cpu_op", "inner", "2", `,"dur":1,"args":{"Call stack":"a.py(7): f;<string>(2): g;"}`),
		), want: []string{
			"inner {profile.frame.type=\"torch_op\"}\n        outer {profile.frame.type=\"torch_op\"}\n        f from line 7 a.py:7 {profile.frame.type=\"cpython\"}\n        g from line 2 "}},
		"Unix time": {
			text: `[` + written("X", "cpu_op", "a", "1712195495520883.5", `,"dur":1`) + `]`,
			want: []string{"sample 1000@1712195495520884500 {"},
		},
		"a clock without a beginning": {
			text: `{"traceEvents":[` + written("X", "cpu_op", "a", "5", `,"dur":1`) + `]}`,
			want: []string{"sample 1000@1790000000000000000 {", `profile.clock.guess="arrival"`},
		},
		"names of threads": {
			text: trace(written("X", "cpu_op", "a", "1", `,"dur":1`),
				`{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"thread 2 (python3) "}}`),
			want: []string{`thread.name="python3"`},
		},
		"what cannot be read is counted": {
			text: trace(`7`, noTimes, written("X", "a new category", "", "1", `,"dur":1`),
				written("X", "cpu_op", "a", `"x"`, ""), written("X", "cpu_op", "b", "1e1", `,"dur":1`)),
			want: []string{"sample 1000@1790000000000011000 {process.pid=1, thread.id=2}\n        b "}, dropped: 3,
			unread: map[string]int{"a new category": 1},
		},
		"lengths that are no lengths": {
			text: trace(written("X", "kernel", "k", "20", `,"dur":-99,"args":{"stream":7,"correlation":5}`),
				written("X", "cuda_runtime", "launch", "1", `,"dur":inf,"args":{"correlation":5}`),
				written("X", "cpu_op", "a", "2", `,"dur":nan`), written("X", "cpu_op", "b", "30", `,"dur":1`)),
			want: []string{"sample 0@1790000000000020000 {", "sample 19000 {", "sample 1000@1790000000000031000 {"}, dropped: 3,
		},
		"strings with escapes": {
			text: trace(written("X", "cpu_op", `a"\é`+"\n", "1", `,"dur":1`)), want: []string{`"a\"\\é\n" {`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode(strings.NewReader(tc.text), Options{Options: guess})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			text := profiletest.Render(pd)
			for _, want := range tc.want {
				assert.Contains(t, text, want)
			}
			assert.Equal(t, tc.dropped, stats.Dropped)
			assert.Equal(t, tc.unread, stats.Unread)
		})
	}
	sizes := trace(written("X", "kernel", "k", "30", `,"dur":3,"args":{"grid":[4,2,1],"block":[128, 1, 1]}`))
	pd, _, err := Decode(strings.NewReader(sizes), Options{LaunchSizes: true})
	require.NoError(t, err)
	assert.Contains(t, profiletest.Render(pd), `gpu.block="128,1,1", gpu.device=1, gpu.grid="4,2,1"`)
}

// Kineto writes what is not JSON. The forms are those of its output_json.cpp and of reports to PyTorch.
func TestNotJSON(t *testing.T) {
	const op = "\n  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 1, \"tid\": 2,\n    " +
		"\"ts\": %d.000, \"dur\": 1.000,\n    \"args\": {\n      \"External id\": 7,\"Call stack\": \"%s\"\n    }\n  }"
	named := func(name string) string {
		return `{"traceEvents": [` + fmt.Sprintf(op, "first", 1, "") + "," + fmt.Sprintf(op, name, 3, "") + "," +
			fmt.Sprintf(op, "last", 5, "") + "\n  ]}"
	}
	const compiled = `{"device": "cpu", "dtype": "float32"}(12): run`
	for name, tc := range map[string]struct {
		text    string
		want    []string // functions
		dropped int
	}{
		"nothing for a value": {text: `{"a": , "b":,"distributedInfo": {"backend": "nccl", "rank": , "world_size": 8},
			"traceEvents": [` + fmt.Sprintf(op, "first", 1, "") + `], "c": }`, want: []string{"first"}},
		"an empty fragment of metadata": {
			text: `{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","tid":2,"ts":1,"dur":1,"args":{"External id": 7, }, },]}`,
			want: []string{"a"},
		},
		"quotes in a name": {text: named(compiled), want: []string{"first", compiled, "last"}},
		"lines and quotes in a name": {
			text: named("lib = Library(\"_test\", \"IMPL\")\n(1): <module>"),
			want: []string{"first", "lib = Library(\"_test\", \"IMPL\")\n(1): <module>", "last"},
		},
		"quotes in metadata": {
			text: `{"note": "say /"hi/", please", "x": "a "b, c" d", "distributedInfo": {"backend": "n "c, d" e", "rank": 3}, ` +
				named("second")[1:],
			want: []string{"first", "second", "last"},
		},
		"quotes in a call stack": {
			text: `{"traceEvents": [` + fmt.Sprintf(op, "first", 1, compiled+";b.py(3): g;") + "]}",
			want: []string{"first", "run", "g"},
		},
		"an odd number of quotes": {text: named(`"""A module(1): <module>`), want: []string{"first", "last"}, dropped: 1},
		"one quote":               {text: named(`a"b`), want: []string{"first", "last"}, dropped: 1},
		"several lists of events": {
			text: `{"traceEvents": [` + fmt.Sprintf(op, "a", 1, "") + `], "traceEvents": [` + fmt.Sprintf(op, "b", 3, "") + `]}`,
			want: []string{"a", "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode(strings.NewReader(tc.text), Options{Options: guess})
			require.NoError(t, err)
			var names []string
			for _, f := range pd.Dictionary().FunctionTable().All() {
				if name := pd.Dictionary().StringTable().At(int(f.NameStrindex())); name != "" {
					names = append(names, name)
				}
			}
			assert.ElementsMatch(t, tc.want, names)
			assert.Equal(t, tc.dropped, stats.Dropped)
			for o := range profiletest.Observations(pd) {
				assert.EqualValues(t, 2, o.Attributes()["thread.id"])
			}
		})
	}
}

func TestFaults(t *testing.T) {
	op := written("X", "cpu_op", "a", "1", `,"dur":1`)
	for text, want := range map[string]string{
		``: "breaks off", `7`: "malformed", `{}`: "no events of PyTorch", `[]`: "no events of PyTorch",
		`{"traceEvents":7}`:         "malformed",
		`{"traceEvents":[{"ph":"X"`: "breaks off", `{"traceEvents"`: "breaks off", `{"a" 7`: "breaks off",
		trace(op)[:len(trace(op))-1]: "breaks off", `{"traceEvents":[{}}`: "malformed", `[{}}`: "malformed", `{"a":7]`: "malformed",
		trace(op) + `{"a":7}`: "send each trace by itself", trace(op) + trace(op): "send each trace by itself",
		`{"traceEvents":[{"ph":"X","cat":"devtools"}]}`: "no events of PyTorch",
	} {
		_, _, err := Decode(strings.NewReader(text), Options{})
		assert.ErrorContains(t, err, want, text)
	}
	_, _, err := Decode(io.MultiReader(strings.NewReader(`{"traceEvents":["`),
		strings.NewReader(strings.Repeat("x", maxValueBytes+1))), Options{})
	require.ErrorIs(t, err, events.ErrTooLarge)
	for _, text := range []string{`{"traceEvents":[`, trace(op)} {
		_, _, err = Decode(io.MultiReader(strings.NewReader(text), brokenReader{}), Options{})
		require.ErrorIs(t, err, os.ErrClosed, text)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, os.ErrClosed }

// A value may lie across any two reads.
func TestReadsOfOneByte(t *testing.T) {
	data := capture(t, "plain")
	data = append(data[:bytes.Index(data[:200_000], []byte("\"traceEvents\""))],
		[]byte(`"traceEvents":[`+written("X", "cpu_op", "a\\\"", "1", `,"dur":1`)+` ] }`)...)
	whole, _, err := Decode(bytes.NewReader(data), Options{})
	require.NoError(t, err)
	parts, _, err := Decode(oneByte{bytes.NewReader(data)}, Options{})
	require.NoError(t, err)
	assert.Equal(t, profiletest.Render(whole), profiletest.Render(parts))
}

type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:1]) }

func TestNanoseconds(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1000, "4891685484492.058": 4891685484492058, "1.0005": 1001, "1.00049": 1000, "2.5": 2500,
		"1e3": 1_000_000, "1.5e1": 15_000,
		"0.9999": 1000,
	} {
		got, ok := nanoseconds([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1", "x", `"1"`, "1e300", "99999999999999999999", "NaN", "null"} {
		_, ok := nanoseconds([]byte(text))
		assert.False(t, ok, text)
	}
}

// A stack that is too deep, or one too many of the deep ones, is cut to its leaf, so that the sums stay right.
func TestDeepStacks(t *testing.T) {
	const depth = 5000
	var list []string
	for i := range depth {
		list = append(list, written("X", "cpu_op", "f", fmt.Sprint(i), fmt.Sprintf(`,"dur":%d`, 2*depth-2*i)))
	}
	pd, stats, err := Decode(strings.NewReader(trace(list...)), Options{})
	require.NoError(t, err)
	values, _ := sums(pd, "cpu_time", func(frames []string) string { return fmt.Sprint(len(frames) == 1) })
	assert.Equal(t, int64(2*depth*1000), values["true"]+values["false"])
	assert.Positive(t, values["false"])
	assert.Positive(t, stats.Truncated)
}

var bounds = worst.Bounds{Inputs: worst.TraceEvents, PerByte: 48, Decode: func(data []byte, meter *size.Meter) (
	pprofile.Profiles, error) {
	options := guess
	options.Meter = meter
	pd, _, err := Decode(bytes.NewReader(data), Options{Options: options})
	return pd, err
}}

func TestDecodeIsBounded(t *testing.T) { bounds.Test(t) }

// A trace of 107 MB: eleven processes, each with the capture that has Python's stacks.
func TestLargeTrace(t *testing.T) {
	if profiletest.IsRace {
		t.Skip("it is one goroutine")
	}
	data := capture(t, "stacks")
	head, list, found := bytes.Cut(data, []byte(`"traceEvents": [`))
	require.True(t, found)
	list = list[:bytes.LastIndex(list, []byte("\n  ],"))]
	trace := append(head, `"traceEvents": [`...)
	for i := range 11 {
		trace = append(trace, bytes.ReplaceAll(list, []byte(`"pid": 1649,`), fmt.Appendf(nil, `"pid": %d,`, 2000+i))...)
		trace = append(trace, ',')
	}
	trace = append(trace, "]}"...)
	require.Greater(t, len(trace), 100_000_000)
	var pd pprofile.Profiles
	var err error
	profiletest.RequireReserved(t, profiletest.Bound{HeapBytes: 200 << 20}, 4<<20, func(reserve func(int) error) {
		options := Options{Options: events.Options{Meter: &size.Meter{Reserve: reserve}}}
		pd, _, err = Decode(bytes.NewReader(trace), options)
	})
	require.NoError(t, err)
	values, counts := sums(pd, "gpu_time", all)
	assert.Equal(t, int64(11*28_556_797), values[""])
	assert.Equal(t, 11*786, counts[""])
}

// Each record is reserved, also one that becomes no sample of its own: very many fit into a small compressed trace.
func TestEveryRecordIsReserved(t *testing.T) {
	if profiletest.IsRace {
		t.Skip("it is one goroutine")
	}
	callStack := `,"dur":1,"args":{"Call stack":"` + strings.Repeat("a;", 4000) + `"}`
	for name, record := range map[string]func(i int) string{
		"ends":  func(int) string { return `{"ph":"E","ts":1}` },
		"steps": func(int) string { return `{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","ts":1}` },
		"open":  func(int) string { return `{"ph":"X","cat":"cpu_op","ts":1,"dur":9}` },
		"kernels": func(i int) string {
			return fmt.Sprintf(`{"ph":"X","cat":"kernel","ts":1,"args":{"correlation":%d,"External id":%d}}`, i, i)
		},
		"threads": func(i int) string { return fmt.Sprintf(`{"ph":"M","name":"thread_name","pid":%d}`, i) },
		"call stacks": func(i int) string {
			if i%500 != 0 {
				return "{}"
			}
			return written("X", "cpu_op", "a", fmt.Sprint(i), callStack)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var list []string
			for i := range 150_000 {
				list = append(list, record(i))
			}
			data := trace(append(list, written("X", "cpu_op", "a", "1", ""))...)
			profiletest.RequireReserved(t, profiletest.Bound{}, 4<<20, func(reserve func(int) error) {
				_, _, err := Decode(strings.NewReader(data), Options{Options: events.Options{Meter: &size.Meter{Reserve: reserve}}})
				assert.NoError(t, err)
			})
			rest := strings.NewReader(data)
			left := 1 << 20
			full := size.Meter{Reserve: func(n int) error {
				if left -= n; left < 0 {
					return os.ErrPermission
				}
				return nil
			}}
			_, _, err := Decode(rest, Options{Options: events.Options{Meter: &full}})
			require.ErrorIs(t, err, os.ErrPermission)
			if name != "call stacks" { // which are the same one until the spans are put below each other
				assert.Positive(t, rest.Len(), "without memory the rest is not read")
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	bounds.Fuzz(f, string(capture(f, "plain")[:3000]), trace(
		written("B", "cpu_op", "a", "1", ""), written("E", "", "", "4", ""),
		written("i", "cpu_instant_event", "[memory]", "2",
			`,"args":{"Bytes":-5,"Device Type":1,"Call stack":"a.py(1): f;"}`),
		written("X", "kernel", "k", "3", `,"dur":1,"args":{"correlation":1}`)), "["+profileEvent+","+chunkEvent(9, "1", "2", "")+"]",
		`[{"ph":"B","name":"a","pid":1,"tid":"x","ts":1.5},{"ph":"E","pid":1,"tid":"x","ts":"4"},`+
			`{"ph":"X","name":"b","ts":2,"dur":1,"args":{"detail":"c"}},{"ph":"M","name":"thread_name","args":{"name":"t"}}]`,
		`{"beginningOfTime":1684828020000000,"otherData":{"profile_start_ts":1677666095162},"traceEvents":[{"ph":"X","ts":1}]}`)
}
