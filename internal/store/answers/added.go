// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import "github.com/otelcol-profiles/otelcol-profiles/internal/store/model"

// This file asks a Part for sums that adds up samples itself. Profiles that count alike are of one class: the loop of
// queries sees one profile of each, with all of their samples.

// classBytes is what a class takes, with its entry in a map and a profile.
const classBytes = 384

// class is what profiles have in common whose samples are added up.
type class struct {
	decision
	cuts, isTimed bool
	profile       *model.Profile
	id            model.SeriesID
}

// classOf returns the class of a profile, and a profile to show for all of it, whose weight is in the sums.
func (s *scan) classOf(w *weightedProfile) (of class, shown *weightedProfile) {
	want := &s.query.Want
	of = class{
		decision: w.series.decision, cuts: s.sel.Cuts(&w.Profile), isTimed: want.Times && w.Flags&model.HasTimestamps != 0,
	}
	if want.Profiles {
		of.profile = &w.Profile
		return of, w
	}
	if want.Series {
		of.id = w.series.ID
	}
	once := *w
	once.weight = 1
	return of, &once
}

// added calls use with sums of the samples of profiles that belong to the selection, and with one profile of each
// class. Times are read only of profiles that need them.
func (s *scan) added(p model.Adder, list []*weightedProfile, use func(*weightedProfile, *model.Columns) error) error {
	for _, cuts := range []bool{false, true} {
		var shown []*weightedProfile
		var addends []model.Addend
		classes := map[class]int{}
		want := model.SumsWanted{
			ColumnsWanted: s.query.Want.columns(), Stacks: s.query.Want.Stacks, Counts: s.query.Want.isCount(),
		}
		if cuts {
			want.Timestamps, want.From, want.Until = true, s.sel.From, s.sel.Until
		}
		for _, w := range list {
			if s.sel.Cuts(&w.Profile) != cuts {
				continue
			}
			of, show := s.classOf(w)
			i, ok := classes[of]
			if !ok {
				i = len(shown)
				shown, classes[of] = append(shown, show), i
				_ = s.memory.Grow(classBytes) // Add checks
			}
			weight := w.weight
			if show == w || want.Counts {
				weight = 1
			}
			addends = append(addends, model.Addend{
				Series: &w.series.BlockSeries, Profile: &w.Profile, Class: i, Weight: weight,
			})
			if !want.Attributes && want.Keys == nil && (!of.isGroup || of.required != 0) {
				want.Keys = s.deciding()
			}
		}
		if len(addends) == 0 {
			continue
		}
		err := p.Add(addends, want, func(class int, c *model.Columns) error { return use(shown[class], c) })
		s.memory.Release(classBytes * len(shown))
		if err != nil {
			return err
		}
	}
	return nil
}

// deciding returns the attributes of samples that decide whether and in which group they count.
func (s *scan) deciding() (keys []model.AttributeKey) {
	for i := range s.keys {
		keys = append(keys, model.AttributeKey{Key: s.keys[i].name, Values: s.keys[i].exact()})
	}
	if s.sel.GroupBy != "" {
		keys = append(keys, model.AttributeKey{Key: s.sel.GroupBy})
	}
	return keys
}
