// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

func (d *decoder) read(data []byte) error {
	d.json = wire.NewJSON(data)
	d.json.Check = func() error { return d.b.Check(0) }
	if bytes.HasPrefix(data, []byte("[")) {
		err := d.json.Array(d.readEvent)
		if d.numEvents > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
			return nil // Chrome's trace events need no bracket at their end, since a crash may have been it
		}
		return err
	}
	file := newProfile()
	var all chunk
	fields := d.fieldsOf(file, &all)
	fields["traceEvents"], fields["metadata"] = wire.Each(d.readEvent), d.readMetadata
	err := d.json.Fields(fields)
	if len(file.nodes) > 0 {
		file.chunks = []chunk{all}
		d.profiles = append(d.profiles, file)
	}
	return err
}

// readMetadata reads when DevTools began to record.
func (d *decoder) readMetadata() error {
	var metadata struct {
		StartTime json.RawMessage `json:"startTime"`
	}
	if err := d.json.Read(&metadata); err != nil {
		return err
	}
	var text string
	if json.Unmarshal(metadata.StartTime, &text) == nil {
		d.began, _ = time.Parse(time.RFC3339, text)
	}
	return nil
}

// fieldsOf returns the fields of a profile. What it has of samples goes to c.
func (d *decoder) fieldsOf(p *profile, c *chunk) map[string]any {
	return map[string]any{
		"nodes":   wire.Each(func() error { return d.readNode(p) }),
		"head":    func() error { return d.readHead(p, none, 0) },
		"samples": &c.samples, "timeDeltas": &c.deltas, "timestamps": &c.timestamps,
		"startTime": &p.start, "endTime": &p.end,
	}
}

func (d *decoder) readNode(p *profile) error {
	var n struct {
		ID        int64     `json:"id"`
		Parent    *int64    `json:"parent"`
		Children  []int64   `json:"children"`
		CallFrame callFrame `json:"callFrame"`
		HitCount  float64   `json:"hitCount"`
	}
	if err := d.json.Read(&n); err != nil {
		return err
	}
	before := len(p.nodes)
	at := p.place(n.ID)
	if n.Parent != nil {
		parent := p.place(*n.Parent)
		p.nodes[at].parent = parent
	}
	for _, child := range n.Children {
		to := p.place(child)
		p.nodes[to].parent = at
	}
	p.nodes[at].value = n.HitCount
	d.define(&p.nodes[at], &n.CallFrame, 0)
	return d.b.Grow(nodeBytes * (len(p.nodes) - before))
}

// readHead reads a tree whose nodes have their children in them: that of a heap profile, or of a CPU profile before
// Chrome 58 and Node 8, whose nodes have their functions without a callFrame.
func (d *decoder) readHead(p *profile, parent int32, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	if err := d.b.Grow(nodeBytes); err != nil {
		return err
	}
	at := p.add(parent)
	var f callFrame
	first := int64(1)
	err := d.json.Object(func(key string) error {
		switch key {
		case "children":
			return d.json.Array(func() error { return d.readHead(p, at, depth+1) })
		case "id":
			var id int64
			err := d.json.Read(&id)
			p.index[id] = at
			return err
		case "selfSize":
			p.isHeap = true
			return d.json.Read(&p.nodes[at].value)
		case "hitCount":
			return d.json.Read(&p.nodes[at].value)
		case "callFrame":
			first = 0
			return d.json.Read(&f)
		case "functionName":
			return d.json.Read(&f.FunctionName)
		case "url":
			return d.json.Read(&f.URL)
		case "lineNumber":
			return d.json.Read(&f.LineNumber)
		case "columnNumber":
			return d.json.Read(&f.ColumnNumber)
		}
		return d.json.Skip()
	})
	d.define(&p.nodes[at], &f, first)
	return err
}

// traceEvent is one of Chrome's trace events.
type traceEvent struct {
	Name  string          `json:"name"`
	Phase string          `json:"ph"`
	ID    json.RawMessage `json:"id"`
	PID   int64           `json:"pid"`
	TID   int64           `json:"tid"`
	TS    float64         `json:"ts"`
	Args  json.RawMessage `json:"args"`
}

func (d *decoder) readEvent() error {
	var event traceEvent
	if err := d.json.Read(&event); err != nil {
		return err
	}
	d.numEvents++
	if event.Phase != "M" && event.TS > 0 && (d.firstEvent == 0 || event.TS < d.firstEvent) {
		d.firstEvent = event.TS
	}
	switch event.Name {
	case "Profile", "ProfileChunk", "CpuProfile": // the last one is that of Chrome up to 66
		return d.readProfileEvent(&event)
	case "thread_name":
		var args struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(event.Args, &args) == nil {
			d.threadNames[threadKey{event.PID, event.TID}] = args.Name
		}
	}
	return nil
}

// chunkBytes is the memory of a chunk, in a list that may just have grown.
const chunkBytes = 3 * 112

// readProfileEvent reads the part of a profile that an event has.
func (d *decoder) readProfileEvent(event *traceEvent) error {
	key := profileKey{process: event.PID, id: string(event.ID)}
	if key.id == "" {
		key.id = strconv.FormatInt(event.TID, 10)
	}
	p := d.byKey[key]
	if p == nil {
		p = newProfile()
		d.byKey[key] = p
		d.profiles = append(d.profiles, p)
	}
	if event.Name != "ProfileChunk" { // which the profiler's own thread writes
		p.process, p.thread, p.isOfBrowser = event.PID, event.TID, true
	}
	part := chunk{at: event.TS}
	whole := d.json
	d.json.Decoder = wire.NewJSON(event.Args).Decoder
	err := d.readArgs(p, &part)
	d.json = whole
	if d.b.Check(0) == nil && err != nil { // it is not what it should be
		d.b.Stats.Dropped++
	}
	p.chunks = append(p.chunks, part)
	return d.b.Grow(chunkBytes)
}

// readArgs reads the arguments of an event:
// {"data":{"startTime":1,"timeDeltas":[1],"cpuProfile":{"nodes":[],"samples":[1]}}}.
func (d *decoder) readArgs(p *profile, part *chunk) error {
	fields := d.fieldsOf(p, part)
	fields["cpuProfile"] = d.fieldsOf(p, part)
	return d.json.Fields(map[string]any{"data": fields})
}
