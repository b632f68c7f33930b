// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// Bytes estimates what Encode takes for a message: a buffer that grows, of a stack for each observation and of
// the dictionary.
func Bytes(pd pprofile.Profiles) int {
	const sampleBytes, locationBytes, attributeBytes, entryBytes, grown = 48, 3, 12, 64, 3
	dict := pd.Dictionary()
	stacks := dict.StackTable()
	n := entryBytes * (dict.FunctionTable().Len() + dict.LocationTable().Len() + dict.MappingTable().Len())
	for _, s := range dict.StringTable().All() {
		n += 4 + len(s)
	}
	for p := range otlp.Profiles(pd) {
		for _, s := range p.Samples().All() {
			n += max(1, s.TimestampsUnixNano().Len()) * (sampleBytes + attributeBytes*s.AttributeIndices().Len() +
				locationBytes*stacks.At(int(s.StackIndex())).LocationIndices().Len())
		}
	}
	const most, factor = 1 << 20, 64 // as Encode documents
	return grown * min(n, most+factor*(&pprofile.ProtoMarshaler{}).ProfilesSize(pd))
}
