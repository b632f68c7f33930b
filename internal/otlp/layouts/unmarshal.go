// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// Stats describes what Unmarshal did with one message.
type Stats struct {
	Layout Layout
	// Ambiguous is true if the message can be read in an older layout, too, with another meaning.
	Ambiguous bool
	// Dropped counts samples that could not be read, Repaired the faults that were repaired.
	Dropped  [NumDropReasons]int
	Repaired [NumRepairs]int
	// IncompleteProfiles is the number of profiles in the message of which samples were dropped.
	IncompleteProfiles int
}

// DroppedSamples returns the number of samples that could not be read.
func (s *Stats) DroppedSamples() int { return otlp.Total(s.Dropped[:]) }

// DropReason is the reason for which a sample was dropped. Its String is the value of a metric's attribute.
type DropReason int

// The reasons for which a sample is dropped: those of package compact, and what only old layouts have.
const (
	// DropLocation is a location that the message does not have.
	DropLocation = DropReason(compact.DropLocationIndex)
	// DropEmpty is a sample with neither values nor timestamps.
	DropEmpty = DropReason(compact.DropNoObservation)
	// DropStackRange is a range of locations that is not within the profile's location indices, or its location table if
	// it has no indices.
	DropStackRange = DropReason(compact.NumDropReasons)
	// DropExpansion is a sample after the ranges of a message named four locations for each of its bytes, or a value after
	// the attributes and timestamps were repeated for too many sample types.
	DropExpansion = DropStackRange + 1
	// NumDropReasons is the number of reasons.
	NumDropReasons = int(DropExpansion) + 1
)

// String returns the reason's name in metrics.
func (r DropReason) String() string {
	switch r {
	case DropStackRange:
		return "stack_range"
	case DropExpansion:
		return "expansion"
	default:
		return compact.DropReason(r).String()
	}
}

// DropUnreadable removes the samples of a message that cannot be read, and counts them.
func (s *Stats) DropUnreadable(pd pprofile.Profiles) {
	dropped, profiles := compact.DropUnreadable(pd)
	for why, n := range dropped {
		s.Dropped[why] += n
	}
	s.IncompleteProfiles += profiles
}

// Repair is a fault that is repaired. Its String is the value of a metric's attribute.
type Repair int

// The faults of old messages that are repaired.
const (
	// RepairIndex is an index out of range, of anything but a location: it is treated as 0.
	RepairIndex Repair = iota
	// RepairInvalidUTF8 is a string that is not UTF-8: each invalid run becomes U+FFFD.
	RepairInvalidUTF8
	// RepairNegative is a time, line or column below 0: it becomes 0.
	RepairNegative
	// RepairAttributeKey is an attribute whose key occurs before it in the same list: it is left out.
	RepairAttributeKey
	// RepairDepth is an attribute whose value is nested too deeply: it is left out.
	RepairDepth
	// RepairValueCount is a sample with fewer or more values than there are sample types, or with the number of its
	// timestamps as its value.
	RepairValueCount
	// RepairExpansion is a list of comments that was cut.
	RepairExpansion
	// NumRepairs is the number of faults.
	NumRepairs int = iota
)

// String returns the fault's name in metrics.
func (r Repair) String() string {
	return [NumRepairs]string{"index", "invalid_utf8", "negative", "attribute_key", "attribute_depth", "value_count",
		"expansion"}[r]
}

// Unmarshal reads an export request or a ProfilesData message of any layout. It changes data, which must not be used
// afterwards. The error means that the message cannot be read in the detected layout.
//
// Current messages go to pdata as they are, but for values that are numbers of timestamps. Their indices are not
// checked: see DropUnreadable. meter bounds the work; its error is returned.
func Unmarshal(data []byte, meter *size.Meter) (pprofile.Profiles, Stats, error) {
	layout, certain := Detect(data)
	stats := Stats{Layout: layout, Ambiguous: !certain}
	var profiles pprofile.Profiles
	var err error
	switch layout {
	case V1_10:
		profiles, err = unmarshalCurrent(data, &stats, meter)
	case V1_8, V1_9:
		profiles, err = unmarshalMoved(data, layout, &stats, meter)
	default:
		profiles, err = readLegacy(data, layout, &stats, meter)
	}
	return profiles, stats, err
}

// UnmarshalCurrent reads a message that is known to have today's layout.
func UnmarshalCurrent(data []byte, meter *size.Meter) (pprofile.Profiles, Stats, error) {
	stats := Stats{Layout: Current}
	profiles, err := unmarshalCurrent(data, &stats, meter)
	return profiles, stats, err
}

func unmarshalCurrent(data []byte, stats *Stats, meter *size.Meter) (pprofile.Profiles, error) {
	memory, err := size.Profiles(data)
	if err == nil {
		err = meter.Grow(memory)
	}
	if err != nil {
		return pprofile.Profiles{}, err
	}
	profiles, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
	if err == nil {
		stats.clearCounts(profiles)
	}
	return profiles, err
}

// clearCounts clears the value of samples that have one for several timestamps, as the eBPF profiler wrote them in
// 2025: it is the number of timestamps, or 1, and each timestamp is an event. The other samples of such a profile lose
// values of 1, so that all of them have one shape.
func (s *Stats) clearCounts(pd pprofile.Profiles) {
	for p := range otlp.Profiles(pd) {
		if otlp.StringAt(pd.Dictionary(), p.SampleType().UnitStrindex()) != "count" {
			continue
		}
		faults := 0
		for _, sample := range p.Samples().All() {
			if isCount(sample) && sample.TimestampsUnixNano().Len() > 1 {
				faults++
			}
		}
		if faults == 0 {
			continue
		}
		s.Repaired[RepairValueCount] += faults
		for _, sample := range p.Samples().All() {
			if isCount(sample) {
				sample.Values().FromRaw(nil)
			}
		}
	}
}

// isCount reports whether a sample's single value can be the number of its timestamps, or 1 for any number of them.
func isCount(sample pprofile.Sample) bool {
	n, values := sample.TimestampsUnixNano().Len(), sample.Values()
	return n > 0 && values.Len() == 1 && (values.At(0) == 1 || values.At(0) == int64(n))
}

// unmarshalMoved reads a message of 1.8 or 1.9, whose fields have other numbers.
func unmarshalMoved(data []byte, from Layout, stats *Stats, meter *size.Meter) (pprofile.Profiles, error) {
	left, err := renumberFields(data, from)
	if err != nil {
		return pprofile.Profiles{}, err
	}
	profiles, err := unmarshalCurrent(data, stats, meter)
	if err != nil || len(left) == 0 {
		return profiles, err
	}
	a := attributeAdder{
		dictionary: profiles.Dictionary(), statement: profilekind.Statement{Dictionary: profiles.Dictionary()},
		stats: stats, known: map[string]int32{}, budget: maxShared + len(data),
	}
	n := 0
	for profile := range otlp.Profiles(profiles) {
		a.add(profile, left[n])
		n++
	}
	return profiles, nil
}

// attributeAdder adds attributes for the fields of 1.8 that today's profiles do not have.
type attributeAdder struct {
	dictionary pprofile.ProfilesDictionary
	statement  profilekind.Statement
	stats      *Stats
	known      map[string]int32 // the attributes added so far, by key and packed indices
	budget     int              // how many bytes of comments may still be added
}

func (a *attributeAdder) add(profile pprofile.Profile, left leftOver) {
	declared := profilekind.DeclaredOf(profile, a.statement.Dictionary)
	a.statement.Put(profile, declared, left.temporality.ValuesOf(declared))
	if len(left.comments) > 0 {
		a.put(profile, "pprof.profile.comment", left.comments, func(v pcommon.Value) {
			comments := v.SetEmptySlice()
			for index := range wire.Varints(left.comments) {
				comment := ""
				if index < uint64(a.dictionary.StringTable().Len()) {
					comment = a.dictionary.StringTable().At(int(index))
				} else {
					a.stats.Repaired[RepairIndex]++
				}
				if a.budget -= len(comment); a.budget < 0 {
					a.stats.Repaired[RepairExpansion]++
					return
				}
				comments.AppendEmpty().SetStr(comment)
			}
		})
	}
}

// put adds an attribute to a profile. set sets its value, unless an equal attribute was added before.
func (a *attributeAdder) put(profile pprofile.Profile, key string, packed []byte, set func(pcommon.Value)) {
	index, known := a.known[key+"\x00"+string(packed)]
	if !known {
		if a.dictionary.StringTable().Len() == 0 {
			a.dictionary.StringTable().Append("")
		}
		if a.dictionary.AttributeTable().Len() == 0 {
			a.dictionary.AttributeTable().AppendEmpty()
		}
		entry := a.dictionary.AttributeTable().AppendEmpty()
		entry.SetKeyStrindex(a.keyIndex(key))
		set(entry.Value())
		index = int32(a.dictionary.AttributeTable().Len() - 1)
		a.known[key+"\x00"+string(packed)] = index
	}
	profile.AttributeIndices().Append(index)
}

// keyIndex returns the index of a key in the string table, and adds it if this is the first attribute of that key.
func (a *attributeAdder) keyIndex(key string) int32 {
	index, known := a.known[key]
	if !known {
		index = int32(a.dictionary.StringTable().Len())
		a.dictionary.StringTable().Append(key)
		a.known[key] = index
	}
	return index
}
