// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"encoding/json"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

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
	return d.json.Object(func(key string) error {
		if key != "data" {
			return d.json.Skip()
		}
		return d.json.Object(func(key string) error {
			if key != "cpuProfile" {
				return d.readField(p, part, key)
			}
			return d.json.Object(func(key string) error { return d.readField(p, part, key) })
		})
	})
}
