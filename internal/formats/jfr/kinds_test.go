// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// sum is how many observations the profiles of a type have, what they add up to, and their periods.
type sum struct {
	number  int
	total   int64 // if each observation counts as one period: of times
	periods []int64
}

// observations sums profiles by their sample types.
func observations(pd pprofile.Profiles) map[string]sum {
	sums := map[string]sum{}
	text := func(i int32) string { return pd.Dictionary().StringTable().At(int(i)) }
	for p := range otlp.Profiles(pd) {
		key := text(p.SampleType().TypeStrindex()) + " in " + text(p.SampleType().UnitStrindex())
		s := sums[key]
		s.periods = append(s.periods, p.Period())
		for _, sample := range p.Samples().All() {
			s.number += max(sample.Values().Len(), sample.TimestampsUnixNano().Len())
			for _, v := range sample.Values().All() {
				s.total += v
			}
			if sample.Values().Len() == 0 {
				s.total += int64(sample.TimestampsUnixNano().Len()) * p.Period()
			}
		}
		slices.Sort(s.periods)
		sums[key] = s
	}
	return sums
}

const ms = 1_000_000

// Recordings whose events mean other than CPU time of one period.
func TestKindsOfRecordings(t *testing.T) {
	for name, want := range map[string]map[string]sum{
		// Each event has its own period: 120 × 10 ms and 3 × 20 ms.
		"jdk25-cputime": {"cpu in nanoseconds": {123, 1260 * ms, []int64{1}}},
		// A class of events that two class loaders have loaded.
		"jdk-two-loaders": {"samples in count": {18, 180 * ms, []int64{10 * ms}}},
		// asprof -e page-faults
		"asprof-pagefaults": {"page-faults in count": {2619, 2619, []int64{1}}},
		// A second recording begins while the first runs: 20 × 100 ms and 85 × 10 ms.
		"jdk-period-change": {"samples in count": {105, 2850 * ms, []int64{10 * ms, 100 * ms}}},
	} {
		t.Run(name, func(t *testing.T) {
			data, options := recording(t, name)
			pd, stats, err := Decode(data, options)
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Zero(t, stats.Dropped)
			assert.Equal(t, want, observations(pd))
		})
	}
}

// A profile is of the time in which its period held.
func TestTimesOfChangedSettings(t *testing.T) {
	data, options := recording(t, "jdk-period-change")
	pd, _, err := Decode(data, options)
	require.NoError(t, err)
	var times []string
	for p := range otlp.Profiles(pd) {
		from := p.Time().AsTime()
		until := from.Add(time.Duration(p.DurationNano()))
		times = append(times,
			fmt.Sprintf("%v %s %s", time.Duration(p.Period()), from.Format("05.000"), until.Format("05.000")))
	}
	// of the headers of its three chunks
	assert.ElementsMatch(t, []string{"100ms 48.244 52.455", "10ms 50.914 52.426"}, times)
}

// withSettings writes settings of jdk.ExecutionSample (class 16): name and value alternate.
func withSettings(w *worst.JFRWriter, class uint64, nameValues ...string) {
	for i := 0; i < len(nameValues); i += 2 {
		content := append([]byte{0}, byte(class)) // startTime, id
		for _, s := range nameValues[i : i+2] {
			content = append(append(content, 3, byte(len(s))), s...)
		}
		w.RawEvent("jdk.ActiveSetting", content)
	}
}

const executionSample = 16 // its number among the writer's classes

func newRecording(more ...string) *worst.JFRWriter {
	w := worst.NewJFR(append([]string{
		"jdk.ActiveSetting startTime:long id:long name:java.lang.String value:java.lang.String"}, more...)...)
	w.Pool("jdk.types.Symbol", 3).Entry(1, "Shop", 2, "buy", 3, "pay").Pool("java.lang.Class", 1).Entry(1, 1)
	w.Pool("jdk.types.Method", 2).Entry(1, 1, 2, 2, 1, 3).Pool("jdk.types.StackTrace", 1).Entry(1, 0, 1, 1, 7)
	return w
}

// jdk.ExecutionSample is what the settings of async-profiler state, and CPU time without them.
func TestWhatAsyncProfilerSamplesBy(t *testing.T) {
	cpu := func(period int64) map[string]sum {
		return map[string]sum{"samples in count": {3, 3 * period, []int64{period}}}
	}
	counted := func(name string, period int64) map[string]sum {
		return map[string]sum{name + " in count": {3, 3 * period, []int64{period}}}
	}
	for name, tc := range map[string]struct {
		settings []string
		want     map[string]sum
	}{
		"no settings":           {nil, cpu(10 * ms)},
		"the JDK's":             {[]string{"period", "20 ms"}, cpu(20 * ms)},
		"cpu":                   {[]string{"event", "cpu", "interval", "0"}, cpu(10 * ms)},
		"itimer":                {[]string{"event", "itimer", "interval", "5000000"}, cpu(5 * ms)},
		"ctimer":                {[]string{"event", "ctimer"}, cpu(10 * ms)},
		"cpu-clock":             {[]string{"event", "cpu-clock"}, cpu(10 * ms)},
		"page-faults":           {[]string{"event", "page-faults", "interval", "0"}, counted("page-faults", 1)},
		"every tenth":           {[]string{"event", "page-faults", "interval", "10"}, counted("page-faults", 10)},
		"cycles":                {[]string{"event", "cycles", "interval", "0"}, counted("cycles", ms)},
		"cache misses":          {[]string{"event", "cache-misses"}, counted("cache-misses", 1000)},
		"a register":            {[]string{"event", "r1a8"}, counted("r1a8", 1000)},
		"a descriptor":          {[]string{"event", "cpu/event=1/"}, counted("cpu/event=1/", 1000)},
		"context switches":      {[]string{"event", "context-switches"}, counted("context-switches", 2)},
		"a tracepoint":          {[]string{"event", "sched:sched_switch"}, counted("sched:sched_switch", 1)},
		"calls of a method":     {[]string{"event", "shop.Cart.add"}, counted("shop.Cart.add", 1)},
		"calls of a function":   {[]string{"event", "malloc", "interval", "7"}, counted("malloc", 7)},
		"settings of no effect": {[]string{"engine", "perf_events", "interval", "-5"}, cpu(10 * ms)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRecording()
			for i := range uint64(3) {
				w.Event("jdk.ExecutionSample", 10+i, 0, 1, 0, 0)
			}
			withSettings(w, executionSample, tc.settings...) // after the events, as they can be
			pd, _, err := Decode(w.Bytes(), Options{})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Equal(t, tc.want, observations(pd))
		})
	}
}

// async-profiler writes its settings in the first chunk alone. Those of another recorder's chunk replace them.
func TestSettingsOfChunks(t *testing.T) {
	chunk := func(settings ...string) []byte {
		w := newRecording().Event("jdk.ExecutionSample", 10, 0, 1, 0, 0)
		withSettings(w, executionSample, settings...)
		return w.Bytes()
	}
	pd, _, err := Decode(slices.Concat(chunk("event", "page-faults"), chunk(), chunk("period", "20 ms"), chunk()),
		Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string]sum{
		"page-faults in count": {2, 2, []int64{1}}, "samples in count": {2, 40 * ms, []int64{20 * ms}},
	}, observations(pd))
}

// Datadog's profiler states how many samples an event represents, some of them in floating point numbers.
func TestDatadog(t *testing.T) {
	const classes = "startTime:long eventThread:java.lang.Thread* stackTrace:jdk.types.StackTrace* "
	w := newRecording("datadog.ExecutionSample "+classes+"weight:long", "datadog.MethodSample "+classes+"weight:long",
		"datadog.ObjectSample "+classes+"size:long weight:float",
		"datadog.HeapLiveObject "+classes+"size:long weight:float age:long")
	w.Event("datadog.ExecutionSample", 10, 0, 1, 1).Event("datadog.MethodSample", 11, 0, 1, 3)
	object := func(size byte, weight float32, more ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{12, 0, 1, size}, math.Float32bits(weight)), more...)
	}
	w.RawEvent("datadog.ObjectSample", object(16, 2.5)).RawEvent("datadog.ObjectSample", object(10, float32(math.Inf(1))))
	w.RawEvent("datadog.HeapLiveObject", object(24, 4, 1))
	withSettings(w, 19, "interval", "9000000")
	withSettings(w, 20, "interval", "50000000")
	pd, stats, err := Decode(w.Bytes(), Options{})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Empty(t, stats.Unread)
	got := observations(pd)
	for key, total := range map[string]int64{
		"cpu in nanoseconds": 9 * ms, "wall in nanoseconds": 150 * ms, "alloc_sample_bytes in bytes": 40,
		"alloc_sample_objects in count": 3,
		"live in count":                 4, "live_bytes in bytes": 96,
	} {
		assert.Equal(t, total, got[key].total, key)
	}
	assert.Len(t, got, 6)
}

// Waits for native locks, and calls of traced methods: the JDK names the method, async-profiler has it in the stack.
func TestIntervals(t *testing.T) {
	const classes = "startTime:long duration:long eventThread:java.lang.Thread* stackTrace:jdk.types.StackTrace*"
	w := newRecording("profiler.NativeLock "+classes+" address:long",
		"jdk.MethodTrace "+classes+" method:jdk.types.Method*")
	w.Event("profiler.NativeLock", 10, 5, 0, 1, 99).Event("jdk.MethodTrace", 20, 7, 0, 1, 2).Event("jdk.MethodTrace", 30,
		8, 0, 1, 0)
	pd, _, err := Decode(w.Bytes(), Options{})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	got := observations(pd)
	assert.Equal(t, sum{1, 5, []int64{1}}, got["delay in nanoseconds"])
	assert.Equal(t, sum{2, 15, []int64{1}}, got["duration in nanoseconds"])
	assert.Equal(t, 2, got["calls in count"].number)
	text := profiletest.Render(pd)
	assert.Contains(t, text, "sample 7@1795293131000000027\n        Shop.pay\n        Shop.buy :7\n")
	assert.Contains(t, text, "sample 8@1795293131000000038\n        Shop.buy :7\n")
	assert.Contains(t, text, `"mutex"`)
}

// The JDK writes the objects that are still there each time that a recording is dumped: the last time counts, in
// whatever chunk.
func TestOldObjects(t *testing.T) {
	const object = "jdk.OldObjectSample"
	state := func(time uint64, stacks ...uint64) []byte {
		w := newRecording(object +
			" startTime:long eventThread:java.lang.Thread* stackTrace:jdk.types.StackTrace* objectSize:long")
		w.Event(object, 10, 0, 1, 5)
		for _, stack := range stacks {
			w.Event(object, time, 0, stack, 24)
		}
		return w.Bytes()
	}
	for name, data := range map[string][]byte{
		"one chunk": state(20, 1, 1, 2), "of the last": slices.Concat(state(15, 1), state(20, 1, 1, 2)),
		"of the first": slices.Concat(state(20, 1, 1, 2), state(15, 1)),
	} {
		pd, stats, err := Decode(data, Options{})
		require.NoError(t, err, name)
		require.NoError(t, profiletest.Check(pd))
		assert.Empty(t, stats.Unread)
		// A state has a value for each stack.
		assert.Equal(t, map[string]sum{"live in count": {2, 3, []int64{1}}, "live_bytes in bytes": {2, 72, []int64{1}}},
			observations(pd), name)
	}
}

// Files, sockets and collections of garbage: the time, and what else counts.
func TestTransfersAndCollections(t *testing.T) {
	const classes = "startTime:long duration:long eventThread:java.lang.Thread* stackTrace:jdk.types.StackTrace* "
	w := newRecording("jdk.FileRead "+classes+"bytesRead:long", "jdk.FileForce "+classes+"metaData:boolean",
		"jdk.SocketWrite "+classes+"port:int bytesWritten:long", "jdk.types.GCName name:java.lang.String",
		"jdk.types.GCCause cause:java.lang.String",
		"jdk.GarbageCollection startTime:long duration:long gcId:int name:jdk.types.GCName* "+
			"cause:jdk.types.GCCause* sumOfPauses:long longestPause:long")
	w.Pool("jdk.types.GCName", 1).Entry(7, "G1New").Pool("jdk.types.GCCause", 1).Entry(8, "System.gc()")
	w.Event("jdk.FileRead", 10, 5, 0, 1, 100).Event("jdk.FileRead", 20, 6, 0, 1, 11).Event("jdk.FileForce", 30, 7, 0, 1, 1)
	w.Event("jdk.SocketWrite", 40, 8, 0, 1, 443, 50)
	w.Event("jdk.GarbageCollection", 50, 9, 3, 7, 8, 4, 4).Event("jdk.GarbageCollection", 60, 9, 4, 7, 99, 2, 2)
	pd, stats, err := Decode(w.Bytes(), Options{})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Zero(t, stats.Dropped)
	one := []int64{1}
	assert.Equal(t, map[string]sum{
		"file_io_read_time in nanoseconds": {2, 11, one}, "file_io_read_size in bytes": {2, 111, one},
		"file_io_write_time in nanoseconds": {1, 7, one}, "file_io_write_size in bytes": {1, 0, one},
		"socket_write_time in nanoseconds": {1, 8, one}, "socket_write_size in bytes": {1, 50, one},
		"gc_pause_time in nanoseconds": {2, 6, one}, "gc_collections in count": {2, 2, one},
	}, observations(pd))
	text := profiletest.Render(pd)
	assert.Contains(t, text, "sample 4@1795293131000000059\n        System.gc()\n        G1New\n")
	assert.Contains(t, text, "sample 2@1795293131000000069\n        (unknown)\n        G1New\n")
}

// Events of other types are counted if they have a stack, and their names are bounded.
func TestUnreadEvents(t *testing.T) {
	classes := []string{"double", "shop.Checkout startTime:long stackTrace:jdk.types.StackTrace* nested:shop.Item",
		"shop.Item price:double tags:shop.Tag[]",
		"shop.Tag name:java.lang.String", strings.Repeat("x", 200) + " stackTrace:jdk.types.StackTrace*",
		"shop.NoStack startTime:long"}
	for i := range 100 {
		classes = append(classes, fmt.Sprintf("shop.Type%d stackTrace:jdk.types.StackTrace*", i))
	}
	w := newRecording(classes...)
	withoutStack := append([]byte{9, 0}, make([]byte, 9)...)
	withStack := append([]byte{9, 1}, append(make([]byte, 8), 1, 3, 1, 'a')...)
	w.RawEvent("shop.Checkout", withoutStack).RawEvent("shop.Checkout", withStack).RawEvent("shop.Checkout", withStack).
		Event("shop.NoStack", 1)
	for _, class := range classes[4:] {
		w.Event(strings.Fields(class)[0], 1)
	}
	pd, stats, err := Decode(w.Bytes(), Options{})
	require.NoError(t, err)
	assert.Zero(t, pd.SampleCount())
	assert.Equal(t, 2, stats.Unread["shop.Checkout"])
	assert.Equal(t, 1, stats.Unread["shop.Type7"])
	assert.NotContains(t, stats.Unread, "shop.NoStack")
	assert.LessOrEqual(t, len(stats.Unread), 65)
	total := 0
	for _, n := range stats.Unread {
		total += n
	}
	assert.Equal(t, 2+1+100, total)
}

// Strings have several encodings.
func TestTextEncodings(t *testing.T) {
	for encoded, want := range map[string]string{
		"\x00": "", "\x01": "", "\x03\x03a\xc3\xbc": "aü", "\x04\x02a\xac\x41": "a€", "\x05\x02a\xfc": "aü",
		"\x03\x05": "", "\x09": "", "": "",
	} {
		c := cursor{data: []byte(encoded), end: len(encoded)}
		text, _ := c.text(100)
		assert.Equal(t, want, string(text), "%q", encoded)
		assert.Equal(t, encoded == "\x03\x05" || encoded == "\x09" || encoded == "", c.err != nil, "%q", encoded)
	}
	c := cursor{data: []byte("\x02\x07"), end: 2}
	_, constant := c.text(100)
	assert.EqualValues(t, 7, constant)
}

// Names of generated classes do not differ from run to run.
func TestGeneratedNames(t *testing.T) {
	for name, want := range map[string]string{
		"Shop$$Lambda$87+0x00007fba0c007a08/330084561":       "Shop$$Lambda_",
		"Shop$$Lambda$669.0x0000000800fd7318":                "Shop$$Lambda_",
		"Fib$$Lambda.0x00007ffa600c4da0":                     "Fib$$Lambda_",
		"Fib$$Lambda/0x00007ffa600c4da0":                     "Fib$$Lambda_",
		"Fib$$Lambda+0x00007ffa600c4da0/12":                  "Fib$$Lambda_",
		"Fib$$Lambda12":                                      "Fib$$Lambda_",
		"Fib$$LambdaForm":                                    "Fib$$LambdaForm",
		"java.lang.invoke.LambdaForm$DMH/666988784":          "java.lang.invoke.LambdaForm$DMH_",
		"java/lang/invoke/LambdaForm$MH+0x00007fba0c007a08":  "java/lang/invoke/LambdaForm$MH_",
		"java/lang/invoke/LambdaForm$MH.0x0000000800c03000":  "java/lang/invoke/LambdaForm$MH_",
		"java/lang/invoke/LambdaForm$Name":                   "java/lang/invoke/LambdaForm$Name",
		"jdk/internal/reflect/GeneratedMethodAccessor31":     "jdk/internal/reflect/GeneratedMethodAccessor_",
		"Cart$$EnhancerBySpringCGLIB$$7f3a":                  "Cart$$EnhancerBySpringCGLIB$$_",
		"/tmp/libzstd-jni-1.5.1-16931311898282279136.so":     "libzstd-jni-_.so",
		"libamazonCorrettoCryptoProvider109b39cf33c563eb.so": "libamazonCorrettoCryptoProvider_.so",
		"./tmp/amazonCorrettoCryptoProviderNativeLibraries.7382c2f79097f415/libcrypto.so (deleted)": "libamazonCorrettoCryptoProvider_.so",
		"java/lang/Thread": "java/lang/Thread",
	} {
		assert.Equal(t, want, withoutNumbers(name))
	}
}

// Files of JDK 7 to 10 are refused by their version.
func TestOldVersions(t *testing.T) {
	data := bytes.Clone(worst.SoundJFR())
	for version, bytes := range map[string][]byte{"0.9": {0, 0, 0, 9}, "1.0": {0, 1, 0, 0}, "3.0": {0, 3, 0, 0}} {
		copy(data[4:], bytes)
		_, _, err := Decode(data, Options{})
		require.ErrorContains(t, err, "version "+version)
		require.Equal(t, version != "3.0", strings.Contains(err.Error(), "JDK 7 to 10"), err.Error())
	}
}
