// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package cpuprofile reads V8's CPU profiles: a .cpuprofile file (node --cpu-prof, Chrome's inspector), or Chrome's trace
// events Profile and ProfileChunk, in an array or under traceEvents.
//
// Decode walks over the JSON without keeping it. A profile is a tree of nodes, each of which has a function, and samples that
// name nodes: decoder.readNode interns the functions, and decoder.stackOf follows the parents of the sampled nodes. Times are
// microseconds, either Unix time or since the machine started; then the anchor is the end of the recording.
package cpuprofile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

const (
	// maxDepth is the largest number of nodes of a stack. V8 records 255.
	maxDepth = 512
	// All stacks together may have minNodes + nodesPerByte × the length of the file. A node of 100 bytes is rarely at a depth
	// of more than 50.
	minNodes     = 64 << 10
	nodesPerByte = 2
	// parserFactor is the memory of numbers and nodes.
	parserFactor = 10
)

// ErrNotProfile is the error for JSON without a profile.
var ErrNotProfile = errors.New("there is no V8 CPU profile in the JSON")

// Decode returns the profiles of a file: samples/count with timestamps alone. It leaves out samples of (idle). Samples of
// (garbage collector) and (program) become a frame on top of the previous stack.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{byKey: map[profileKey]*profile{}, nodesLeft: minNodes + nodesPerByte*len(data)}
	return d.b.Run(options, parserFactor*len(data), len(data), func() error {
		if err := d.read(bytes.TrimLeft(data, "\xef\xbb\xbf \t\r\n")); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		if len(d.profiles) == 0 {
			return ErrNotProfile
		}
		return d.addProfiles(options.Anchor)
	})
}

type decoder struct {
	json     wire.JSON
	b        events.Builder
	profiles []*profile
	byKey    map[profileKey]*profile
	stack    []int32
	// nodesLeft is how many more nodes stacks may have.
	nodesLeft int
}

// profileKey names a profile among Chrome's trace events.
type profileKey struct {
	process int64
	id      string
}

// node is a function in the tree of calls.
type node struct {
	parent   int64 // its id; 0 means that there is none
	kind     nodeKind
	location int32
}

type nodeKind uint8

const (
	ordinary nodeKind = iota
	root
	idle
	above // a state of the machine, on top of the previous stack
)

type profile struct {
	nodes       map[int64]node
	samples     []float64 // ids of nodes
	deltas      []float64 // microseconds since the previous sample
	start, end  float64   // microseconds
	process     int64
	thread      int64
	isOfBrowser bool
}

func newProfile() *profile { return &profile{nodes: map[int64]node{}} }

func (d *decoder) read(data []byte) error {
	d.json = wire.JSON{Decoder: json.NewDecoder(bytes.NewReader(data))}
	if bytes.HasPrefix(data, []byte("[")) {
		return d.json.Array(d.readEvent)
	}
	file := newProfile()
	err := d.json.Object(func(key string) error {
		if key == "traceEvents" {
			return d.json.Array(d.readEvent)
		}
		return d.readField(file, key)
	})
	if len(file.nodes) > 0 {
		d.profiles = append(d.profiles, file)
	}
	return err
}

// value reads the next value into to. A value of another type is ignored.
func (d *decoder) value(to any) error {
	err := d.json.Decode(to)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return nil
	}
	return err
}

func (d *decoder) readField(p *profile, key string) error {
	switch key {
	case "nodes":
		return d.json.Array(func() error { return d.readNode(p) })
	case "samples":
		return d.value(&p.samples)
	case "timeDeltas":
		return d.value(&p.deltas)
	case "startTime":
		return d.value(&p.start)
	case "endTime":
		return d.value(&p.end)
	}
	return d.json.Skip()
}

type jsonNode struct {
	ID        int64   `json:"id"`
	Parent    int64   `json:"parent"`
	Children  []int64 `json:"children"`
	CallFrame struct {
		FunctionName string `json:"functionName"`
		URL          string `json:"url"`
		LineNumber   *int64 `json:"lineNumber"`
		ColumnNumber *int64 `json:"columnNumber"`
	} `json:"callFrame"`
}

func (d *decoder) readNode(p *profile) error {
	if err := d.b.Step(0); err != nil {
		return err
	}
	var n jsonNode
	if err := d.value(&n); err != nil {
		return err
	}
	made := d.makeNode(&n)
	made.parent = cmp.Or(n.Parent, p.nodes[n.ID].parent)
	p.nodes[n.ID] = made
	for _, child := range n.Children {
		c := p.nodes[child]
		c.parent = n.ID
		p.nodes[child] = c
	}
	return nil
}

// makeNode interns the function of a node. Lines and columns count from 0 in V8, and from 1 in OTLP.
func (d *decoder) makeNode(n *jsonNode) node {
	name := n.CallFrame.FunctionName
	made := node{}
	switch name {
	case "(root)":
		return node{kind: root}
	case "(idle)":
		return node{kind: idle}
	case "(garbage collector)", "(program)":
		made.kind = above
	case "":
		name = "(anonymous)"
	}
	intern := d.b.Dict.Strings.Intern
	f := dictionary.Function{Name: intern(d.b.CleanString(name)), Filename: intern(d.b.CleanString(n.CallFrame.URL)), StartLine: fromZero(n.CallFrame.LineNumber)}
	made.location = d.b.Frame(f, f.StartLine, fromZero(n.CallFrame.ColumnNumber))
	return made
}

func fromZero(n *int64) int64 {
	if n == nil || *n < 0 || *n == math.MaxInt64 {
		return 0
	}
	return *n + 1
}

// readEvent reads one of Chrome's trace events.
func (d *decoder) readEvent() error {
	if err := d.b.Step(0); err != nil {
		return err
	}
	var event struct {
		Name string          `json:"name"`
		ID   json.RawMessage `json:"id"`
		PID  int64           `json:"pid"`
		TID  int64           `json:"tid"`
		Args json.RawMessage `json:"args"`
	}
	if err := d.value(&event); err != nil {
		return err
	}
	if event.Name != "Profile" && event.Name != "ProfileChunk" {
		return nil
	}
	key := profileKey{process: event.PID, id: string(event.ID)}
	p := d.byKey[key]
	if p == nil {
		p = newProfile()
		d.byKey[key] = p
		d.profiles = append(d.profiles, p)
	}
	if event.Name == "Profile" {
		p.process, p.thread, p.isOfBrowser = event.PID, event.TID, true
	}
	var args struct {
		Data struct {
			StartTime  float64   `json:"startTime"`
			TimeDeltas []float64 `json:"timeDeltas"`
			CPUProfile struct {
				Nodes   json.RawMessage `json:"nodes"`
				Samples []float64       `json:"samples"`
			} `json:"cpuProfile"`
		} `json:"data"`
	}
	if err := json.Unmarshal(event.Args, &args); err != nil {
		d.b.Stats.Dropped++
		return nil
	}
	if args.Data.StartTime != 0 {
		p.start = args.Data.StartTime
	}
	p.samples = append(p.samples, args.Data.CPUProfile.Samples...)
	p.deltas = append(p.deltas, args.Data.TimeDeltas...)
	if len(args.Data.CPUProfile.Nodes) == 0 {
		return nil
	}
	whole := d.json
	d.json = wire.JSON{Decoder: json.NewDecoder(bytes.NewReader(args.Data.CPUProfile.Nodes))}
	err := d.json.Array(func() error { return d.readNode(p) })
	d.json = whole
	return err
}

// addProfiles adds the samples of all profiles, whose clocks are the same one.
func (d *decoder) addProfiles(anchor events.Anchor) error {
	first, last := math.Inf(1), math.Inf(-1)
	for _, p := range d.profiles {
		for len(p.deltas) < len(p.samples) {
			p.deltas = append(p.deltas, 0)
		}
		at := p.start
		first, last = min(first, at), max(last, at, p.end)
		for i := range p.samples {
			at += p.deltas[i]
			first, last = min(first, at), max(last, at)
		}
	}
	if !(first >= 0 && last < 1<<52) { // not a number, or not of a clock in microseconds
		d.b.Stats.Dropped += len(d.profiles)
		return nil
	}
	length := uint64((last - first) * 1000)
	begin := uint64(first) * 1000
	isAnchored := first < events.Year2000*1e6 // else it is a Unix time
	if isAnchored {
		begin = 0
		if anchor.EndNanos > length {
			begin = anchor.EndNanos - length
		}
	}
	scope := d.b.NewScope()
	for _, p := range d.profiles {
		if err := d.addProfile(scope, p, first); err != nil {
			return err
		}
	}
	if isAnchored {
		d.b.GuessClock()
	}
	d.b.Shift(begin)
	return nil
}

// stackKey identifies a stack: its node, and the node of the previous stack if it is on top of that.
type stackKey struct{ node, before int64 }

// addProfile adds the samples of a profile, at times since first.
func (d *decoder) addProfile(scope compact.ScopeIndex, p *profile, first float64) error {
	var period int64
	if n := len(p.samples); n > 0 {
		sum := 0.0
		for i := range p.samples {
			sum += p.deltas[i]
		}
		period = int64(max(0, sum/float64(n)*1000))
	}
	cpu := events.Type{Name: "cpu", Unit: "nanoseconds"}
	to := d.b.NewProfile(scope, events.Profile{
		Sample: events.Type{Name: "samples", Unit: "count"}, Period: cpu, Every: period, Shape: compact.Shape{Timestamps: true},
	})
	var attributes dictionary.AttributeSetIndex
	if p.isOfBrowser {
		attributes = d.b.Dict.AttributeSets.Intern([]int32{
			d.b.IntAttribute(events.AttributeProcessID, p.process), d.b.IntAttribute(events.AttributeThreadID, p.thread),
		})
	}
	stacks := map[stackKey]dictionary.StackIndex{}
	at, before := p.start, int64(0)
	for i, sample := range p.samples {
		if err := d.b.Step(0); err != nil {
			return err
		}
		at += p.deltas[i]
		id := int64(sample)
		n, known := p.nodes[id]
		switch {
		case !known:
			d.b.Stats.Dropped++
			continue
		case n.kind == idle:
			d.b.Stats.Filtered++
			before = 0
			continue
		}
		key := stackKey{node: id}
		if n.kind == above {
			key.before = before
		}
		stack, ok := stacks[key]
		if !ok {
			stack = d.stackOf(p, key)
			stacks[key] = stack
		}
		if stack == unreadable {
			d.b.Stats.Dropped++
			continue
		}
		if n.kind == ordinary {
			before = id
		}
		d.b.Event(to, compact.Identity{Stack: stack, Attributes: attributes}, compact.Observation{Timestamp: uint64((at - first) * 1000)})
	}
	if p.end > 0 {
		d.b.Widen(to, uint64(max(0, p.start-first)*1000), uint64(max(0, p.end-first)*1000))
	}
	return nil
}

// unreadable is the stack of a node that has none.
const unreadable dictionary.StackIndex = -1

// stackOf interns a stack: the ancestors of key.node, or if that is above another stack, itself and the ancestors of key.before.
// It returns unreadable if the stack is too deep or a circle, or if all stacks have too many nodes.
func (d *decoder) stackOf(p *profile, key stackKey) dictionary.StackIndex {
	d.stack = d.stack[:0]
	id := key.node
	if n := p.nodes[id]; n.kind == above {
		d.stack = append(d.stack, n.location)
		id = key.before
	}
	for depth := 0; id != 0; depth++ {
		n, ok := p.nodes[id]
		if !ok || n.kind == root {
			break
		}
		if depth == maxDepth || d.nodesLeft == 0 {
			return unreadable
		}
		d.nodesLeft--
		if n.location != 0 {
			d.stack = append(d.stack, n.location)
		}
		id = n.parent
	}
	return d.b.Dict.Stacks.Intern(d.stack)
}
