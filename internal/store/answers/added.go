// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import "github.com/otelcol-profiles/otelcol-profiles/internal/store/model"

// This file asks a Part for sums that adds up samples itself. Profiles that count alike are of one class: the loop of
// queries sees one profile of each, with all of their samples.

// apart is what keeps profiles in classes of their own, besides what decides about their samples.
type apart struct {
	profiles, series bool
	model.SumsWanted
}

// classBytes is what a class takes, with its entry in a map and a profile.
const classBytes = 384

// class is what profiles have in common whose samples are added up.
type class struct {
	group               int
	same, cuts, isTimed bool
	required            uint64
	other               string
	profile             *model.Profile
	id                  model.SeriesID
}

// classOf returns the class of a profile, and a profile to show for all of it, whose weight is in the sums.
func (r *reader) classOf(w *weightedProfile, o *observed) (of class, shown *weightedProfile) {
	of = class{
		group: o.group, same: o.same, cuts: o.cuts, required: o.required,
		isTimed: r.apart.Timestamps && w.Flags&model.HasTimestamps != 0,
	}
	if !o.same {
		of.other = r.filter.seriesGroup(w.series)
	}
	if r.apart.profiles {
		of.profile = &w.Profile
		return of, w
	}
	if r.apart.series {
		of.id = w.series.ID
	}
	once := *w
	once.weight = 1
	return of, &once
}

// added calls use with sums of the samples of profiles that belong to the selection, and with one profile of each
// class. Times are read only of profiles that need them.
func (r *reader) added(p model.Adder, list []*weightedProfile, use func(*weightedProfile, *model.Columns) error) error {
	for _, cuts := range []bool{false, true} {
		var shown []*weightedProfile
		var addends []model.Addend
		classes := map[class]int{}
		want := r.apart.SumsWanted
		if cuts {
			want.Timestamps, want.From, want.Until = true, r.sel.From, r.sel.Until
		}
		for _, w := range list {
			o := r.observed(w)
			if o.cuts != cuts {
				continue
			}
			of, show := r.classOf(w, &o)
			i, ok := classes[of]
			if !ok {
				i = len(shown)
				shown, classes[of] = append(shown, show), i
				_ = r.memory.Grow(classBytes) // Add checks
			}
			weight := w.weight
			if show == w || want.Counts {
				weight = 1
			}
			addends = append(addends, model.Addend{Series: w.series, Profile: &w.Profile, Class: i, Weight: weight})
			if !want.Attributes && want.Keys == nil && (!o.same || o.required != 0) {
				want.Keys = r.deciding()
			}
		}
		if len(addends) == 0 {
			continue
		}
		err := p.Add(addends, want, func(class int, c *model.Columns) error { return use(shown[class], c) })
		r.memory.Release(classBytes * len(shown))
		if err != nil {
			return err
		}
	}
	return nil
}

// deciding returns the attributes of samples that decide whether and in which group they count.
func (r *reader) deciding() (keys []model.AttributeKey) {
	for i := range r.keys {
		keys = append(keys, model.AttributeKey{Key: r.keys[i].name, Values: r.keys[i].exact()})
	}
	if r.sel.GroupBy != "" {
		keys = append(keys, model.AttributeKey{Key: r.sel.GroupBy})
	}
	return keys
}
