// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

// sampleFingerprint reads a sample as takeSample does, and refuses the same. It leaves the values in
// d.sampleValues.
func (d *decoder) sampleFingerprint(at span) (fingerprint, DropReason, bool) {
	p := &d.delta
	d.sampleValues, d.valueCount = d.sampleValues[:0], 0
	b := p.sample[:0]
	labels := span{}
	var f field
	for next, end := int(at.start), int(at.end); next < end; {
		start := next
		var err error
		if next, err = f.next(d.data, next, end); err != nil {
			return fingerprint{}, DropMalformed, false
		}
		switch f.number {
		case 1:
			var reason DropReason
			var ok bool
			if b, reason, ok = d.appendLocations(b, &f); !ok {
				return fingerprint{}, reason, false
			}
		case 2:
			if !d.takeValues(&f) {
				return fingerprint{}, DropMalformed, false
			}
		case 3:
			if f.wire != wireBytes {
				return fingerprint{}, DropMalformed, false
			}
			if labels.end == 0 {
				labels.start = uint32(start)
			}
			labels.end = uint32(next)
		}
	}
	var set fingerprint
	if labels.end != 0 {
		var reason DropReason
		var ok bool
		if set, reason, ok = d.labelsFingerprint(labels); !ok {
			return fingerprint{}, reason, false
		}
	}
	b = set.appendTo(b) // the last one, always there: what stands before it are locations
	p.sample = b
	return fingerprintOf(b), 0, true
}

// appendLocations appends the fingerprints of a field's locations, as takeLocations does their indices.
func (d *decoder) appendLocations(b []byte, f *field) ([]byte, DropReason, bool) {
	room := d.limits.MaxStackDepth - len(b)/fingerprintBytes
	if f.wire == wireVarint {
		if room == 0 {
			return b, DropStackTooDeep, false
		}
		print, ok := d.locationWithID(f.value)
		if !ok {
			return b, d.whyUnknown(f.value), false
		}
		return print.appendTo(b), 0, true
	}
	if f.wire != wireBytes {
		return b, DropMalformed, false
	}
	data := d.data[:f.end]
	if len(data)-f.start > room && countVarints(data[f.start:]) > room {
		return b, DropStackTooDeep, false
	}
	for p := f.start; p < len(data); {
		id := uint64(data[p])
		if p++; id >= 0x80 {
			if id, p = varint(data, p-1); p < 0 {
				return b, DropMalformed, false
			}
		}
		print, ok := d.locationWithID(id)
		if !ok {
			return b, d.whyUnknown(id), false
		}
		b = print.appendTo(b)
	}
	return b, 0, true
}

const fingerprintBytes = 16

func (d *decoder) locationWithID(id uint64) (fingerprint, bool) {
	position, ok := d.locationIDs.find(id)
	if !ok {
		return fingerprint{}, false
	}
	print := d.delta.locations[position]
	if print == (fingerprint{}) {
		print = d.locationFingerprint(position)
	}
	return print, print != brokenLocation
}

// whyUnknown says why locationWithID knows no such location.
func (d *decoder) whyUnknown(id uint64) DropReason {
	if _, ok := d.locationIDs.find(id); ok {
		return DropUnknownString
	}
	return DropUnknownLocation
}
