// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// The texts below name everything that their subjects hold, so equal texts mean equal content.

func resourceText(rp pprofile.ResourceProfiles) string {
	return spaced(mapText(rp.Resource().Attributes()), dropped(rp.Resource().DroppedAttributesCount()),
		schema(rp.SchemaUrl()))
}

func scopeText(sp pprofile.ScopeProfiles) string {
	s := sp.Scope()
	return spaced(word(s.Name()), word(s.Version()), braces(mapText(s.Attributes())),
		dropped(s.DroppedAttributesCount()), schema(sp.SchemaUrl()))
}

func spaced(parts ...string) string {
	var present []string
	for _, p := range parts {
		if p != "" {
			present = append(present, p)
		}
	}
	return strings.Join(present, " ")
}

// fields has a profile's own fields, its payload left out.
func (s *side) fields(p pprofile.Profile) []textField {
	return append([]textField{{"sample_type", s.valueType(p.SampleType())}}, s.profileFields(p)...)
}

func (c *comparison) compareFields(where string, want, got pprofile.Profile) {
	wantFields, gotFields := c.want.fields(want), c.got.fields(got)
	for i, f := range wantFields {
		c.differences.compare(where+"."+f.name, f.text, gotFields[i].text)
	}
}

func (c *comparison) comparePayload(where string, want, got pprofile.Profile) {
	w, g := want.OriginalPayload().AsRaw(), got.OriginalPayload().AsRaw()
	if !bytes.Equal(w, g) {
		c.differences.add(where+".original_payload", "has %d bytes that are not the %d wanted", len(g), len(w))
	}
}
