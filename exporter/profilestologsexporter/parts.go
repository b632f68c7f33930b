// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
)

// part is profiles for one request.
type part struct {
	profiles pprofile.Profiles
	// laidOut says that it was made as small as it can be without being split.
	laidOut bool
}

// parts is a batch, which is taken apart where a request of all of it would be too large.
type parts struct {
	// todo are the parts that are to be sent, the next one last.
	todo  []part
	batch compact.Batch
	// dropped is the number of samples that were left out since they cannot be understood.
	dropped int
}

func partsOf(pd pprofile.Profiles) *parts { return &parts{todo: []part{{profiles: pd}}} }

// next takes the next part.
func (p *parts) next() (part, bool) {
	if len(p.todo) == 0 {
		return part{}, false
	}
	next := p.todo[len(p.todo)-1]
	p.todo = p.todo[:len(p.todo)-1]
	return next, true
}

// split puts what next gave back as parts of up to limit bytes, each complete: it has all that its samples refer to.
// Where that is a single observation nothing is done.
func (p *parts) split(whole part, limit int) bool {
	p.batch.Reset(compact.Options{MaxBytes: limit})
	p.batch.Add(whole.profiles)
	var smaller []part
	oversized := false
	for s := range p.batch.Parts() {
		smaller = append(smaller, part{s.Profiles, true})
		oversized = s.Oversized
	}
	if len(smaller) == 1 && (oversized || whole.laidOut) {
		return false
	}
	for _, n := range p.batch.Stats().Dropped {
		p.dropped += n
	}
	slices.Reverse(smaller)
	p.todo = append(p.todo, smaller...)
	return true
}

// rest gives all that is to be sent from the part on that next gave last, as one batch.
func (p *parts) rest(from part) pprofile.Profiles {
	if len(p.todo) == 0 {
		return from.profiles
	}
	messages := []pprofile.Profiles{from.profiles}
	for _, next := range slices.Backward(p.todo) {
		messages = append(messages, next.profiles)
	}
	return p.batch.Merge(messages)
}

// withoutPayloads gives profiles without the payloads that they were made of, and how many those are. pd stays as it is.
func withoutPayloads(pd pprofile.Profiles) (without pprofile.Profiles, payloads int) {
	without = pprofile.NewProfiles()
	pd.CopyTo(without)
	for _, rp := range without.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				if p.OriginalPayload().Len() > 0 {
					payloads++
					p.OriginalPayload().FromRaw(nil)
					p.SetOriginalPayloadFormat("")
				}
			}
		}
	}
	return without, payloads
}
