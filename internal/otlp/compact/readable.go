// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// DropUnreadable removes the samples that a Batch would drop, so that whoever receives a message can tell its sender.
// It returns their numbers by reason, and how many profiles had any.
func DropUnreadable(pd pprofile.Profiles) (dropped [NumDropReasons]int, profiles int) {
	stacks := stackReasons(sourceOf(pd.Dictionary()))
	for p := range otlp.Profiles(pd) {
		before := p.Samples().Len()
		p.Samples().RemoveIf(func(s pprofile.Sample) bool {
			_, why := shapeOf(s.Values().Len(), s.TimestampsUnixNano().Len())
			if why == Understood {
				why = stacks.at(s.StackIndex(), DropStackIndex)
			}
			if why != Understood {
				dropped[why]++
			}
			return why != Understood
		})
		if p.Samples().Len() < before {
			profiles++
		}
	}
	return dropped, profiles
}

// reasons has, for each entry of a table, why a sample that refers to it is dropped, or Understood.
type reasons []DropReason

func reasonsOf(n int, reason func(i int) DropReason) reasons {
	r := make(reasons, n)
	for i := range r {
		r[i] = reason(i)
	}
	return r
}

func (r reasons) at(i int32, outOfRange DropReason) DropReason {
	if uint(i) >= uint(len(r)) { // a negative index is a huge one
		return outOfRange
	}
	return r[i]
}

func stackReasons(src source) reasons {
	text := func(i int32) DropReason {
		if uint(i) >= uint(src.strings.Len()) {
			return DropStringIndex
		}
		return Understood
	}
	mappings := reasonsOf(src.mappings.Len(), func(i int) DropReason {
		return text(src.mappings.At(i).FilenameStrindex())
	})
	functions := reasonsOf(src.functions.Len(), func(i int) DropReason {
		f := src.functions.At(i)
		return max(text(f.NameStrindex()), text(f.SystemNameStrindex()), text(f.FilenameStrindex()))
	})
	locations := reasonsOf(src.locations.Len(), func(i int) DropReason {
		l := src.locations.At(i)
		why := mappings.at(l.MappingIndex(), DropMappingIndex)
		for k, lines := 0, l.Lines(); why == Understood && k < lines.Len(); k++ {
			why = functions.at(lines.At(k).FunctionIndex(), DropFunctionIndex)
		}
		return why
	})
	return reasonsOf(src.stacks.Len(), func(i int) DropReason {
		why, indices := Understood, src.stacks.At(i).LocationIndices()
		for k := 0; why == Understood && k < indices.Len(); k++ {
			why = locations.at(indices.At(k), DropLocationIndex)
		}
		return why
	})
}
