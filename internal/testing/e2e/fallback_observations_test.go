// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// observations are the observations of profiles as text, with all that a format of log records can express. Of an
// observation with a time it has how often it occurs, of one without a time the sum of the values.
type observations map[string]int64

func (s observations) add(pd pprofile.Profiles) {
	n := names{pd.Dictionary(), map[int32]string{}, map[int32]string{}}
	for p := range profilesIn(pd) {
		header := fmt.Sprintln(p.resource.AsRaw(), p.scope.Name(), p.scope.Version(), p.scope.Attributes().AsRaw(),
			n.valueType(p.SampleType()), p.Period(), n.valueType(p.PeriodType()))
		for _, sample := range p.Samples().All() {
			s.addSample(header+n.sample(p.Profile, sample), sample)
		}
	}
}

// difference lists some of the observations in which the two differ.
func (s observations) difference(other observations) string {
	var text strings.Builder
	listed := 0
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if got, ok := other[key]; (!ok || got != s[key]) && listed < 3 {
			fmt.Fprintf(&text, "want %d, got %d:\n%s\n", s[key], got, key)
			listed++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(other)) {
		if _, ok := s[key]; !ok && listed < 6 {
			fmt.Fprintf(&text, "not wanted, %d:\n%s\n", other[key], key)
			listed++
		}
	}
	return text.String()
}

func (s observations) addSample(key string, sample pprofile.Sample) {
	values, times := sample.Values(), sample.TimestampsUnixNano()
	for i, value := range values.All() {
		if times.Len() == 0 {
			s[key] += value
		} else {
			s[fmt.Sprintf("%s %d at %d", key, value, times.At(i))]++
		}
	}
	if values.Len() == 0 {
		for _, at := range times.All() {
			s[fmt.Sprintf("%s at %d", key, at)]++
		}
	}
}

// totalValue adds up the values of all samples. Splitting and merging samples does not change it.
func totalValue(pd pprofile.Profiles) (sum int64) {
	for p := range otlp.Profiles(pd) {
		for _, sample := range p.Samples().All() {
			for _, value := range sample.Values().All() {
				sum += value
			}
		}
	}
	return sum
}

// names resolves what samples refer to.
type names struct {
	pprofile.ProfilesDictionary
	// stacks and locations cache texts, because many samples share them.
	stacks, locations map[int32]string
}

func (n names) str(i int32) string { return n.StringTable().At(int(i)) }

func (n names) valueType(t pprofile.ValueType) string {
	return n.str(t.TypeStrindex()) + "/" + n.str(t.UnitStrindex())
}

func (n names) sample(p pprofile.Profile, sample pprofile.Sample) string {
	attributes := map[string]string{}
	n.addAttributes(p.AttributeIndices(), "", attributes)
	n.addAttributes(sample.AttributeIndices(), "sample ", attributes)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		fmt.Fprintf(&text, "%s=%s ", key, attributes[key])
	}
	if i := sample.LinkIndex(); i != 0 {
		link := n.LinkTable().At(int(i))
		fmt.Fprintf(&text, "link %s/%s ", link.TraceID(), link.SpanID())
	}
	return text.String() + n.stack(sample.StackIndex())
}

func (n names) stack(index int32) string {
	known, ok := n.stacks[index]
	if ok {
		return known
	}
	var text strings.Builder
	for _, i := range n.StackTable().At(int(index)).LocationIndices().All() {
		text.WriteString(n.location(i))
	}
	n.stacks[index] = short(text.String())
	return n.stacks[index]
}

// short replaces the rest of a long text by a hash: there are many, and most are long.
func short(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… %x", text[:most], sha256.Sum256([]byte(text)))
}

func (n names) addAttributes(indices pcommon.Int32Slice, prefix string, to map[string]string) {
	for _, i := range indices.All() {
		attribute := n.AttributeTable().At(int(i))
		to[prefix+n.str(attribute.KeyStrindex())] = attribute.Value().AsString()
	}
}

func (n names) location(index int32) string {
	known, ok := n.locations[index]
	if !ok {
		var text strings.Builder
		n.writeLocation(&text, n.LocationTable().At(int(index)))
		known = text.String()
		n.locations[index] = known
	}
	return known
}

func (n names) writeLocation(to *strings.Builder, location pprofile.Location) {
	fmt.Fprintf(to, "\n%#x", location.Address())
	if i := location.MappingIndex(); i != 0 {
		mapping := n.MappingTable().At(int(i))
		fmt.Fprintf(to, " in %s %#x-%#x+%#x", n.str(mapping.FilenameStrindex()), mapping.MemoryStart(), mapping.MemoryLimit(),
			mapping.FileOffset())
	}
	for _, line := range location.Lines().All() {
		function := n.FunctionTable().At(int(line.FunctionIndex()))
		fmt.Fprintf(to, "\n%s (%s:%d) %s %d %d", n.str(function.NameStrindex()), n.str(function.FilenameStrindex()),
			line.Line(), n.str(function.SystemNameStrindex()), function.StartLine(), line.Column())
	}
}

// message returns a message of one or two profiles. No two samples of any messages are equal.
func message(number int) pprofile.Profiles {
	const start, samples = 1_700_000_000_000_000_000, 20
	b := profiletest.New().Resource("service.name", fmt.Sprint("service-", number%3)).Scope("otel.profiling", "1.2.3")
	n := 1 + number%samples
	for i := range n {
		switch i {
		case 0:
			b.Profile("samples", "count").Time(start, 1_000_000_000).Period(10_000_000, "cpu", "nanoseconds").
				Attributes(profiletest.Attr("profiling.instrumentation.source", "continuous"))
		case n - n/2:
			b.Profile("allocated_space", "bytes").Time(start, 1_000_000_000)
		}
		sample := profiletest.Sample{
			// Some are a whole number of milliseconds, the resolution of Splunk's format.
			Timestamps: []uint64{start + uint64(i)*1_000_000 + uint64(number%3)},
			Stack: []profiletest.Location{
				frame(fmt.Sprintf("shop.Cart.leaf_%d_%d", number, i), "Cart.java", 10+i),
				frame("shop.Main.run", "Main.java", number),
				frame("main", "", 0),
			},
			Attributes: []profiletest.Attribute{
				profiletest.Attr("thread.name", fmt.Sprint("worker \"", i%4, "\"")), profiletest.Attr("thread.id", i%4),
			},
		}
		if i >= n-n/2 {
			sample.Values = []int64{int64(number) * 1000}
		}
		if i%2 == 0 {
			sample.TraceID, sample.SpanID = [16]byte{1, byte(number), byte(i)}, [8]byte{2, byte(number), byte(i)}
		}
		b.Sample(sample)
	}
	return b.Build()
}

func frame(function, file string, line int) profiletest.Location {
	return profiletest.Location{
		Lines: []profiletest.Line{{Function: profiletest.Function{Name: function, File: file}, Line: int64(line)}},
	}
}
