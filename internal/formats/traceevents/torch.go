// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package traceevents

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Attributes of profiles and samples.
const (
	// AttributeRank and AttributeWorldSize are those of the process in a distributed run.
	AttributeRank      = "torch.rank"
	AttributeWorldSize = "torch.world_size"
	// AttributeStep is the number of the profiler's step, without which each step would have a graph of its own.
	AttributeStep = "torch.profiler.step"
	// AttributeGrid and AttributeBlock are the size of a launch, as x,y,z.
	AttributeGrid  = "gpu.grid"
	AttributeBlock = "gpu.block"
)

// category is what an event is.
type category uint8

const (
	ignored category = iota
	end              // of a span whose beginning and end are events of their own
	memory
	other // of another tool
	annotation
	python
	op
	runtime
	kernel
	transfer
	numCategories
)

func (c category) isGPU() bool { return c >= kernel }

// categories are Kineto's names of activities, those of its earlier versions included.
var categories = map[string]category{
	"cpu_op": op, "Operator": op, "operator": op, "hpu_op": op,
	"python_function": python, "Python function": python, "user_annotation": annotation,
	"cuda_runtime": runtime, "cuda_driver": runtime, "Runtime": runtime, "runtime": runtime, "hip_runtime": runtime,
	"xpu_runtime": runtime, "xpu_driver": runtime, "mtia_runtime": runtime, "glow_runtime": runtime,
	"mlu_runtime": runtime, "privateuse1_runtime": runtime, "privateuse1_driver": runtime,
	"kernel": kernel, "Kernel": kernel, "mtia_ccp_events": kernel, "collective_comm": kernel,
	"gpu_memcpy": transfer, "gpu_memset": transfer, "Memcpy": transfer, "Memset": transfer, "mlu_memcpy": transfer,
	"mlu_memset":        transfer,
	"cpu_instant_event": memory,
	// What these say is in the others, or is no time of anything.
	"": ignored, "Trace": ignored, "gpu_user_annotation": ignored, "gpu_user_Annotation": ignored,
	"mlu_user_annotation": ignored, "overhead": ignored, "external_correlation": ignored, "cuda_sync": ignored,
	"xpu_sync": ignored, "cuda_event": ignored, "cuda_profiler_range": ignored, "xpu_scope_profiler": ignored,
	"mtia_insight": ignored, "mtia_counters": ignored, "gpu_pm_counter": ignored,
}

// frameTypes are the values of profile.frame.type: the semantic conventions have cpython alone.
var frameTypes = [numCategories]string{
	annotation: "torch_annotation", python: "cpython", op: "torch_op", runtime: "gpu_runtime", kernel: "gpu_kernel",
	transfer: "gpu_memory",
}

// caller is where a kernel comes from: a node of the tree.
type caller struct {
	start int64
	node  int32
}

// unknown is a caller that has not been found.
var unknown = caller{none, events.NoNode}

// step is a step of the profiler's schedule.
type step struct{ start, end, number int64 }

// inStep adds the number of the step at a time to attributes.
func (d *decoder) inStep(set dictionary.AttributeSetIndex, t int64) dictionary.AttributeSetIndex {
	at, _ := slices.BinarySearchFunc(d.steps, t+1, func(s step, t int64) int { return cmp.Compare(s.start, t) })
	if at == 0 || t >= d.steps[at-1].end {
		return set
	}
	return d.b.AddAttributes(set, d.number(AttributeStep, d.steps[at-1].number))
}

// streamAttributes returns those of a kernel. Its stream is a thread to people: it has a name.
func (d *decoder) streamAttributes(e *event, t *thread) dictionary.AttributeSetIndex {
	device, stream := integer(e.device, e.process), integer(e.stream, e.thread)
	name, grid, block := "", "", ""
	if stream != none {
		name = fmt.Sprintf("GPU %d stream %d", max(device, 0), stream)
	}
	if d.options.LaunchSizes {
		withoutBrackets := strings.NewReplacer("[", "", "]", "", " ", "")
		grid, block = withoutBrackets.Replace(string(e.grid)), withoutBrackets.Replace(string(e.block))
	}
	return d.b.AddAttributes(0, d.number(events.AttributeGPUDevice, device), d.number(events.AttributeGPUStream, stream),
		d.b.TextAttribute(events.AttributeThreadName, name), d.b.TextAttribute(AttributeGrid, grid),
		d.b.TextAttribute(AttributeBlock, block), t.rankName)
}

// addKernel adds the samples of a kernel, under the stack of its launch or of the op that it is of.
func (d *decoder) addKernel(s *span) {
	launch := d.callers[runtime][s.id]
	from := launch
	if launch == unknown {
		from = d.callers[op][s.external]
	}
	node, set := d.tree.Add(from.node, s.frame), d.inStep(s.attributes, from.start)
	d.observe(gpuTime, node, set, s.end, s.end-s.start)
	if launch != unknown && s.start > launch.start {
		d.observe(launchDelay, node, set, s.start, s.start-launch.start)
	}
}

// addAllocation adds what was allocated or freed below a node.
func (d *decoder) addAllocation(s *span, node int32, set dictionary.AttributeSetIndex) {
	p, size := allocSpace, s.id
	if size < 0 {
		p, size = freeSpace, -size
	}
	set = d.b.AddAttributes(d.inStep(set, s.start), d.number(events.AttributeGPUDevice, s.external))
	d.observe(p, node, set, s.start, size)
}

// pythonName is how Python's frames are named: file(line): function. Objects have an address, which is another one in
// each process.
var (
	pythonName = regexp.MustCompile(`(?s)^(.*?)\((-?\d{1,9})\): (.*)$`)
	address    = regexp.MustCompile(` at 0x[0-9a-f]*`)
)

// pythonFunction returns a function of Python by the name of its event.
func (d *decoder) pythonFunction(name string) (f dictionary.Function) {
	if parts := pythonName.FindStringSubmatch(name); parts != nil {
		line, _ := strconv.ParseInt(parts[2], 10, 64)
		f.Filename, f.StartLine, name = d.b.InternString(parts[1]), max(line, 0), parts[3]
	}
	f.Name = d.b.InternString(address.ReplaceAllLiteralString(name, ""))
	return f
}

// callStack interns Python frames, which are written from the leaf: name;name;.
func (d *decoder) callStack(value []byte) dictionary.StackIndex {
	if stack, ok := d.callStacks[string(value)]; ok {
		return stack
	}
	var frames []int32
	for name := range strings.SplitSeq(text(value), ";") {
		if name != "" {
			frames = append(frames, d.frame([]byte(name), python))
		}
	}
	stack := d.b.Dict.Stacks.Intern(frames)
	d.callStacks[string(value)] = stack
	d.keptBytes += entryBytes + len(value)
	return stack
}
