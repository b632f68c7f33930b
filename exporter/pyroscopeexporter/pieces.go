// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"context"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// Samples of OTLP share stacks and attributes, which samples of pprof repeat. Together the pprofs of a part have at most minBytes
// plus maxExpansion times the part's size as OTLP, like those of one call of Encode.
const (
	minBytes     = 1 << 20
	maxExpansion = 64
)

// unsent are the samples of a profile that have not been sent.
type unsent struct {
	profile pprofile.Profile
	samples pprofile.SampleSlice
	next    int
}

// sendPieces sends a part whose pprofs are larger than the server accepts. It sends pieces, which are runs of each profile's
// samples. They share the part's dictionary; a pprof has only the entries that its samples refer to.
func (p *pusher) sendPieces(ctx context.Context, part pprofile.Profiles, size encodedSize) {
	budget := minBytes + maxExpansion*(&pprofile.ProtoMarshaler{}).ProfilesSize(part)
	list := removeSamples(part)
	before := p.failures
	for pieces := morePieces(1, size.excess); ; {
		moved, most := movePiece(list, pieces)
		if moved == 0 {
			return
		}
		size = p.sendPart(ctx, part, most == 1)
		if size.excess > 1 && most > 1 {
			putBack(list)
			pieces = morePieces(pieces, size.excess)
			continue
		}
		if p.failures > before {
			movePiece(list, 1)
			return
		}
		for _, w := range list {
			clearSamples(w.profile) // what could not be encoded has been counted
		}
		if budget -= size.bytes; budget < 0 {
			left, _ := movePiece(list, 1)
			p.countDroppedSamples(ctx, droppedTooLarge, left)
			if left > 0 {
				p.report.Refused(left, "", fmt.Errorf("dropped: as pprof the profiles take more than %d times their size as OTLP", maxExpansion))
			}
			return
		}
		pieces = max(1, pieces-1)
	}
}

// morePieces returns a larger number of pieces, if one of the given number is too large by the factor excess.
func morePieces(pieces int, excess float64) int {
	return int(math.Ceil(float64(pieces) * max(1.1*excess, 1.5)))
}

func removeSamples(part pprofile.Profiles) (list []*unsent) {
	for profile := range otlp.Profiles(part) {
		w := &unsent{profile: profile, samples: pprofile.NewSampleSlice()}
		profile.Samples().MoveAndAppendTo(w.samples)
		list = append(list, w)
	}
	return list
}

// movePiece moves the first of pieces pieces of the unsent samples into the profiles. It returns how many samples it moved, and
// the largest number in one profile.
func movePiece(list []*unsent, pieces int) (moved, most int) {
	for _, w := range list {
		left := w.samples.Len() - w.next
		n := (left + pieces - 1) / pieces
		for range n {
			w.samples.At(w.next).MoveTo(w.profile.Samples().AppendEmpty())
			w.next++
		}
		moved, most = moved+n, max(most, n)
	}
	return moved, most
}

// putBack undoes movePiece.
func putBack(list []*unsent) {
	for _, w := range list {
		n := w.profile.Samples().Len()
		w.next -= n
		for i := range n {
			w.profile.Samples().At(i).MoveTo(w.samples.At(w.next + i))
		}
		clearSamples(w.profile)
	}
}

func clearSamples(profile pprofile.Profile) {
	profile.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
}
