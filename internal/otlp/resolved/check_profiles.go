// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func (c *checker) checkResource(p path, rp pprofile.ResourceProfiles) {
	c.utf8(p.child("schema_url"), rp.SchemaUrl())
	c.attributeMap(p.child("resource").child("attributes"), rp.Resource().Attributes())
	if c.options&RequireProfiles != 0 && rp.ScopeProfiles().Len() == 0 {
		c.fault(p.child("scope_profiles"), "is empty")
	}
	for i, sp := range rp.ScopeProfiles().All() {
		p := p.item("scope_profiles", i)
		c.utf8(p.child("schema_url"), sp.SchemaUrl())
		c.utf8(p.child("scope").child("name"), sp.Scope().Name())
		c.utf8(p.child("scope").child("version"), sp.Scope().Version())
		c.attributeMap(p.child("scope").child("attributes"), sp.Scope().Attributes())
		if c.options&RequireProfiles != 0 && sp.Profiles().Len() == 0 {
			c.fault(p.child("profiles"), "is empty")
		}
		for j, profile := range sp.Profiles().All() {
			c.checkProfile(p.item("profiles", j), profile)
		}
	}
}

func (c *checker) checkProfile(p path, profile pprofile.Profile) {
	visitProfile(c, p, profile)
	c.checkPayload(p, profile)

	var shape sampleShape
	identities := make(map[Identity]int, profile.Samples().Len())
	for i, sample := range profile.Samples().All() {
		p := p.item("samples", i)
		visitSample(c, p, sample)
		c.checkShape(p, sample, &shape)
		c.checkTimestamps(p.child("timestamps_unix_nano"), profile, sample)
		identity := c.resolver.Identity(sample)
		if first, seen := identities[identity]; !seen {
			identities[identity] = i
		} else if c.options&AllowRepeatedSamples == 0 {
			c.fault(p, "has the stack, attributes and link of samples[%d]", first)
		}
	}
}

func (c *checker) checkPayload(p path, profile pprofile.Profile) {
	format, bytes := profile.OriginalPayloadFormat(), profile.OriginalPayload().Len()
	c.utf8(p.child("original_payload_format"), format)
	if format == "" && bytes > 0 {
		c.fault(p.child("original_payload_format"), "is empty beside an original_payload of %d bytes", bytes)
	}
	if format != "" && bytes == 0 {
		c.fault(p.child("original_payload"), "is empty beside the original_payload_format %q", shorten(format))
	}
}

// sampleShape is which of its two lists a sample uses.
type sampleShape string

const (
	valuesAlone      sampleShape = "a value alone"
	timestampsAlone  sampleShape = "timestamps alone"
	timestampsValues sampleShape = "timestamps and values"
)

func shapeOf(sample pprofile.Sample) sampleShape {
	values, timestamps := sample.Values().Len() > 0, sample.TimestampsUnixNano().Len() > 0
	switch {
	case values && timestamps:
		return timestampsValues
	case values:
		return valuesAlone
	case timestamps:
		return timestampsAlone
	default:
		return ""
	}
}

// checkShape compares the sample's shape with its profile's, which the first sample that has one sets.
func (c *checker) checkShape(p path, sample pprofile.Sample, profileShape *sampleShape) {
	values, timestamps := sample.Values().Len(), sample.TimestampsUnixNano().Len()
	shape := shapeOf(sample)
	switch {
	case shape == "":
		c.fault(p, "has neither values nor timestamps")
		return
	case shape == timestampsValues && values != timestamps:
		c.fault(p, "has %d timestamps and %d values, not equally many", timestamps, values)
	case shape == valuesAlone && values != 1:
		c.fault(p, "has %d values without timestamps, not exactly one", values)
	}
	if *profileShape == "" {
		*profileShape = shape
	}
	if shape != *profileShape {
		c.fault(p, "has %s where an earlier sample of the profile has %s", shape, *profileShape)
	}
}

func (c *checker) checkTimestamps(p path, profile pprofile.Profile, sample pprofile.Sample) {
	start, duration := uint64(profile.Time()), profile.DurationNano()
	for i, t := range sample.TimestampsUnixNano().All() {
		// As a difference, since start+duration may exceed 64 bits.
		if t < start || t-start >= duration {
			c.fault(p.nth(i), "%d is outside the profile's time, from %d for %d ns", t, start, duration)
		}
	}
}
