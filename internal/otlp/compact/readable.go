// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// DropUnreadable removes the samples that a Batch would drop, so that whoever receives a message can tell its sender.
// It returns their numbers by reason, and how many profiles had any.
func DropUnreadable(pd pprofile.Profiles) (dropped [NumDropReasons]int, profiles int) {
	stacks := whyStacks(sourceOf(pd.Dictionary()))
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

// whys has for each entry of a table why samples that refer to it are dropped.
type whys []DropReason

func (w whys) at(i int32, outOfRange DropReason) DropReason {
	if uint(i) >= uint(len(w)) { // a negative index is a huge one
		return outOfRange
	}
	return w[i]
}

// whysOf returns why each of n entries cannot be understood.
func whysOf(n int, why func(i int) DropReason) whys {
	w := make(whys, n)
	for i := range w {
		w[i] = why(i)
	}
	return w
}

func whyStacks(src source) whys {
	text := func(i int32) DropReason {
		if uint(i) >= uint(src.strings.Len()) {
			return DropStringIndex
		}
		return Understood
	}
	mappings := whysOf(src.mappings.Len(), func(i int) DropReason { return text(src.mappings.At(i).FilenameStrindex()) })
	functions := whysOf(src.functions.Len(), func(i int) DropReason {
		f := src.functions.At(i)
		return max(text(f.NameStrindex()), text(f.SystemNameStrindex()), text(f.FilenameStrindex()))
	})
	locations := whysOf(src.locations.Len(), func(i int) DropReason {
		l := src.locations.At(i)
		why := mappings.at(l.MappingIndex(), DropMappingIndex)
		for k, lines := 0, l.Lines(); why == Understood && k < lines.Len(); k++ {
			why = functions.at(lines.At(k).FunctionIndex(), DropFunctionIndex)
		}
		return why
	})
	return whysOf(src.stacks.Len(), func(i int) DropReason { return locations.first(src.stacks.At(i).LocationIndices()) })
}

// first returns why the first of these locations that cannot be understood cannot.
func (w whys) first(indices pcommon.Int32Slice) DropReason {
	for k := range indices.Len() {
		if why := w.at(indices.At(k), DropLocationIndex); why != Understood {
			return why
		}
	}
	return Understood
}
