// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

var guess = events.Anchor{EndNanos: 1795297434_000000_000, Guess: "arrival"}

// The output of perf 6.1 for a program with two threads, one of which has a space in its name.
func TestGolden(t *testing.T) {
	data := profiletest.FileBytes(t, "testdata/burn.perf.txt")
	pd, stats, err := Decode(data, events.Options{Anchor: guess})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	require.Zero(t, stats.Dropped)
	profiletest.Golden(t, "testdata/burn.txt", profiletest.Render(pd))
}

func TestLines(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"pid and tid, cpu": {"my prog 12/14 [003] 99.000001: 250000 cpu-clock:u: \n\tffff sym+0x1 (/bin/x)\n",
			"sample 250000@1795297434000000000 {cpu.logical_number=3, thread.id=14, thread.name=\"my prog\"}\n        sym at 0xffff in [/bin/x"},
		"the process": {"sh 12/12 9.5: 1 cycles:\n\t1 a (b)\n",
			"resource {process.executable.name=\"sh\", process.pid=12}"},
		"tid alone":                {"sh 14 9.5: 1 cycles:\n\t1 a (b)\n", "resource {}"},
		"without a period":         {"sh 14 9.5: page-faults:\n\t1 a (b)\n", "profile page-faults in count"},
		"a clock without a period": {"sh 14 9.5: cpu-clock:\n\t1 a (b)\n", "profile cpu-clock in count"},
		"a clock":                  {"sh 14 9.5: 7 task-clock:ppp:\n\t1 a (b)\n", "profile cpu in nanoseconds"},
		"a hybrid processor":       {"sh 14 9.5: 7 cpu_core/cycles/P:\n\t1 a (b)\n", "profile cpu_core/cycles/ in count"},
		"newer modifiers":          {"sh 14 9.5: 7 cycles:bX:\n\t1 a (b)\n", "profile cycles in count"},
		"an event of two slashes":  {"sh 14 9.5: 7 cpu/event=0x3c/:\n\t1 a (b)\n", "profile \"cpu/event=0x3c/\" in count"},
		"a tracepoint": {"sh 14 9.5: sched:sched_switch: prev_comm=sh prev_pid=1\n\t1 a (b)\n",
			"profile sched:sched_switch in count"},
		"scheduler": {"sh 14 9.5: 5000 sched:sched_stat_iowait: comm=sh delay=5000 [ns]\n\t1 a (b)\n",
			"sample 5000@1795297434000000000 {thread.id=14, thread.name=\"sh\", thread.state=\"iowait\"}"},
		"injected": {"sh 14 9.5: 5000 sched:sched_switch: x\n\t1 a (b)\n", "profile off_cpu in nanoseconds"},
		"inlined": {
			"sh 14 9.5: 1 cycles:\n\t10 in1 (inlined)\n\t10 in2 (inlined)\n\t10 out+0x3 (/bin/x)\n\t20 main (/bin/x)\n",
			"in1; in2; out at 0x10"},
		"kernel, unknown": {
			"sh 14 9.5: 1 cycles:k:\n\tffffffff81 do_idle+0x1 ([kernel.kallsyms])\n\t7f00 [unknown] ([unknown])\n",
			"do_idle at 0xffffffff81 in [[kernel.kallsyms]"},
		"C++": {
			"sh 14 9.5: 1 cycles:\n\t10 std::map<int, (anonymous namespace)::x>::at(int)+0x3 (/bin/x)\n",
			"std::map<int, (anonymous namespace)::x>::at(int)"},
		"mangled": {"sh 14 9.5: 1 cycles:\n\t10 _ZN4shop5priceEi+0x3 (/bin/x)\n\t20 _ZN4shop5priceEi+0x9 (/bin/x)\n",
			"shop::price (_ZN4shop5priceEi) at 0x10"},
		"Rust as C++": {"sh 14 9.5: 1 cycles:\n\t10 shop::price::h0123456789abcdef+0x3 (/bin/x)\n",
			"shop::price (shop::price::h0123456789abcdef) at 0x10"},
		"Swift's profiler": {
			"worker 1-T14     12/14     1714979289.250000000:    swipr\n\t    10 in [inlined]+0x3 (/bin/x)\n\t    10 out+0x3 (/bin/x)\n\n",
			"profile swipr in count\n      time 1714979289250000000 ns\n      duration 1 ns\n" +
				"      sample 1@1714979289250000000 {thread.id=14, thread.name=\"worker 1-T14\"}\n        in; out at 0x10 in [/bin/x"},
		"source lines": {"sh 14 9.5: 1 cycles:\n\t10 a+0x3 (/bin/x)\n  file.c:12\n\t20 main (/bin/x)\n\n",
			"main at 0x20"},
		"no empty line": {"sh 14 9.5: 1 cycles:\n\t10 a (x)\nsh 14 9.6: 1 cycles:\n\t10 a (x)\n",
			"sample 1@1795297433900000000 1@1795297434000000000"},
		"a reference time": {
			"# reference time: 2024-05-06 07:08:09.000000 = 1714979289.000000 (TOD) = 4.500000000 (monotonic)\nsh 14 9.5: 1 cycles:\n\t10 a (x)\n", "1@1714979294000000000"},
		"a wall clock": {"sh 14 1714979289.25: 1 cycles:\n\t10 a (x)\n", "1@1714979289250000000"},
		"a hexadecimal comm": {
			"              dd 14 9.5: 1 kfree: ptr=(nil)\n              dd 14 9.6: 1 kfree: ptr=(nil)\n",
			"1@1795297433900000000 1@1795297434000000000 {thread.id=14, thread.name=\"dd\"}\n"},
		"no call chain": {
			"              dd  5119  9.282108:     500000 cpu-clock:  ffffffff8168c064 read_zero+0x64 ([kernel.kallsyms])\n",
			"sample 500000@1795297434000000000 {thread.id=5119, thread.name=\"dd\"}\n        read_zero at 0xffffffff8168c064 in [[kernel.kallsyms]"},
		"lost columns": {"dd 5119 9.28: 500000 cpu-clock: ffffffff8168c064 read_zero+0x64 ([kernel.kallsyms])\n",
			"read_zero at 0xffffffff8168c064"},
		"a deleted file": {"sh 14 9.5: 1 cycles:\n\t10 main (/srv/shop (deleted))\n",
			"main at 0x10 in [\"/srv/shop (deleted)\"]"},
		"a deleted mapping": {"sh 14 9.5: 1 cycles:\n\t10 [unknown] (/memfd:doublemapper (deleted))\n",
			"        at 0x10 in [\"/memfd:doublemapper (deleted)\"]"},
		"an offset in the file": {"sh 14 9.5: 1 cycles:\n\t10 main+0x1 (/srv/shop+0x1010)\n",
			"main at 0x10 in [/srv/shop]"},
		"no file, parentheses": {"sh 14 9.5: 1 cycles:\n\t10 std::function<void ()>::operator()(int)\n\t20 main\n",
			"        \"std::function<void ()>::operator()(int)\" at 0x10\n        main at 0x20\n"},
		"inlined, another address": {"sh 14 9.5: 1 cycles:\n\t10 in (inlined)\n\t18 out+0x3 (/bin/x)\n",
			"        in at 0x10\n        out at 0x18"},
		"inlined, source lines": {"sh 14 9.5: 1 cycles:\n\t10 in\n  a.h:7 (inlined)\n\t10 out (/bin/x)\n  b.c:9\n",
			"        in a.h:7; out b.c:9 at 0x10 in [/bin/x]"},
		"no time": {"sh 29776 cpu-clock: \n\t10 a (x)\n\nsh 29776 cpu-clock: \n\t10 a (x)\n",
			"      time 1795297434000000000 ns\n      duration 1 ns\n      attributes {profile.clock.guess=\"arrival\"}\n      sample 2 {thread.id=29776, thread.name=\"sh\"}"},
		"no time, but a period": {"sh    2004008 cpu-clock: \n\t10 a (x)\n", "sample 2004008 {thread.name=\"sh\"}"},
		"nothing but frames": {"\n\t            1254 a (x)\n\n\n\t            1254 a (x)\n\n",
			"profile samples in count\n      time 1795297434000000000 ns\n      duration 1 ns\n      attributes {profile.clock.guess=\"arrival\"}\n      sample 2\n        a at 0x1254"},
		"records": {
			"sh 14 0.000000: PERF_RECORD_MMAP -1/0: [0xff(0x1) @ 0]: x /a: b\nsh 14 9.5: 1 cycles:\n\t10 a (x)\n\nsh 14 9.6: PERF_RECORD_NAMESPACES 14/14 - nr_namespaces: 2\n\t\t[0/net: 3/0xf0, 1/uts: 3/0xf1]\n", "sample 1@1795297434000000000 {"},
		"off-CPU": {"sh 14 9.5: 52000000 offcpu-time: \n\t10 a (x)\n", "profile off_cpu in nanoseconds"},
		"simpleperf": {
			"Shop\t25122/25122 [007] 115539.936601: 1000000 task-clock:u:\n\t        b3cea6c4\tunlock() (/lib/libc.so)\n        b3cea535\tcheckout (/app/shop.so)\n", "unlock() at 0xb3cea6c4 in [/lib/libc.so]"},
		"blanks for tabs": {
			"Shop\t25122 [007] 9.936601:\t\t1000000 task-clock:u:\n        b3cea6c4\tunlock() (/lib/libc.so)\n        b3cea535\tcheckout (/app/shop.so)\n", "        unlock() at 0xb3cea6c4 in [/lib/libc.so]\n        checkout at 0xb3cea535"},
		"no time, blanks for tabs": {
			"shop\n        b3cea6c4 unlock() (/lib/libc.so)\n        b3cea535 checkout (/app/shop.so)\n\n",
			"thread.name=\"shop\"}\n        unlock() at 0xb3cea6c4 in [/lib/libc.so]\n        checkout at 0xb3cea535"},
		"an empty line first": {"sh 14 9.5: 1 cycles:\n\n\t10 a (x)\n\nsh 14 9.6: 1 cycles:\n\nsh 14 9.7: 1 cycles:\n",
			"        a at 0x10 in [x]\n      sample 1@1795297433900000000 1@1795297434000000000 {thread.id=14, thread.name=\"sh\"}\n"},
		"expanded tabs": {
			"node 31912 cpu-clock:\n            13a80b608e0a RegExp:[&<] (/tmp/perf-7539.map)\n                    1254 main (/node)\n", "        \"RegExp:[&<]\" at 0x13a80b608e0a in [/tmp/perf-7539.map]\n        main at 0x1254"},
		"no indentation": {
			"java 19983 cycles:\nffffffff8103d0ca native_write_msr_safe ([kernel.kallsyms])\n7f7241fbe6d8 base(BasicType) const (/jre/libjvm.so)\n", "        native_write_msr_safe at 0xffffffff8103d0ca in [[kernel.kallsyms]"},
		"a byte order mark": {"\ufeffsh 14 9.5: 1 cycles:\n\t1 a (b)\n", "thread.name=\"sh\""},
		"misc, latency, date": {"      sh 00014   3 U     2026-11-27 09:21:40.583055 9.5: 1 cycles:\n\t1 a (b)\n",
			"{cpu.logical_number=3, thread.id=14, thread.name=\"sh\"}"},
		"a guest": {"VM: 1234 VCPU:001 sh 14 9.5: 1 cycles:\n\t1 a (b)\n", "thread.name=\"sh\""},
		"the process alone": {"sh 12/-1 9.5: 1 cycles:\n\t1 a (b)\n",
			"process.pid=12}\n  scope \"\" \"\"\n    profile cycles in count\n      time 1795297434000000000 ns\n      duration 1 ns\n      attributes {profile.clock.guess=\"arrival\"}\n      sample 1@1795297434000000000 {thread.name=\"sh\"}"},
		"a branch": {
			"              sh 14 9.500000:          1 branches:u:      7f3c1c0a1234 main+0x1 (/srv/shop) =>     7f3c1c0a5678 out+0x0 (/lib/x.so)\n", "        main at 0x7f3c1c0a1234 in [/srv/shop]"},
		"branches": {
			"              sh 14 9.500000:          1 cycles:      7f3c1c0a1234 main+0x1 (/srv/shop) 0x7f3c1(/srv/shop)/0x7f3c2(/srv/shop)/P/-/-/0/COND  0x1/0x2/M/-/-/3\n", "        main at 0x7f3c1c0a1234 in [/srv/shop]"},
		"branches below": {
			"sh 14 9.5: 1 cycles:\n\t10 a (x)\n 0x7f3c1/0x7f3c2/P/-/-/0  0x1/0x2/M/-/-/3\nsh 14 9.6: 1 cycles:\n\t10 a (x)\n ABI:2    AX:0x0\n", "sample 1@1795297433900000000 1@1795297434000000000"},
		"instructions": {
			"sh 14 9.5: 1 cycles:\n\t10 a (x)\n\ta+3:\n\t000000000000001a\tinsn: 48 01 c8\t# PRED 5 cycles [5]\n\tffffffff8168c064\tinsn: 90\n\n", "        a at 0x10 in [x]\n"},
		"memory": {
			"              sh 14 9.500000:          1 cpu/mem-loads/:     7f3c1c0a5678 [unknown] (/lib/x.so)         1e05080021 |OP LOAD|LVL L1 hit              123      7f3c1c0a1234 main+0x1 (/srv/shop)        12345678 4K\n", "        main at 0x7f3c1c0a1234 in [/srv/shop]\n"},
		"a comm like a time": {"a 1 2.5: b 12/14 9.5: 1 cycles:\n\t10 a (x)\n", "thread.name=\"a 1 2.5: b\""},
	} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode([]byte(tc.text), events.Options{Anchor: guess})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			require.Zero(t, stats.Dropped)
			assert.Contains(t, profiletest.Render(pd), tc.want)
		})
	}
	for text, want := range map[string]error{
		"hello\n\tworld\n":       ErrNotPerf,
		"              dd 24957": ErrNotPerf,
		"# ========\n# captured on    : Fri Nov 27\n# ========\n#\n# Samples: 2  of event 'cycles'\n#\n    99.00%  dd  dd  [.] spin\n": ErrReport,
	} {
		_, _, err := Decode([]byte(text), events.Options{})
		require.ErrorIs(t, err, want)
	}
	_, stats, err := Decode([]byte("nonsense\n\nsh 14 9.5: 1 cycles:\n\n"), events.Options{Anchor: guess})
	require.NoError(t, err)
	require.Equal(t, events.Stats{Events: 1, Dropped: 1, GuessedClock: true}, stats)
}

var bounds = worst.Bounds{Inputs: worst.Perf, PerByte: 32, Decode: func(data []byte, meter *size.Meter) (
	pprofile.Profiles, error) {
	pd, _, err := Decode(data, events.Options{Anchor: guess, Meter: meter})
	return pd, err
}}

func TestDecodeIsBounded(t *testing.T) { bounds.Test(t) }

func FuzzDecode(f *testing.F) {
	bounds.Fuzz(f, "my prog 12/14 [003] 99.000001: 250000 cpu-clock:u: \n\tffff sym+0x1 (/bin/x)\n"+
		"\t10 in1 (inlined)\n\t10 out (/x)\n")
}

// Readers of pprof take the first mapping for the main binary. Stacks of perf begin with the leaf, in the kernel or in
// a library.
func TestMainBinaryIsFirst(t *testing.T) {
	const kernelThread = "kworker 9/9 9.4: 1000 cpu-clock:\n\tffffffff81 worker_thread+0x1 ([kernel.kallsyms])\n\n"
	const frames = "\t55 main+0x1 (/srv/shop)\n\n"
	for name, leaf := range map[string]string{
		"alone":                  "",
		"a library":              "\t7f00 __read+0x4 (/lib/libc.so.6)\n",
		"the kernel and library": "\tffffffff81 do_syscall_64+0x1 ([kernel.kallsyms])\n\t7f00 __read+0x4 (/lib/libc.so.6)\n",
	} {
		for _, before := range []string{"", kernelThread} {
			pd, _, err := Decode([]byte(before+"shop 12/12 9.5: 1000 cpu-clock:\n"+leaf+frames), events.Options{})
			require.NoError(t, err)
			d := pd.Dictionary()
			require.Equal(t, "/srv/shop", d.StringTable().At(int(d.MappingTable().At(1).FilenameStrindex())), name)
		}
	}
}
