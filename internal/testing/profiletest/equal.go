// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// maxListedDifferences bounds how many differences an error lists.
const maxListedDifferences = 10

// EqualOption makes a comparison of profiles ignore a difference.
type EqualOption func(*equalOptions)

type equalOptions struct {
	ignoreOrder   bool
	mergeProfiles bool
}

// IgnoreOrder ignores the order of resources, scopes and profiles, and how often an equal resource or scope
// (attributes, dropped count, schema URL, name, version) is listed: their profiles are compared together.
func IgnoreOrder() EqualOption { return func(o *equalOptions) { o.ignoreOrder = true } }

// MergeProfiles is IgnoreOrder, and merges profiles of one scope that differ only in their samples into one
// profile with all the samples, as if a profile had been split. It compares their sets of original payloads.
func MergeProfiles() EqualOption {
	return func(o *equalOptions) { o.ignoreOrder, o.mergeProfiles = true, true }
}

// Equal returns an error if two Profiles do not resolve to the same, whatever the layout of their dictionaries. By
// default resources, scopes and profiles are compared in order. Samples have no order: they are compared by their
// resolved identity {stack, attributes, link}. The values of several samples of one identity are added up; those with
// timestamps are compared as a multiset of observations. The error lists the first differences with resolved names.
func Equal(want, got pprofile.Profiles, opts ...EqualOption) error {
	var o equalOptions
	for _, opt := range opts {
		opt(&o)
	}
	s := resolved.NewSpace()
	c := &comparison{options: o, want: newSide(s, want), got: newSide(s, got)}
	if o.ignoreOrder {
		c.compareGrouped()
	} else {
		c.compareInOrder()
	}
	return c.differences.err()
}

// side is one of the two Profiles that are compared.
type side struct {
	*resolved.Resolver
	resolved.Namer
	pd pprofile.Profiles
}

func newSide(s *resolved.Space, pd pprofile.Profiles) *side {
	return &side{Resolver: resolved.NewResolver(s, pd.Dictionary()), Namer: resolved.Namer{Dictionary: pd.Dictionary()},
		pd: pd}
}

type comparison struct {
	options     equalOptions
	want, got   *side
	differences differences
}

// differences collects the first differences.
type differences struct {
	listed   []error
	unlisted int
}

func (d *differences) add(where, format string, args ...any) {
	if len(d.listed) >= maxListedDifferences {
		d.unlisted++
		return
	}
	text := fmt.Sprintf(format, args...)
	if where != "" {
		text = where + ": " + text
	}
	d.listed = append(d.listed, errors.New(text))
}

// compare adds a difference if the texts of a field are not the same.
func (d *differences) compare(where, want, got string) {
	if want != got {
		d.add(where, "is %s, want %s", orNone(got), orNone(want))
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (d *differences) err() error {
	errs := d.listed
	if d.unlisted > 0 {
		errs = append(errs, fmt.Errorf("and %d more differences", d.unlisted))
	}
	return errors.Join(errs...)
}

func (c *comparison) compareInOrder() {
	want, got := c.want.pd.ResourceProfiles(), c.got.pd.ResourceProfiles()
	c.compareCount("resource_profiles", want.Len(), got.Len())
	for i := range min(want.Len(), got.Len()) {
		c.compareResource(fmt.Sprintf("resource_profiles[%d]", i), want.At(i), got.At(i))
	}
}

func (c *comparison) compareCount(where string, want, got int) {
	if want != got {
		c.differences.add(where, "has %d elements, want %d", got, want)
	}
}

func (c *comparison) compareResource(where string, want, got pprofile.ResourceProfiles) {
	c.differences.compare(where+".resource", resolved.ResourceText(want), resolved.ResourceText(got))
	wantScopes, gotScopes := want.ScopeProfiles(), got.ScopeProfiles()
	c.compareCount(where+".scope_profiles", wantScopes.Len(), gotScopes.Len())
	for i := range min(wantScopes.Len(), gotScopes.Len()) {
		where := fmt.Sprintf("%s.scope_profiles[%d]", where, i)
		wantScope, gotScope := wantScopes.At(i), gotScopes.At(i)
		c.differences.compare(where+".scope", resolved.ScopeText(wantScope), resolved.ScopeText(gotScope))
		c.compareCount(where+".profiles", wantScope.Profiles().Len(), gotScope.Profiles().Len())
		for j := range min(wantScope.Profiles().Len(), gotScope.Profiles().Len()) {
			where := fmt.Sprintf("%s.profiles[%d]", where, j)
			wantProfile, gotProfile := wantScope.Profiles().At(j), gotScope.Profiles().At(j)
			c.compareFields(where, wantProfile, gotProfile)
			c.comparePayload(where, wantProfile, gotProfile)
			c.compareSamples(where, []pprofile.Profile{wantProfile}, []pprofile.Profile{gotProfile})
		}
	}
}

// fields returns a profile's own fields, without its payload.
func (s *side) fields(p pprofile.Profile) []resolved.Field {
	return append([]resolved.Field{{Name: "sample_type", Value: s.ValueType(p.SampleType())}}, s.ProfileFields(p)...)
}

func (c *comparison) compareFields(where string, want, got pprofile.Profile) {
	wantFields, gotFields := c.want.fields(want), c.got.fields(got)
	for i, f := range wantFields {
		c.differences.compare(where+"."+f.Name, f.Value, gotFields[i].Value)
	}
}

func (c *comparison) comparePayload(where string, want, got pprofile.Profile) {
	w, g := want.OriginalPayload().AsRaw(), got.OriginalPayload().AsRaw()
	if !bytes.Equal(w, g) {
		c.differences.add(where+".original_payload", "has %d bytes that differ from the %d wanted", len(g), len(w))
	}
}
