// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

// Write writes profiles as indented text with resolved names instead of indices, for golden files. The text has all of
// the content, but not the layout of the dictionary: profiles of equal content have equal texts, regardless of the
// order of their tables. Resources, profiles and samples keep their order, frames are leaf first, attributes are
// sorted. Every sample's stack is written in full, so the text of a large profile is very large.
func Write(w io.Writer, pd pprofile.Profiles) error {
	r := &renderer{namer: Namer{pd.Dictionary()}, text: bufio.NewWriter(w)}
	for _, rp := range pd.ResourceProfiles().All() {
		_ = r.line(0, "resource", ResourceText(rp))
		for _, sp := range rp.ScopeProfiles().All() {
			_ = r.line(1, "scope", ScopeText(sp))
			for _, p := range sp.Profiles().All() {
				if err := r.profile(p); err != nil {
					return err
				}
			}
		}
	}
	return r.text.Flush()
}

type renderer struct {
	namer Namer
	text  *bufio.Writer // after an error, it returns the same one each time
}

func (r *renderer) line(depth int, parts ...string) error {
	_, _ = r.text.WriteString(strings.Repeat("  ", depth))
	_, _ = r.text.WriteString(Spaced(parts...))
	return r.text.WriteByte('\n')
}

func (r *renderer) profile(p pprofile.Profile) error {
	_ = r.line(2, "profile "+r.namer.ValueType(p.SampleType()))
	for _, field := range r.namer.ProfileFields(p) {
		if field.Value != "" {
			_ = r.line(3, field.Name, field.Value)
		}
	}
	if payload := p.OriginalPayload().AsRaw(); len(payload) > 0 {
		_ = r.line(3, "original_payload", hex.EncodeToString(payload))
	}
	for _, s := range p.Samples().All() {
		if err := r.line(3, "sample", observations(s), Braces(r.namer.Attributes(s.AttributeIndices())),
			r.linkText(s)); err != nil {
			return err
		}
		for frame := range r.namer.eachFrame(s.StackIndex()) {
			if err := r.line(4, frame); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *renderer) linkText(s pprofile.Sample) string {
	if s.LinkIndex() == 0 {
		return ""
	}
	return "link " + r.namer.Link(s.LinkIndex())
}

// Field is a field of a profile as text, which is empty if the field is zero.
type Field struct{ Name, Value string }

// ProfileFields returns a profile's own fields, without the payload.
func (n Namer) ProfileFields(p pprofile.Profile) []Field {
	profileID := p.ProfileID()
	hasPeriod := p.Period() != 0 || p.PeriodType().TypeStrindex() != 0 || p.PeriodType().UnitStrindex() != 0
	return []Field{
		{"profile_id", textIf(!profileID.IsEmpty(), hex.EncodeToString(profileID[:]))},
		{"time", textIf(p.Time() != 0, fmt.Sprintf("%d ns", uint64(p.Time())))},
		{"duration", textIf(p.DurationNano() != 0, fmt.Sprintf("%d ns", p.DurationNano()))},
		{"period", textIf(hasPeriod, fmt.Sprintf("%d %s", p.Period(), n.ValueType(p.PeriodType())))},
		{"attributes", Braces(n.Attributes(p.AttributeIndices()))},
		{"dropped_attributes_count", textIf(p.DroppedAttributesCount() != 0, fmt.Sprint(p.DroppedAttributesCount()))},
		{"original_payload_format", textIf(p.OriginalPayloadFormat() != "", Word(p.OriginalPayloadFormat()))},
	}
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// observations returns values and timestamps: "5", "@1 @2" or "5@1 7@2".
func observations(s pprofile.Sample) string {
	var texts []string
	values, timestamps := s.Values(), s.TimestampsUnixNano()
	for i := range max(values.Len(), timestamps.Len()) {
		text := ""
		if i < values.Len() {
			text = fmt.Sprint(values.At(i))
		}
		if i < timestamps.Len() {
			text += fmt.Sprintf("@%d", timestamps.At(i))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// ResourceText returns a resource with its attributes. Equal texts mean equal content.
func ResourceText(rp pprofile.ResourceProfiles) string {
	return Spaced(mapText(rp.Resource().Attributes()), dropped(rp.Resource().DroppedAttributesCount()),
		schema(rp.SchemaUrl()), entities(rp.Resource()))
}

// entities returns the references of a resource to the entities that its attributes describe.
func entities(r pcommon.Resource) string {
	var texts []string
	for _, e := range entity.ResourceEntityRefs(r).All() {
		texts = append(texts, Spaced("entity:", Word(e.Type()), fmt.Sprintf("%q", e.IdKeys().AsRaw()),
			fmt.Sprintf("%q", e.DescriptionKeys().AsRaw()), schema(e.SchemaUrl())))
	}
	return strings.Join(texts, " ")
}

// ScopeText returns a scope with its attributes. Equal texts mean equal content.
func ScopeText(sp pprofile.ScopeProfiles) string {
	s := sp.Scope()
	return Spaced(Word(s.Name()), Word(s.Version()), Braces(mapText(s.Attributes())),
		dropped(s.DroppedAttributesCount()), schema(sp.SchemaUrl()))
}

// Spaced joins the parts that are not empty.
func Spaced(parts ...string) string {
	present := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return strings.Join(present, " ")
}

// Braces returns a set in braces, or nothing for an empty one.
func Braces(set string) string { return textIf(set != "{}", set) }

func dropped(n uint32) string { return textIf(n != 0, fmt.Sprintf("dropped_attributes_count=%d", n)) }

func schema(url string) string { return textIf(url != "", "schema_url="+Word(url)) }
