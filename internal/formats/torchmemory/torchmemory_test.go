// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchmemory

import (
	"encoding/binary"
	"encoding/hex"
	"math"
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

var guess = events.Options{Anchor: events.Anchor{EndNanos: 1790000000000000000, Guess: "arrival"}}

// capture is a snapshot of PyTorch 2.11 on an H200, after _record_memory_history(stacks='all').
func capture(t testing.TB) []byte {
	return profiletest.ReadFile(t, "../../../testdata/torch/torch-memory.pickle.gz")
}

// The numbers are those of the snapshot added up with Python.
func TestCapture(t *testing.T) {
	pd, stats, err := Decode(capture(t), events.Options{})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Zero(t, stats.Dropped)
	sums, counts := map[string]int64{}, map[string]int{}
	for o := range profiletest.Observations(pd) {
		sums[o.SampleType] += o.Value
		counts[o.SampleType]++
	}
	assert.Equal(t, map[string]int64{
		"inuse_space": 272_990_208, "inuse_objects": 163, "reserved_space": 970_981_376, "allocated_space": 24_773_367_980,
	}, sums)
	assert.Equal(t, 2652, counts["allocated_space"])
	text := profiletest.Render(pd)
	assert.NotContains(t, text, "unwind::unwind()")
	for _, interpreter := range []string{"_PyEval_", "Py_RunMain", "PyMethod_New", "_start", "__libc_start_main"} {
		assert.NotContains(t, text, "        "+interpreter)
	}
	assert.Contains(t, text, "        __clone {", "the threads of autograd have no Python")
	assert.Contains(t, text, "time 1795748711555268000 ns", "that of the last entry of the history")
}

func TestHistory(t *testing.T) {
	var b events.Builder
	b.Reset(guess)
	value, err := unpickle(&b, capture(t))
	require.NoError(t, err)
	assert.Len(t, get[*object](value.(*object), "segments").items, 43)
	actions := map[string]int{}
	for _, entry := range get[*object](value.(*object), "device_traces").items[0].(*object).items {
		actions[get[string](entry.(*object), "action")]++
	}
	assert.Equal(t, map[string]int{
		"alloc": 2652, "free_requested": 2489, "free_completed": 2489, "segment_alloc": 43,
	}, actions, "7,673 in all")
}

// A snapshot of PyTorch 2.0: the stack of a block is in its history, and the history of the device has no times. So
// writes Python's pickle.dumps in protocol 2.
func TestEarlierSnapshot(t *testing.T) {
	const text = "\x80\x02}("
	field := func(key, value string) string { return "X" + string([]byte{byte(len(key)), 0, 0, 0}) + key + value }
	str := func(s string) string { return field(s, "") }
	frames := field("frames", "](}("+field("name", str("f"))+field("filename", str("a.py"))+field("line", "K\x07")+"ue")
	block := "}(" + field("state", str("active_allocated")) + field("size", "M\x00\x02") +
		field("history", "](}("+frames+"ue") + "u"
	entry := "}(" + field("action", str("alloc")) + field("size", "M\x00\x04") + frames + "u"
	data := text + field("segments", "](}("+field("total_size", "M\x00\x10")+field("blocks", "]("+block+"e")+"ue") +
		field("device_traces", "](]("+entry+"ee") + "u."
	pd, stats, err := Decode([]byte(data), guess)
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Zero(t, stats.Dropped)
	rendered := profiletest.Render(pd)
	assert.Contains(t, rendered,
		"sample 512 {gpu.device=0, gpu.stream=0, thread.name=\"GPU 0 memory\"}\n        f a.py:7 {")
	assert.Contains(t, rendered,
		"sample 1024@1790000000000000000 {gpu.device=0, gpu.stream=0, thread.name=\"GPU 0 memory\"}\n        f a.py:7 {")
	assert.Contains(t, rendered, `profile.clock.guess="arrival"`)
}

// snapshots are one small snapshot as Python's pickle writes it in protocols 2 to 5.
func snapshots(t testing.TB) (all [][]byte) {
	t.Helper()
	text := profiletest.FileBytes(t, "testdata/protocols.hex")
	for line := range strings.FieldsSeq(string(text)) {
		data, err := hex.DecodeString(line)
		require.NoError(t, err)
		all = append(all, data)
	}
	return all
}

func TestProtocols(t *testing.T) {
	all := snapshots(t)
	require.Len(t, all, 4)
	for protocol, data := range all {
		pd, _, err := Decode(data, guess)
		require.NoError(t, err, protocol)
		require.NoError(t, profiletest.Check(pd), protocol)
		text := profiletest.Render(pd)
		assert.Contains(t, text,
			"sample 1048576 {gpu.device=1, gpu.stream=7, thread.name=\"GPU 1 memory\"}\n        malloc {profile.frame.type=\"native\"}\n        train a.py:3 {profile.frame.type=\"cpython\"}\n", protocol)
		assert.Contains(t, text, "sample 512 {gpu.device=1, gpu.stream=7, thread.name=\"GPU 1 memory\"}\n",
			"a block that another stream still uses")
		assert.Contains(t, text,
			"sample 4294967295@1795748703728407000 {gpu.device=1, gpu.stream=7, thread.name=\"GPU 1 memory\"}\n", protocol)
	}
}

// torch.cuda.memory_snapshot returns the segments alone, as _snapshot did before PyTorch 2.0.
func TestListOfSegments(t *testing.T) {
	data := "\x80\x04](}(" +
		"\x8c\x0atotal_sizeM\x00\x10\x8c\x06blocks](}(\x8c\x05state\x8c\x10" +
		"active_allocated\x8c\x04sizeM\x00\x02ueue."
	pd, stats, err := Decode([]byte(data), guess)
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Zero(t, stats.Dropped)
	text := profiletest.Render(pd)
	assert.Contains(t, text, "sample 512 {gpu.device=0")
	assert.Contains(t, text, "sample 4096 {gpu.device=0")
}

func TestOnlyData(t *testing.T) {
	for name, data := range map[string]string{
		"os.system":    "\x80\x04cos\nsystem\n\x8c\x02id\x85R.",
		"stack global": "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.",
		"an instance":  "\x80\x02(ios\nsystem\n.", "an object": "\x80\x02(cos\nsystem\no.", "new": "\x80\x02\x81.",
		"build": "\x80\x02}}b.",
		"text":  "\x80\x02I1\n.", "persistent": "\x80\x02Pid\n.", "persistent by value": "\x80\x02NQ.",
		"extension": "\x80\x02\x82\x01.", "bytes": "\x80\x03C\x01a.",
	} {
		_, _, err := Decode([]byte(data), events.Options{})
		require.ErrorIs(t, err, errObject, name)
	}
}

func TestNumbers(t *testing.T) {
	for data, want := range map[string]any{
		"K\xff.": int64(255), "M\xff\xff.": int64(65535), "J\xff\xff\xff\xff.": int64(-1), "\x8a\x00.": int64(0),
		"\x8a\x01\xff.": int64(-1), "\x8a\x02\xff\x00.": int64(255), "\x8b\x01\x00\x00\x00\x80.": int64(-128),
		"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.": int64(math.MaxInt64), "\x8a\x09123456789.": nil, "G12345678.": nil,
		"N.": nil, "\x88.": nil,
	} {
		var b events.Builder
		b.Reset(guess)
		got, err := unpickle(&b, []byte(data))
		require.NoError(t, err, "%q", data)
		assert.Equal(t, want, got, "%q", data)
	}
}

func TestFaults(t *testing.T) {
	for name, data := range map[string]string{
		"nothing": "", "breaks off": "\x80\x04}\x8c\x09seg", "no value": "\x80\x04.", "no mark": "\x80\x04]e.",
		"odd dict": "\x80\x04}(Nu.",
		"no memo":  "\x80\x04h\x00.", "no list": "\x80\x04NNa.", "long text": "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
	} {
		_, _, err := Decode([]byte(data), events.Options{})
		require.ErrorIs(t, err, errPickle, name)
	}
	for name, data := range map[string]string{"a number": "K\x01.", "a list": "].", "a dictionary": "}.",
		"another dictionary": "}(\x8c\x01aK\x01u."} {
		_, _, err := Decode([]byte("\x80\x04"+data), events.Options{})
		require.ErrorIs(t, err, ErrNotSnapshot, name)
	}
}

var bounds = worst.Bounds{Inputs: worst.TorchMemory, PerByte: 200, Decode: func(data []byte, meter *size.Meter) (
	pprofile.Profiles, error) {
	options := guess
	options.Meter = meter
	pd, _, err := Decode(data, options)
	return pd, err
}}

func TestDecodeIsBounded(t *testing.T) { bounds.Test(t) }

// The history that docs/gpu.md asks for, as Python's pickle writes it, fits into what the shipped memory limit leaves
// for one payload.
func TestLongHistory(t *testing.T) {
	const entries, left = 100_000, 200 << 20
	data := []byte("\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\x0ddevice_traces\x94]\x94]\x94(")
	data = append(data, "}\x94(\x8c\x06action\x94\x8c\x05alloc\x94\x8c\x04addr\x94N\x8c\x04size\x94N\x8c\x06stream\x94N"+
		"\x8c\x07time_us\x94N\x8c\x06frames\x94]\x94u"...)
	for i := range uint64(entries) {
		data = append(data, "}\x94(h\x07h\x08h\x09\x8a\x08"...)
		data = binary.LittleEndian.AppendUint64(data, 0x7f0000000000+512*i)
		data = append(data, "h\x0aM\x00\x02h\x0bK\x00h\x0c\x8a\x08"...)
		data = binary.LittleEndian.AppendUint64(data, 1_790_000_000_000_000+i)
		data = append(data, "h\x0dh\x0eu"...)
	}
	data = append(data, "eau."...)
	reserved, stats := 0, events.Stats{}
	profiletest.RequireReserved(t, profiletest.Bound{}, 8<<20, func(reserve func(int) error) {
		reserved = 0
		meter := &size.Meter{Reserve: func(n int) error {
			reserved += n
			return reserve(n)
		}}
		var err error
		_, stats, err = Decode(data, events.Options{Meter: meter})
		require.NoError(t, err)
	})
	assert.Equal(t, entries, stats.Events)
	assert.Less(t, reserved, left)
}

func FuzzDecode(f *testing.F) {
	for _, data := range snapshots(f) {
		f.Add(data)
	}
	bounds.Fuzz(f)
}
