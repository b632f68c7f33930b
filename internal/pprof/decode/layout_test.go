// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"maps"
	"slices"

	"github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// layOut writes p in a layout drawn from those that protobuf allows and that are the same for profile.Parse:
// fields in any order and interleaved, numbers packed or not, zeros written out, fields that pprof does not have, a
// string table with repetitions and at any place. Unlike profile.Write it keeps a label whose text is empty, and a
// number 0 without a unit: they refer to a second empty string.
func layOut(t *rapid.T, p *profile.Profile) profiletest.PprofWire {
	l := &pprofLayout{pprofDraw: pprofDraw{T: t}, strings: []string{""}}
	queues := [][]profiletest.PprofWire{
		l.scalar(profiletest.PprofDropFrames, l.str(p.DropFrames)),
		l.scalar(profiletest.PprofKeepFrames, l.str(p.KeepFrames)),
		l.scalar(profiletest.PprofTimeNanos, p.TimeNanos),
		l.scalar(profiletest.PprofDurationNanos, p.DurationNanos),
		l.scalar(profiletest.PprofPeriod, p.Period),
		l.scalar(profiletest.PprofDefaultSampleType, l.str(p.DefaultSampleType)),
		l.scalar(profiletest.PprofDocURL, l.str(p.DocURL)),
		l.unknown(),
	}
	if p.PeriodType != nil {
		queues = append(queues, []profiletest.PprofWire{l.valueType(profiletest.PprofPeriodType, p.PeriodType)})
	}
	var comments []uint64
	for _, c := range p.Comments {
		comments = append(comments, uint64(l.str(c)))
	}
	queues = append(queues,
		l.numbers(profiletest.PprofComment, comments),
		each(p.SampleType, func(v *profile.ValueType) profiletest.PprofWire {
			return l.valueType(profiletest.PprofSampleType, v)
		}),
		each(p.Sample, l.sample),
		each(p.Mapping, l.mapping),
		each(p.Location, l.location),
		each(p.Function, l.function),
	)
	// Now the strings of all other fields are known.
	table := each(l.strings, func(s string) profiletest.PprofWire { return profiletest.PprofWire(nil).Strings(s) })
	return l.interleave(append(queues, table)...)
}

func each[T any](entries []T, write func(T) profiletest.PprofWire) []profiletest.PprofWire {
	chunks := make([]profiletest.PprofWire, len(entries))
	for i, e := range entries {
		chunks[i] = write(e)
	}
	return chunks
}

type pprofLayout struct {
	pprofDraw
	strings []string
}

// interleave mixes fields, but keeps the order within each queue.
func (l *pprofLayout) interleave(queues ...[]profiletest.PprofWire) profiletest.PprofWire {
	var message profiletest.PprofWire
	queues = slices.DeleteFunc(queues, func(q []profiletest.PprofWire) bool { return len(q) == 0 })
	inOrder := !l.oneIn(2)
	for len(queues) > 0 {
		i := 0
		if !inOrder {
			i = l.count(len(queues)-1, "next field")
		}
		message = append(message, queues[i][0]...)
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues = slices.Delete(queues, i, i+1)
		}
	}
	return message
}

// str returns an index of s: usually the first, sometimes that of a repetition.
func (l *pprofLayout) str(s string) int64 {
	if i := slices.Index(l.strings, s); i >= 0 && !l.oneIn(10) {
		return int64(i)
	}
	return l.addString(s)
}

func (l *pprofLayout) addString(s string) int64 {
	l.strings = append(l.strings, s)
	return int64(len(l.strings) - 1)
}

// notZero returns an index of s other than 0, which means no string.
func (l *pprofLayout) notZero(s string) int64 {
	if i := l.str(s); i != 0 {
		return i
	}
	return l.addString(s)
}

// scalar returns a field of one number. It is usually left out if that is 0.
func (l *pprofLayout) scalar(field protowire.Number, v int64) []profiletest.PprofWire {
	if v == 0 && !l.oneIn(6) {
		return nil
	}
	return []profiletest.PprofWire{profiletest.PprofWire(nil).Int(field, v)}
}

// numbers returns a repeated field: packed, not packed, or partly each.
func (l *pprofLayout) numbers(field protowire.Number, values []uint64) []profiletest.PprofWire {
	if len(values) == 0 {
		return nil
	}
	packed := rapid.SampledFrom([]int{len(values), len(values), 0, len(values) / 2}).Draw(l.T, "packed")
	var w profiletest.PprofWire
	if packed > 0 {
		w = w.Packed(field, values[:packed]...)
	}
	return []profiletest.PprofWire{w.Unpacked(field, values[packed:]...)}
}

// unknown returns nothing, or sometimes a field with a number that no message of pprof uses.
func (l *pprofLayout) unknown() []profiletest.PprofWire {
	if !l.oneIn(8) {
		return nil
	}
	return []profiletest.PprofWire{rapid.SampledFrom([]profiletest.PprofWire{
		profiletest.PprofWire(nil).Varint(100, 1<<63),
		profiletest.PprofWire(nil).Fixed32(101, 1),
		profiletest.PprofWire(nil).Fixed64(102, 1),
		profiletest.PprofWire(nil).Message(1<<29-1, profiletest.PprofWire("text")),
	}).Draw(l.T, "unknown field")}
}

func (l *pprofLayout) valueType(field protowire.Number, v *profile.ValueType) profiletest.PprofWire {
	return profiletest.PprofWire(nil).Message(field, l.interleave(l.scalar(1, l.str(v.Type)), l.scalar(2, l.str(v.Unit))))
}

func (l *pprofLayout) sample(s *profile.Sample) profiletest.PprofWire {
	locations := make([]uint64, len(s.Location))
	for i, location := range s.Location {
		locations[i] = location.ID
	}
	values := make([]uint64, len(s.Value))
	for i, v := range s.Value {
		values[i] = uint64(v)
	}
	queues := [][]profiletest.PprofWire{
		l.numbers(profiletest.PprofSampleLocation, locations),
		l.numbers(profiletest.PprofSampleValue, values),
		l.unknown(),
	}
	// Texts and numbers of one key are two queues: profile.Profile does not keep their common order.
	for _, name := range slices.Sorted(maps.Keys(s.Label)) {
		queues = append(queues, each(s.Label[name], func(text string) profiletest.PprofWire {
			return profiletest.PprofWire(nil).Label(profiletest.PprofLabel{Key: l.str(name), Str: l.notZero(text)})
		}))
	}
	for _, name := range slices.Sorted(maps.Keys(s.NumLabel)) {
		i := 0
		queues = append(queues, each(s.NumLabel[name], func(number int64) profiletest.PprofWire {
			label := profiletest.PprofLabel{Key: l.str(name), Num: number, Unit: l.str(unitOf(s, name, i))}
			if number == 0 {
				label.Unit = l.notZero(unitOf(s, name, i))
			}
			i++
			return profiletest.PprofWire(nil).Label(label)
		}))
	}
	return profiletest.PprofWire(nil).Message(profiletest.PprofSample, l.interleave(queues...))
}

func (l *pprofLayout) mapping(m *profile.Mapping) profiletest.PprofWire {
	return profiletest.PprofWire(nil).Message(profiletest.PprofMapping, l.interleave(
		l.scalar(1, int64(m.ID)), l.scalar(2, int64(m.Start)), l.scalar(3, int64(m.Limit)), l.scalar(4, int64(m.Offset)),
		l.scalar(5, l.str(m.File)), l.scalar(6, l.str(m.BuildID)), l.scalar(7, bit(m.HasFunctions)),
		l.scalar(8, bit(m.HasFilenames)), l.scalar(9, bit(m.HasLineNumbers)), l.scalar(10, bit(m.HasInlineFrames)),
		l.unknown(),
	))
}

func (l *pprofLayout) location(location *profile.Location) profiletest.PprofWire {
	var mapping int64
	if location.Mapping != nil {
		mapping = int64(location.Mapping.ID)
	}
	lines := each(location.Line, func(line profile.Line) profiletest.PprofWire {
		var function int64
		if line.Function != nil {
			function = int64(line.Function.ID)
		}
		return profiletest.PprofWire(nil).Message(profiletest.PprofLocationLine, l.interleave(
			l.scalar(1, function), l.scalar(2, line.Line), l.scalar(3, line.Column), l.unknown(),
		))
	})
	return profiletest.PprofWire(nil).Message(profiletest.PprofLocation, l.interleave(
		l.scalar(1, int64(location.ID)), l.scalar(2, mapping), l.scalar(3, int64(location.Address)), lines,
		l.scalar(5, bit(location.IsFolded)), l.unknown(),
	))
}

func (l *pprofLayout) function(f *profile.Function) profiletest.PprofWire {
	return profiletest.PprofWire(nil).Message(profiletest.PprofFunction, l.interleave(
		l.scalar(1, int64(f.ID)), l.scalar(2, l.str(f.Name)), l.scalar(3, l.str(f.SystemName)),
		l.scalar(4, l.str(f.Filename)), l.scalar(5, f.StartLine), l.unknown(),
	))
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
