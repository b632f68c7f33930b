// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// Entry 0 is not a mapping, an empty build id counts as missing, and indices out of range do not cause a panic.
func TestWarnings(t *testing.T) {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("", "process.executable.build_id.go", "/bin/a", "/bin/b", "process.executable.build_id.htlhash",
		"other")
	add := func(key int32, value string) int32 {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(key)
		a.Value().SetStr(value)
		return int32(d.AttributeTable().Len() - 1)
	}
	mapping := func(file int32, attributes ...int32) {
		m := d.MappingTable().AppendEmpty()
		m.SetFilenameStrindex(file)
		m.AttributeIndices().Append(attributes...)
	}
	add(0, "")
	mapping(0)
	assert.Empty(t, resolved.Warnings(pd))
	mapping(2, add(5, "x"), add(1, "abc"))
	mapping(3, add(4, "def"))
	assert.Empty(t, resolved.Warnings(pd))
	mapping(3, add(1, ""), 99, -1, add(99, "x"))
	mapping(99)
	assert.Equal(t, []string{
		"2 of 4 mappings have no build id (process.executable.build_id.gnu, .go or .htlhash), such as mapping_table[3], /bin/b",
	}, resolved.Warnings(pd))
}
