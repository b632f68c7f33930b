// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package firefox

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

var errNested = errors.New("processes within processes of a process")

// value reads the next value into to. One of another type is ignored, and counted.
func (d *decoder) value(to any) error {
	ok, err := d.json.Value(to)
	if errors.Is(err, errColumn) {
		err = nil
	}
	if err == nil && !ok {
		d.Stats.Dropped++
	}
	return err
}

// readProcess reads a profile, and adds the samples of its threads.
func (d *decoder) readProcess(depth int) error {
	if depth > 2 {
		return errNested
	}
	var p process
	inner := func() error { return d.readProcess(depth + 1) }
	err := d.json.Fields(map[string]any{
		"meta": func() error { return d.value(&p.meta) },
		"libs": wire.Each(func() error {
			var l lib
			if err := d.value(&l); err != nil {
				return err
			}
			p.libs = append(p.libs, l)
			return d.Grow(libBytes)
		}),
		"shared": func() error {
			return d.json.Object(func(key string) error { return d.readTable(&p.shared, key) })
		},
		"threads":   wire.Each(func() error { return d.readThread(&p) }),
		"profile":   inner, // what the old Performance panel of Firefox saves
		"processes": wire.Each(inner),
	})
	if err != nil {
		return err
	}
	return d.addThreads(&p)
}

// threadBytes and libBytes are the memory of a thread and of a library.
const threadBytes, libBytes = 1024, 3 * 48

// readThread reads a thread, and keeps it if it has samples.
func (d *decoder) readThread(p *process) error {
	d.threads++
	t := &thread{}
	err := d.json.Object(func(key string) error {
		switch key {
		case "name":
			return d.value(&t.name)
		case "pid":
			return d.value(&t.pid)
		case "tid":
			return d.value(&t.tid)
		case "samples":
			return d.readSamples(t, "")
		case "jsAllocations", "nativeAllocations":
			return d.readSamples(t, weightBytes)
		}
		return d.readTable(&t.tables, key)
	})
	if err != nil || len(t.samples) == 0 {
		return err
	}
	p.threads = append(p.threads, t)
	return d.Grow(threadBytes)
}

// readTable reads a table into t. Keys that are not columns are skipped.
func (d *decoder) readTable(t *tables, key string) error {
	var columns map[string]any
	switch key {
	case "stringArray", "stringTable":
		return d.value(&t.strings)
	case "stackTable":
		columns = map[string]any{"prefix": &t.stacks.prefix, "frame": &t.stacks.frame}
	case "frameTable":
		columns = map[string]any{
			"func": &t.frames.function, "line": &t.frames.line, "column": &t.frames.column, "address": &t.frames.address,
			"location": &t.frames.text,
		}
	case "funcTable":
		columns = map[string]any{
			"name": &t.functions.name, "fileName": &t.functions.file, "source": &t.functions.source,
			"resource":   &t.functions.resource,
			"lineNumber": &t.functions.line,
		}
	case "resourceTable":
		columns = map[string]any{"lib": &t.resourceLib}
	case "sources":
		columns = map[string]any{"filename": &t.sourceFile}
	default:
		return d.json.Skip()
	}
	return d.readColumns(columns)
}

// readColumns reads a table: as an object with a list for each column, or with a list of rows and a schema, which comes
// first.
func (d *decoder) readColumns(columns map[string]any) error {
	schema := map[string]int{}
	return d.json.Object(func(key string) error {
		switch key {
		case "schema":
			return d.value(&schema)
		case "data":
			return d.json.Array(func() error { return d.readRow(schema, columns) })
		}
		if column, ok := columns[key]; ok {
			return d.value(column)
		}
		return d.json.Skip()
	})
}

// readRow appends a row to the columns.
func (d *decoder) readRow(schema map[string]int, columns map[string]any) error {
	var row []json.RawMessage
	if err := d.value(&row); err != nil {
		return err
	}
	for name, to := range columns {
		at, ok := schema[name]
		if !ok {
			continue
		}
		v := math.NaN()
		if at >= 0 && at < len(row) && json.Unmarshal(row[at], &v) != nil {
			v = math.NaN()
		}
		if column, ok := to.(*column); ok {
			*column = append(*column, v)
		}
	}
	return nil
}
