// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

// SizeEstimate follows the encoded size of a growing Dictionary at a cost that depends on what was added
// since alone. It counts what nothing refers to, and takes every index for one of the last.
type SizeEstimate struct{ strings, attributes, textBytes int }

// Update gives the estimate in bytes.
func (e *SizeEstimate) Update(d *Dictionary) int {
	for ; e.strings < d.Strings.Len(); e.strings++ {
		e.textBytes += FieldLen(len(d.Strings.entries[e.strings]))
	}
	for ; e.attributes < d.Attributes.Len(); e.attributes++ {
		e.textBytes += len(d.Attributes.entries[e.attributes].Value.text)
	}
	const address = 1 + 7 // what code's addresses take
	str, function := VarintLen(uint64(d.Strings.Len())), VarintLen(uint64(d.Functions.Len()))
	return e.textBytes +
		d.Functions.Len()*(2+3*(1+str)+2) +
		d.Mappings.Len()*(2+3*address+1+str+4) +
		d.Locations.Len()*(2+2+address) +
		len(d.Locations.lines)*(2+1+function+3) +
		d.Stacks.Len()*3 + len(d.Stacks.lists.flat)*VarintLen(uint64(d.Locations.Len())) +
		d.Links.Len()*30 +
		d.Attributes.Len()*(2+2+2*(1+str)+4)
}
