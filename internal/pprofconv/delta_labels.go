// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// labelFingerprint is a label: its key, and its value in the form that is hashed.
type labelFingerprint struct {
	key, text fingerprint // of a number, text is its unit
	num       int64
	kind      uint64 // labelText or labelNumber
}

const (
	labelText   = 0
	labelNumber = 1
)

// labelsFingerprint is that of the labels at this place of the payload: the texts of a key in their order, then
// its numbers; keys in any.
func (d *decoder) labelsFingerprint(at span) (fingerprint, DropReason, bool) {
	f := &d.delta.fingerprints
	key := d.data[at.start:at.end]
	p := f.labelIndex.Start(profiledict.HashBytes(key))
	for e := f.labelIndex.Next(&p); e != 0; e = f.labelIndex.Next(&p) {
		if known := &f.labelSets[e]; bytes.Equal(d.data[known.at.start:known.at.end], key) {
			return known.fingerprint, 0, true
		}
	}
	if reason, ok := d.readLabelFingerprints(at); !ok {
		return fingerprint{}, reason, false
	}
	slices.SortStableFunc(f.labels, func(x, y labelFingerprint) int {
		return cmp.Or(cmp.Compare(x.key.a, y.key.a), cmp.Compare(x.key.b, y.key.b), cmp.Compare(x.kind, y.kind))
	})
	b := slices.Grow(f.entry[:0], len(f.labels)*3*fingerprintBytes)
	for i := range f.labels {
		l := &f.labels[i]
		b = l.text.appendTo(l.key.appendTo(b))
		b = binary.LittleEndian.AppendUint64(b, uint64(l.num))
		b = binary.LittleEndian.AppendUint64(b, l.kind)
	}
	f.entry = b
	set := labelSetFingerprint{at: at}
	if len(b) > 0 {
		set.fingerprint = fingerprintOf(b)
	}
	f.labelIndex.Insert(p, int32(len(f.labelSets)))
	f.labelSets = append(f.labelSets, set)
	return set.fingerprint, 0, true
}

// readLabelFingerprints reads labels as readLabels does, and refuses the same.
func (d *decoder) readLabelFingerprints(at span) (DropReason, bool) {
	f := &d.delta.fingerprints
	f.labels = f.labels[:0]
	var message field
	for p, end := int(at.start), int(at.end); p < end; {
		var err error
		if p, err = message.next(d.data, p, end); err != nil {
			return DropMalformed, false
		}
		if message.number != 3 {
			continue
		}
		var v [4]uint64
		if !numbers(d.data, message.start, message.end, v[:]) {
			return DropMalformed, false
		}
		key, str, num, unit := v[0], v[1], int64(v[2]), v[3]
		if !d.hasString(key) || !d.hasString(str) || str == 0 && !d.hasString(unit) { // a text has no unit
			return DropUnknownString, false
		}
		if f.labelsRead++; f.labelsRead > 4*d.limits.MaxTableEntries {
			return DropTooManyLabels, false
		}
		if str == 0 && num == 0 && unit == 0 {
			continue
		}
		l := labelFingerprint{kind: labelText, text: d.stringFingerprint(str)}
		if str == 0 {
			l = labelFingerprint{kind: labelNumber, num: num, text: d.stringFingerprint(unit)}
		}
		if len(d.strings) > 0 {
			l.key = d.rawStringFingerprint(key)
		}
		f.labels = append(f.labels, l)
	}
	return 0, true
}
