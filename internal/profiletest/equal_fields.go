// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/resolved"
)

// fields has a profile's own fields, its payload left out.
func (s *side) fields(p pprofile.Profile) []resolved.Field {
	return append([]resolved.Field{{Name: "sample_type", Text: s.ValueType(p.SampleType())}}, s.ProfileFields(p)...)
}

func (c *comparison) compareFields(where string, want, got pprofile.Profile) {
	wantFields, gotFields := c.want.fields(want), c.got.fields(got)
	for i, f := range wantFields {
		c.differences.compare(where+"."+f.Name, f.Text, gotFields[i].Text)
	}
}

func (c *comparison) comparePayload(where string, want, got pprofile.Profile) {
	w, g := want.OriginalPayload().AsRaw(), got.OriginalPayload().AsRaw()
	if !bytes.Equal(w, g) {
		c.differences.add(where+".original_payload", "has %d bytes that are not the %d wanted", len(g), len(w))
	}
}
