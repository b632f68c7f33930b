// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/perfscript"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// writer prints samples as perf does (tools/perf/builtin-script.c, process_event): fields in a fixed order and in
// columns. Which of them are printed is the same for all samples.
type writer struct {
	comm, pid, tid, cpu, misc, time, period, event, ip, sym, offset, file, source bool
	// hasChains means that the recording has call chains.
	hasChains bool
	eventName string
	text      strings.Builder
}

const unknown = "[unknown]"

type writtenFrame struct {
	ip           uint64
	symbol, file string
}

type written struct {
	comm   string
	tid    int
	period int
	frames []writtenFrame
}

func (w *writer) write(i int, s written) {
	isChain := w.hasChains && w.ip
	switch {
	case !w.comm:
	case isChain:
		fmt.Fprintf(&w.text, "%s ", s.comm)
	default:
		fmt.Fprintf(&w.text, "%16s ", s.comm)
	}
	switch {
	case w.pid && w.tid:
		fmt.Fprintf(&w.text, "%5d/%-5d ", s.tid-1, s.tid)
	case w.pid, w.tid:
		fmt.Fprintf(&w.text, "%5d ", s.tid)
	}
	if w.cpu {
		fmt.Fprintf(&w.text, "[%03d] ", i%4)
	}
	if w.misc {
		fmt.Fprintf(&w.text, "%-6s", []string{"U", "K", ""}[i%3])
	}
	if w.time {
		fmt.Fprintf(&w.text, "%12s: ", fmt.Sprintf("%d.%06d", 99+i, i))
	}
	if w.period {
		fmt.Fprintf(&w.text, "%10d ", s.period)
	}
	if w.event {
		fmt.Fprintf(&w.text, "%12s: ", w.eventName)
	}
	if w.ip && isChain {
		w.text.WriteByte('\n')
		for _, f := range s.frames {
			w.text.WriteByte('\t')
			w.frame(f)
			w.text.WriteByte('\n')
		}
	} else if w.ip {
		w.text.WriteByte(' ')
		w.frame(s.frames[0])
	}
	w.text.WriteByte('\n')
}

func (w *writer) frame(f writtenFrame) {
	fmt.Fprintf(&w.text, "%16x", f.ip)
	if w.sym {
		fmt.Fprintf(&w.text, " %s", f.symbol)
		if w.offset && f.symbol != unknown {
			fmt.Fprintf(&w.text, "+%#x", f.ip&0xff)
		}
	}
	if w.file {
		fmt.Fprintf(&w.text, " (%s)", f.file)
	}
	if w.source {
		w.text.WriteString("\n  ??:0")
	}
}

var (
	writtenComms = []string{"dd", "f", "cc1", "bc", "shop", "my prog", "Web Content", "worker 3", "(sd-pam)",
		"kworker/0:1-ev", ":-1", "a.out", "beef 12/13", "[x]"}
	writtenSymbols = []string{
		"main", "add", "[unknown]", "operator delete(void*)", "std::map<int, (anonymous namespace)::x>::at(int)",
		"main.(*worker).mix",
		"void [shop] Shop.Cart::Add(int32)[Tier1]",
		"std::_Function_handler<void (), f()::{lambda()#1}>::_M_invoke(std::_Any_data const&)",
		"LazyCompile:*price /srv/app.js:12", "<impl core::fmt::Debug for (A,B)>::fmt", "-[Cart add:to:]",
		"py::total:/srv/shop.py",
	}
	writtenFiles = []string{
		"/srv/shop", "[kernel.kallsyms]", "[unknown]", "/opt/shop (deleted)", "/memfd:doublemapper (deleted)", "//anon",
		"/opt/my shop (2)/bin/x", "inlined.so", "/tmp/perf-12.map",
	}
	writtenEvents = []string{"cycles", "cpu-clock:u", "page-faults", "sched:sched_waking", "raw_syscalls:sys_enter",
		"cpu/event=0x3c,name=x/", "L1-dcache-load-misses"}
)

func (w *writer) draw(t *rapid.T) {
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	*w = writer{
		comm: flag("comm"), pid: flag("pid"), tid: flag("tid"), cpu: flag("cpu"), misc: flag("misc"), time: flag("time"),
		period: flag("period"),
		event:  flag("event"), ip: flag("ip"), hasChains: flag("chains"),
		eventName: rapid.SampledFrom(writtenEvents).Draw(t, "name"),
	}
	w.sym, w.file, w.source = w.ip && flag("sym"), w.ip && flag("dso"), w.ip && flag("srcline")
	w.offset = w.sym && flag("symoff")
	w.misc = w.misc && (w.comm || w.pid || w.tid || w.cpu || w.time || w.event) // alone it is blanks
	// then the address is all that tells a sample from another line
	if !w.time && !w.event {
		w.ip = true
	}
}

func drawSample(t *rapid.T) written {
	s := written{
		comm:   rapid.SampledFrom(writtenComms).Draw(t, "comm"),
		tid:    rapid.SampledFrom([]int{2, 57, 999, 1234, 29776, 4194303}).Draw(t, "tid"),
		period: rapid.SampledFrom([]int{1, 250000, 2004008, 10101010, 1 << 40}).Draw(t, "period"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "frames") {
		s.frames = append(s.frames, writtenFrame{
			ip:     rapid.SampledFrom([]uint64{0x1254, 0x414b3b, 0x7f3c1c0a1234, 0xffffffff8168c064}).Draw(t, "ip"),
			symbol: rapid.SampledFrom(writtenSymbols).Draw(t, "symbol"), file: rapid.SampledFrom(writtenFiles).Draw(t, "file"),
		})
	}
	return s
}

// Whatever fields perf prints, samples, values and frames are those of the recording.
func TestGeneratedScripts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w writer
		w.draw(t)
		samples := rapid.SliceOfN(rapid.Custom(drawSample), 1, 6).Draw(t, "samples")
		want := map[string]int64{}
		for i, s := range samples {
			w.write(i, s)
			value := int64(1)
			if w.period {
				value = int64(s.period)
			}
			var lines []string
			frames := s.frames
			if !w.hasChains {
				frames = frames[:1]
			}
			for _, f := range frames {
				line := fmt.Sprintf("at %#x", f.ip)
				if w.sym && f.symbol != unknown {
					line = f.symbol + " " + line
				}
				if w.file && f.file != unknown {
					line += " in " + f.file
				}
				lines = append(lines, line)
			}
			if !w.ip {
				lines = nil
			}
			want[strings.Join(lines, "; ")] += value
		}
		text := w.text.String()
		if rapid.Bool().Draw(t, "expanded") { // as terminals copy it
			text = strings.ReplaceAll(text, "\t", "        ")
		}
		pd, stats, err := perfscript.Decode([]byte(text), events.Options{})
		require.NoError(t, err, "%s", text)
		require.NoError(t, profiletest.Check(pd))
		require.Equal(t, len(samples), stats.Events, "%s", text)
		require.Zero(t, stats.Dropped)
		require.Equal(t, want, stacksOf(pd), "%s", text)
		if w.comm && (w.tid || w.pid) {
			commands := commandsOf(pd)
			for _, s := range samples {
				require.Contains(t, commands, s.comm, "%s", text)
			}
		}
	})
}

// stacksOf returns the sum of the values of each stack.
func stacksOf(pd pprofile.Profiles) map[string]int64 {
	d, sums := pd.Dictionary(), map[string]int64{}
	text := func(index int32) string { return d.StringTable().At(int(index)) }
	for profile := range otlp.Profiles(pd) {
		for _, sample := range profile.Samples().All() {
			var frames []string
			for _, index := range d.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
				location := d.LocationTable().At(int(index))
				frame := fmt.Sprintf("at %#x", location.Address())
				for _, line := range location.Lines().All() {
					frame = text(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()) + " " + frame
				}
				if file := text(d.MappingTable().At(int(location.MappingIndex())).FilenameStrindex()); file != "" {
					frame += " in " + file
				}
				frames = append(frames, frame)
			}
			for _, value := range sample.Values().All() {
				sums[strings.Join(frames, "; ")] += value
			}
		}
	}
	return sums
}

// commandsOf returns the names of the threads.
func commandsOf(pd pprofile.Profiles) (commands []string) {
	d := pd.Dictionary()
	for _, attribute := range d.AttributeTable().All() {
		if d.StringTable().At(int(attribute.KeyStrindex())) == events.AttributeThreadName {
			commands = append(commands, attribute.Value().Str())
		}
	}
	return commands
}
