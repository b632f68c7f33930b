// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// builds are ways to build a program, by name.
var builds = map[string][]string{
	"plain":    nil,
	"stripped": {"-ldflags=-s -w"},
	"pie":      {"-buildmode=pie", "-ldflags=-s -w"},
	"cgo":      {"-ldflags=-linkmode=external -s -w"},
}

// TestEqualToTheEndpoint compares what is read of a program with what it serves itself: the same stacks with the same
// values, and waits to the precision with which the two processes know the processor's clock. GO_VERSIONS lists more
// toolchains, which are fetched.
func TestEqualToTheEndpoint(t *testing.T) {
	toolchains := append([]string{"local"}, strings.Fields(os.Getenv("GO_VERSIONS"))...)
	for _, toolchain := range toolchains {
		for name, flags := range builds {
			t.Run(toolchain+"/"+name, func(t *testing.T) {
				t.Parallel()
				env := []string{"GOTOOLCHAIN=" + toolchain, "CGO_ENABLED=0"}
				if toolchain != "local" {
					env = append(env, "GOFLAGS=")
				}
				if name == "cgo" {
					if _, err := exec.LookPath("cc"); err != nil {
						t.Skip("no C compiler")
					}
					env[1] = "CGO_ENABLED=1"
				}
				compareWithEndpoint(t, programtest.Build(t, env, flags...))
			})
		}
	}
}

func compareWithEndpoint(t *testing.T, path string) {
	program := programtest.Start(t, path, "collect")
	process := openProcess(t, program.PID)
	for range 2 {
		got := process.profiles(t)
		compare(t, program.Profile(t, "heap"), got[Memory], 0)
		compare(t, program.Profile(t, "block"), got[Block], 0.001)
		compare(t, program.Profile(t, "mutex"), got[Mutex], 0.001)
		program.Next(t)
	}
}

// TestProcessThatChanges: one that executes another program, or has ended, has no memory any more to be misread.
func TestProcessThatChanges(t *testing.T) {
	path := programtest.Build(t, []string{"CGO_ENABLED=0"})
	for _, end := range []func(*programtest.Program){
		func(p *programtest.Program) { p.Next(t) },
		func(p *programtest.Program) { p.Stop() },
	} {
		program := programtest.Start(t, path, "collect", "execute")
		process := openProcess(t, program.PID)
		require.NotEmpty(t, process.profiles(t))
		end(program)
		_, _, err := process.reader.Read(process.memory)
		require.ErrorIs(t, err, ErrUnreadable)
	}
}

// TestSwitchedOff: a program that nothing in it reads the profile of is told apart from one that sets the rate to 0.
func TestSwitchedOff(t *testing.T) {
	const program = `package main

import (
	"fmt"
	"os"
%s)

func main() {
	%s
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
}
`
	for _, toolchain := range append([]string{"local"}, strings.Fields(os.Getenv("GO_VERSIONS"))...) {
		for _, isNeverAsked := range []bool{true, false} {
			imports, statement := "", ""
			if !isNeverAsked {
				imports, statement = "\t\"runtime\"\n\t\"runtime/pprof\"\n",
					"runtime.MemProfileRate = 0; _ = pprof.Lookup(os.Args[0])"
			}
			env := []string{"GOTOOLCHAIN=" + toolchain, "CGO_ENABLED=0"}
			if toolchain != "local" {
				env = append(env, "GOFLAGS=")
			}
			command := exec.Command(programtest.BuildSource(t, fmt.Appendf(nil, program, imports, statement), env))
			collectortest.StartProgram(t, command)
			process := openProcess(t, command.Process.Pid)
			profiles, off, err := process.reader.Read(process.memory)
			require.NoError(t, err)
			assert.Empty(t, profiles)
			assert.Equal(t, &OffError{IsNeverAsked: isNeverAsked}, off, toolchain)
		}
	}
}

// process is a running program.
type process struct {
	reader Reader
	source Source
	memory io.ReaderAt
}

func openProcess(t *testing.T, pid int) *process {
	opened, err := target.Open("/proc", int64(pid))
	require.NoError(t, err)
	t.Cleanup(opened.Close)
	open := func(name string) *os.File {
		file, err := opened.OpenFile(name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	exe := open("exe")
	info, err := exe.Stat()
	require.NoError(t, err)
	image, err := symbols.Open(exe, info.Size(), symbols.DefaultLimits)
	require.NoError(t, err)
	program, err := Find(image)
	require.NoError(t, err)
	p := &process{reader: Reader{Program: program, MaxBuckets: 100_000, Keep: func(int) bool { return true }},
		memory: open("mem")}
	p.source = Source{Names: NewNames(image), TicksPerSecond: TicksPerSecond(), At: time.Now()}
	mappings, err := opened.Mappings()
	require.NoError(t, err)
	first, ok := opened.Program(mappings)
	require.True(t, ok)
	p.reader.Bias, ok = Bias(image, first.Start, first.Offset)
	require.True(t, ok)
	p.source.Bias = p.reader.Bias
	return p
}

func (p *process) profiles(t *testing.T) map[Kind]*profile.Profile {
	profiles, off, err := p.reader.Read(p.memory)
	require.NoError(t, err)
	require.NoError(t, off)
	all := map[Kind]*profile.Profile{}
	for i := range profiles {
		data, err := Write(&profiles[i], &p.source)
		require.NoError(t, err)
		all[profiles[i].Kind], err = profile.ParseData(data)
		require.NoError(t, err)
		require.NoError(t, all[profiles[i].Kind].CheckValid())
	}
	return all
}

// compare compares the values by stack: the names, files and lines of its calls, and its labels.
func compare(t *testing.T, want, got *profile.Profile, delta float64) {
	t.Helper()
	require.NotNil(t, got)
	assert.Equal(t, want.Period, got.Period)
	assert.Equal(t, *want.PeriodType, *got.PeriodType)
	assert.True(t, got.Mapping[0].HasFunctions && got.Mapping[0].HasInlineFrames, "nothing is left to be looked up")
	for i := range want.SampleType {
		assert.Equal(t, *want.SampleType[i], *got.SampleType[i])
	}
	wanted, found := byStack(want), byStack(got)
	require.NotEmpty(t, wanted)
	for stack, values := range wanted {
		if !assert.True(t, found[stack] != nil, "missing: %s", stack) {
			continue
		}
		for i := range values {
			assert.InDelta(t, values[i], found[stack][i], delta*float64(values[i]), stack)
		}
	}
	for stack := range found {
		assert.True(t, wanted[stack] != nil, "not in the program's own: %s", stack)
	}
}

func byStack(p *profile.Profile) map[string][]int64 {
	all := map[string][]int64{}
	for _, s := range p.Sample {
		if slices.Max(s.Value) == 0 { // allocated since the last collection
			continue
		}
		var stack strings.Builder
		for _, l := range s.Location {
			for _, line := range l.Line {
				fmt.Fprintf(&stack, "%s %s:%d\n", line.Function.Name, line.Function.Filename, line.Line)
			}
		}
		fmt.Fprint(&stack, s.NumLabel)
		key := stack.String()
		if p.SampleType[0].Type == "contentions" && strings.HasPrefix(key, "runtime.") {
			continue // the runtime of an idle program waits, too
		}
		if all[key] == nil {
			all[key] = make([]int64, len(s.Value))
		}
		for i, v := range s.Value {
			all[key][i] += v
		}
	}
	return all
}

// TestFindOnARM64 compares the variables that the code of a program for another architecture refers to with those of
// its symbol table. It is slow the first time, since Go's library is compiled for that architecture.
func TestFindOnARM64(t *testing.T) {
	if os.Getenv("E2E_PROCESSES") == "" {
		t.Skip("`make e2e-processes` runs it")
	}
	for _, mode := range []string{"exe", "pie"} {
		path := programtest.Build(t, []string{"CGO_ENABLED=0", "GOARCH=arm64"}, "-buildmode="+mode)
		file, err := os.Open(path)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		info, err := file.Stat()
		require.NoError(t, err)
		image, err := symbols.Open(file, info.Size(), symbols.DefaultLimits)
		require.NoError(t, err)
		program, err := Find(image)
		require.NoError(t, err)
		table, err := elf.NewFile(file)
		require.NoError(t, err)
		symbols, err := table.Symbols()
		require.NoError(t, err)
		for _, symbol := range symbols {
			switch symbol.Name {
			case "runtime.mbuckets", "runtime.bbuckets", "runtime.xbuckets":
				assert.Contains(t, program.lists, symbol.Value, symbol.Name)
			case "runtime.MemProfileRate":
				assert.Equal(t, symbol.Value, program.memoryRate)
			}
		}
		assert.Less(t, len(program.lists), 16)
	}
}
