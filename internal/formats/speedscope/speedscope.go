// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package speedscope reads files for speedscope (https://www.speedscope.app/file-format-schema.json), which py-spy,
// rbspy, pyinstrument, dotnet-trace, Excimer and speedscope itself write.
//
// The frames are shared by all profiles, and may come after them: Decode walks over the JSON twice, without keeping it.
// readFrames interns the frames, readProfile reads one profile. A sampled profile is stacks with weights (addSamples).
// An evented one is when frames open and close; the time between two events is that of the stack that is open then
// (evented.go).
//
// The values of times are wall/nanoseconds, as the format does not tell what the time is, or of the type in Options;
// others are space/bytes or samples/count. Evented profiles keep their times, which are Unix time or end at the anchor.
// If a file has several profiles, their names are those of threads. In a file that this project has written, they are a
// service, the name of the profile, and the type of the values.
package speedscope

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// Options are what a file does not state itself.
type Options struct {
	events.Options
	// SampleType is the type of the values, and Unit their unit if the file states none.
	SampleType, Unit string
}

// parserFactor is the memory of numbers.
const parserFactor = 10

// ErrNotSpeedscope is the error for JSON that is not a file for speedscope.
var ErrNotSpeedscope = errors.New("there are no profiles for speedscope in the JSON")

// Decode returns the profiles of a file: one for each type of values, with and without times.
func Decode(data []byte, options Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{options: options, data: data, tree: events.NewCallTree(len(data)),
		fractions: map[identity]float64{}, scopes: map[string]compact.ScopeIndex{}}
	return d.Run(options.Options, parserFactor*len(data), len(data), func() error {
		if err := d.read(); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		if d.number == 0 {
			return ErrNotSpeedscope
		}
		d.SetClock()
		return nil
	})
}

type decoder struct {
	events.Builder
	options Options
	data    []byte
	json    wire.JSON
	frames  []int32 // locations
	number  int     // of profiles
	// exporter is the program that has written the file.
	exporter string
	tree     *events.CallTree
	scope    compact.ScopeIndex
	scopes   map[string]compact.ScopeIndex // by the name of their profiles
	profile  profile                       // the current one
	// fractions has what the values of samples so far are more than their weights were, from -0.5 to 0.5.
	fractions map[identity]float64
	stack     []int32 // scratch
}

// identity is that of a sample of a profile.
type identity struct {
	compact.Identity
	of compact.ProfileIndex
}

// read walks over the file twice: for the frames, and for the profiles.
func (d *decoder) read() error {
	err := d.object(map[string]any{
		"exporter": &d.exporter,
		"shared":   map[string]any{"frames": wire.Each(d.readFrame)},
		"profiles": wire.Each(func() error {
			d.number++
			return d.json.Skip()
		}),
	})
	if err != nil {
		return err
	}
	return d.object(map[string]any{"profiles": wire.Each(d.readProfile)})
}

func (d *decoder) object(fields map[string]any) error {
	d.json = wire.NewJSON(d.data)
	d.json.Check = d.check
	return d.json.Fields(fields)
}

// check reserves the lists.
func (d *decoder) check() error {
	return d.Check(4*len(d.frames) + stackBytes*len(d.profile.stacks) + openingBytes*len(d.profile.openings) +
		fractionBytes*len(d.fractions))
}

func (d *decoder) readFrame() error {
	var f struct {
		Name string   `json:"name"`
		File string   `json:"file"`
		Line *float64 `json:"line"`
		Col  *float64 `json:"col"`
	}
	if err := d.json.Read(&f); err != nil {
		return err
	}
	function := dictionary.Function{Name: d.InternString(cmp.Or(f.Name, "(unknown)")), Filename: d.InternString(f.File)}
	d.frames = append(d.frames, d.Frame(function, position(f.Line), position(f.Col)))
	return nil
}

func position(v *float64) int64 {
	if v == nil || !(*v > 0 && *v < math.MaxInt32) {
		return 0
	}
	return int64(*v)
}

// profile is a profile of the file. Its fields can come in any order.
type profile struct {
	name, unit string
	kind, typ  string // the profile's name, and the type of its values, if the file states them
	start, end float64

	stacks  []dictionary.StackIndex // unreadable if there is no valid stack
	weights []float64

	openings []opening
}

func (d *decoder) readProfile() error {
	p := &d.profile
	*p = profile{}
	err := d.json.Fields(map[string]any{
		"name": &p.name, "unit": &p.unit, "startValue": &p.start, "endValue": &p.end,
		"samples": wire.Each(d.readStack), "events": wire.Each(d.readOpening),
		"weights": func() error {
			ok, err := d.json.Value(&p.weights)
			if !ok { // otherwise those that are no numbers would be 0
				p.weights = nil
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	var attributes dictionary.AttributeSetIndex
	if d.exporter == exporter { // the type is with or without the unit
		p.name, p.typ = events.CutLast(p.name)
		p.name, p.kind = events.CutLast(p.name)
	}
	d.scope = d.scopeOf(p.kind)
	if d.number > 1 && p.name != "" {
		attributes = d.AddAttributes(0, d.TextAttribute(events.AttributeThreadName, p.name))
	}
	if err := d.addSamples(p, attributes); err != nil {
		return err
	}
	return d.addIntervals(p, attributes)
}

// maxScopes bounds the names of profiles.
const maxScopes = 64

// scopeOf returns the scope of profiles of a name, which can be empty.
func (d *decoder) scopeOf(name string) compact.ScopeIndex {
	if len(d.scopes) >= maxScopes {
		name = ""
	}
	scope, ok := d.scopes[name]
	if !ok {
		of := pcommon.NewInstrumentationScope()
		if name != "" {
			of.Attributes().PutStr(kind.NameAttribute, d.CleanString(name))
		}
		scope = d.Scope(d.Resource(pcommon.NewResource(), ""), of, "")
		d.scopes[name] = scope
	}
	return scope
}

// exporter is what this project writes into its own files.
const exporter = "otelcol-profiles"

// typeOf returns the type of a profile's values, and how many there are in one of the file's.
func (d *decoder) typeOf(p *profile) (typ events.Type, factor int64) {
	name, unit := d.options.SampleType, d.options.Unit
	if stated, ofStated, _ := strings.Cut(p.typ, "/"); stated != "" {
		name, unit = cmp.Or(name, d.CleanString(stated)), cmp.Or(unit, d.CleanString(ofStated))
	}
	if factor = kind.NanosPer(p.unit); factor > 0 {
		return events.Type{Name: cmp.Or(name, "wall"), Unit: nanoseconds}, factor
	}
	if p.unit == "bytes" {
		return events.Type{Name: cmp.Or(name, "space"), Unit: "bytes"}, 1
	}
	return events.Type{Name: cmp.Or(name, "samples"), Unit: cmp.Or(unit, "count")}, 1
}

const nanoseconds = "nanoseconds"

// profileOf returns the profile for values of a type.
func (d *decoder) profileOf(typ events.Type, isTimed bool) compact.ProfileIndex {
	shape := compact.Shape{Values: true, Timestamps: isTimed}
	return d.InternProfile(d.scope, events.Profile{Sample: typ, Period: typ, Shape: shape})
}

const unreadable dictionary.StackIndex = -1

// readStack reads a stack: indices of frames, root first.
func (d *decoder) readStack() error {
	var indices []int64
	isStack, err := d.json.Value(&indices)
	if err != nil {
		return err
	}
	d.stack = d.stack[:0]
	for _, i := range slices.Backward(indices) {
		if i < 0 || i >= int64(len(d.frames)) {
			isStack = false
			break
		}
		d.stack = append(d.stack, d.frames[i])
	}
	stack := unreadable
	if isStack {
		stack = d.Dict.Stacks.Intern(d.stack)
	}
	d.profile.stacks = append(d.profile.stacks, stack)
	return nil
}

// addSamples adds the samples of a sampled profile. Equal stacks are one sample: the file need not have them in their
// order in time.
func (d *decoder) addSamples(p *profile, attributes dictionary.AttributeSetIndex) error {
	if len(p.stacks) == 0 {
		return nil
	}
	typ, factor := d.typeOf(p)
	to := d.profileOf(typ, false)
	first, hasFirst := events.Scaled(p.start, factor)
	last, hasLast := events.Scaled(p.end, factor)
	if typ.Unit == nanoseconds && hasFirst && hasLast && first < last && last < events.Year2100*1e9 {
		d.Widen(to, uint64(first), uint64(last))
	}
	for i, stack := range p.stacks {
		if err := d.check(); err != nil {
			return err
		}
		weight := 0.0
		if i < len(p.weights) {
			weight = p.weights[i]
		}
		value, ok := events.Scaled(weight, factor)
		if !ok || stack == unreadable || i >= len(p.weights) {
			d.Stats.Dropped++
			continue
		}
		d.Stats.Events++
		id := compact.Identity{Stack: stack, Attributes: attributes}
		if factor == 1 {
			value = d.whole(identity{id, to}, weight)
		}
		if value > 0 {
			d.Observe(to, id, compact.Observation{Value: value})
		}
	}
	return nil
}

// whole returns a weight as a whole number. The numbers of a stack add up to the rounded sum of its weights.
func (d *decoder) whole(id identity, weight float64) int64 {
	before := d.fractions[id]
	if before == 0 && weight == math.Trunc(weight) {
		return int64(weight)
	}
	whole := math.Floor(weight + before + 0.5)
	d.fractions[id] = weight + before - whole
	return int64(whole)
}
