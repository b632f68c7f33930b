// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// buildIDPrefix begins the three attributes for a build id: process.executable.build_id.gnu, .go and .htlhash.
const buildIDPrefix = "process.executable.build_id."

// Warnings returns what readers of profiles miss although the format itself is kept: mappings without a build id, of
// which the specification wants at least one (specification/profiles/mappings.md). Indices may be out of range. One
// warning names the first of them.
func Warnings(pd pprofile.Profiles) []string {
	d := pd.Dictionary()
	without, first := 0, 0
	for i, m := range d.MappingTable().All() {
		if i == 0 || hasBuildID(d, m) {
			continue
		}
		if without++; without == 1 {
			first = i
		}
	}
	if without == 0 {
		return nil
	}
	name := Namer{Dictionary: d}.str(d.MappingTable().At(first).FilenameStrindex())
	return []string{
		fmt.Sprintf(
			"%d of %d mappings have no build id (process.executable.build_id.gnu, .go or .htlhash), such as mapping_table[%d], %s",
			without, d.MappingTable().Len()-1, first, name)}
}

func hasBuildID(d pprofile.ProfilesDictionary, m pprofile.Mapping) bool {
	for key, value := range otlp.Attributes(d, m.AttributeIndices()) {
		if strings.HasPrefix(key, buildIDPrefix) && value.Str() != "" {
			return true
		}
	}
	return false
}
