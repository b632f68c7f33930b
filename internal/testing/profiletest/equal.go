// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// maxListedDifferences bounds how many differences an error lists.
const maxListedDifferences = 10

// EqualOption makes a comparison of profiles ignore a difference.
type EqualOption uint8

const (
	ignoreOrder EqualOption = 1 << iota
	mergeProfiles
)

// IgnoreOrder ignores the order of resources, scopes and profiles, and how often an equal resource or scope
// (attributes, dropped count, schema URL, name, version) is listed: their profiles are compared together. Profiles of
// one scope that differ only in their samples are counted, and their samples are compared together.
func IgnoreOrder() EqualOption { return ignoreOrder }

// MergeProfiles is IgnoreOrder, and does not count the profiles that differ only in their samples, as if a profile had
// been split. It compares their sets of original payloads.
func MergeProfiles() EqualOption { return ignoreOrder | mergeProfiles }

// Equal returns an error if two Profiles do not resolve to the same, whatever the layout of their dictionaries. By
// default resources, scopes and profiles are compared in order. Samples have no order: they are compared by their
// resolved identity {stack, attributes, link}. The values of several samples of one identity are added up; those with
// timestamps are compared as a multiset of observations. The error lists the first differences with resolved names.
func Equal(want, got pprofile.Profiles, opts ...EqualOption) error {
	return equal([2][]pprofile.Profiles{{want}, {got}}, opts)
}

// EqualAll is Equal, with IgnoreOrder, of all profiles of several messages, such as the parts of one.
func EqualAll(want, got []pprofile.Profiles, opts ...EqualOption) error {
	return equal([2][]pprofile.Profiles{want, got}, append(opts, IgnoreOrder()))
}

func equal(sides [2][]pprofile.Profiles, opts []EqualOption) error {
	space := resolved.NewSpace()
	c := &comparison{parts: map[string]*part{}}
	for _, opt := range opts {
		c.options |= opt
	}
	for n, messages := range sides {
		for _, pd := range messages {
			d := pd.Dictionary()
			c.read(n, pd, &message{Resolver: resolved.NewResolver(space, d), Namer: resolved.Namer{Dictionary: d}})
		}
	}
	for _, name := range c.names {
		p := c.parts[name]
		if p.texts[0] != p.texts[1] {
			c.add(name, p.texts[0], p.texts[1])
		}
		c.compareSamples(name, p.profiles)
	}
	return c.err()
}

// comparison compares two sides: what is wanted, and what is there.
type comparison struct {
	options EqualOption
	parts   map[string]*part
	// names are those of the parts, in the order in which they were found.
	names []string
	// listed are the first differences, unlisted is the number of the others.
	listed   []error
	unlisted int
}

// message resolves the indices of a message.
type message struct {
	*resolved.Resolver
	resolved.Namer
}

type profileOf struct {
	pprofile.Profile
	in *message
}

// part is what has one name on both sides: a text, or profiles whose samples are compared together.
type part struct {
	texts    [2]string
	profiles [2][]profileOf
	counts   [2]int
}

func (c *comparison) part(name string) *part {
	if c.parts[name] == nil {
		c.parts[name] = &part{}
		c.names = append(c.names, name)
	}
	return c.parts[name]
}

// add adds a difference.
func (c *comparison) add(where, want, got string) {
	if len(c.listed) >= maxListedDifferences {
		c.unlisted++
		return
	}
	c.listed = append(c.listed, fmt.Errorf("%s: is %s, want %s", where, orNone(got), orNone(want)))
}

// err returns the differences.
func (c *comparison) err() error {
	if c.unlisted > 0 {
		c.listed = append(c.listed, fmt.Errorf("and %d more differences", c.unlisted))
	}
	return errors.Join(c.listed...)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// read adds the parts of side n. The name of a part is its place or, without an order, what it belongs to.
func (c *comparison) read(n int, pd pprofile.Profiles, in *message) {
	for i, rp := range pd.ResourceProfiles().All() {
		resource := fmt.Sprintf("resource_profiles[%d]", i)
		c.setText(n, resource+".resource", resolved.ResourceText(rp))
		for j, sp := range rp.ScopeProfiles().All() {
			scope := fmt.Sprintf("%s.scope_profiles[%d]", resource, j)
			c.setText(n, scope+".scope", resolved.ScopeText(sp))
			for k, profile := range sp.Profiles().All() {
				p := profileOf{profile, in}
				if c.options&ignoreOrder != 0 {
					c.readUnordered(n, "resource "+resolved.ResourceText(rp)+" scope "+resolved.ScopeText(sp), p)
					continue
				}
				name := fmt.Sprintf("%s.profiles[%d]", scope, k)
				for _, f := range p.fields() {
					c.setText(n, name+"."+f.Name, f.Value)
				}
				c.part(name).profiles[n] = []profileOf{p}
			}
		}
	}
}

// setText sets the text of a part that is named by its place.
func (c *comparison) setText(n int, name, text string) {
	if c.options&ignoreOrder == 0 {
		c.part(name).texts[n] = text
	}
}

// readUnordered adds a profile to those that have the same fields. After a split only one of these has the payload.
func (c *comparison) readUnordered(n int, scope string, p profileOf) {
	isMerged := c.options&mergeProfiles != 0
	texts, payload := []string{scope + " profile"}, ""
	for _, f := range p.fields() {
		switch {
		case f.Value == "":
		case isMerged && strings.HasPrefix(f.Name, "original_payload"):
			payload += " " + f.Value
		default:
			texts = append(texts, f.Name+" "+f.Value)
		}
	}
	name := strings.Join(texts, ", ")
	to := c.part(name)
	to.profiles[n] = append(to.profiles[n], p)
	if to.counts[n]++; isMerged {
		to.counts[n] = 1
	}
	to.texts[n] = fmt.Sprintf("there %d times", to.counts[n])
	if payload != "" {
		c.part(name + ", original_payload" + payload).texts[n] = "there"
	}
}

// fields returns a profile's own fields.
func (p profileOf) fields() []resolved.Field {
	typ := resolved.Field{Name: "sample_type", Value: p.in.ValueType(p.SampleType())}
	fields := append([]resolved.Field{typ}, p.in.ProfileFields(p.Profile)...)
	if payload := p.OriginalPayload().AsRaw(); len(payload) > 0 {
		text := fmt.Sprintf("%d bytes (SHA-256 %x)", len(payload), sha256.Sum256(payload))
		fields = append(fields, resolved.Field{Name: "original_payload", Value: text})
	}
	return fields
}
