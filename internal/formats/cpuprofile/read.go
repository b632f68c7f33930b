// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"

func (r *Reader) open(data []byte) {
	r.json = wire.NewJSON(data)
	r.json.Check = func() error { return r.b.Check(0) }
}

// readFile reads the profile of a file, or of what the inspector answers when it stops: {"profile":{}}.
func (r *Reader) readFile(p *Profile, data []byte) error {
	r.open(data)
	p.chunks = make([]chunk, 1)
	fields := r.fieldsOf(p, &p.chunks[0])
	fields["profile"] = r.fieldsOf(p, &p.chunks[0])
	return r.json.Fields(fields)
}

// chunkBytes is the memory of a chunk, in a list that may just have grown, and numberBytes that of a number.
const chunkBytes, numberBytes = 3 * 112, 8

// AddPart reads the part of a profile that an event of a trace has in its arguments:
// {"data":{"startTime":1,"timeDeltas":[1],"cpuProfile":{"nodes":[],"samples":[1]}}}.
func (r *Reader) AddPart(p *Profile, microseconds float64, arguments []byte) error {
	read := parserFactor * len(arguments)
	if err := r.b.Grow(read); err != nil {
		return err
	}
	r.open(arguments)
	c := chunk{at: microseconds}
	fields := r.fieldsOf(p, &c)
	fields["cpuProfile"] = r.fieldsOf(p, &c)
	err := r.json.Fields(map[string]any{"data": fields})
	if r.b.Check(0) == nil && err != nil { // it is not what it should be
		r.b.Stats.Dropped++
	}
	p.chunks = append(p.chunks, c)
	return r.b.Grow(chunkBytes + numberBytes*(cap(c.samples)+cap(c.deltas)+cap(c.timestamps)) - read)
}

// fieldsOf returns the fields of a profile. What it has of samples goes to c.
func (r *Reader) fieldsOf(p *Profile, c *chunk) map[string]any {
	return map[string]any{
		"nodes":   wire.Each(func() error { return r.readNode(p) }),
		"head":    func() error { return r.readHead(p, none, 0) },
		"samples": &c.samples, "timeDeltas": &c.deltas, "timestamps": &c.timestamps,
		"startTime": &p.start, "endTime": &p.end,
	}
}

func (r *Reader) readNode(p *Profile) error {
	var n struct {
		ID        int64     `json:"id"`
		Parent    *int64    `json:"parent"`
		Children  []int64   `json:"children"`
		CallFrame callFrame `json:"callFrame"`
		HitCount  float64   `json:"hitCount"`
	}
	if err := r.json.Read(&n); err != nil {
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
	r.define(&p.nodes[at], &n.CallFrame, 0)
	return r.b.Grow(nodeBytes * (len(p.nodes) - before))
}

// readHead reads a tree whose nodes have their children in them: that of a heap profile, or of a CPU profile before
// Chrome 58 and Node 8, whose nodes have their functions without a callFrame.
func (r *Reader) readHead(p *Profile, parent int32, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	if err := r.b.Grow(nodeBytes); err != nil {
		return err
	}
	at := p.add(parent)
	var f callFrame
	first := int64(1)
	err := r.json.Object(func(key string) error {
		switch key {
		case "children":
			return r.json.Array(func() error { return r.readHead(p, at, depth+1) })
		case "id":
			var id int64
			err := r.json.Read(&id)
			p.index[id] = at
			return err
		case "selfSize":
			p.isHeap = true
			return r.json.Read(&p.nodes[at].value)
		case "hitCount":
			return r.json.Read(&p.nodes[at].value)
		case "callFrame":
			first = 0
			return r.json.Read(&f)
		case "functionName":
			return r.json.Read(&f.FunctionName)
		case "url":
			return r.json.Read(&f.URL)
		case "lineNumber":
			return r.json.Read(&f.LineNumber)
		case "columnNumber":
			return r.json.Read(&f.ColumnNumber)
		}
		return r.json.Skip()
	})
	r.define(&p.nodes[at], &f, first)
	return err
}
