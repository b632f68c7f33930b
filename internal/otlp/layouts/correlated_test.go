// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Every layout takes about as long if the fields of entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	for layout, write := range map[Layout]func(n int, keys profiletest.Keys) []byte{
		V1_3: keyed1x3,
		V1_4: keyed1x4,
		V1_6: keyed1x6,
		V1_7: keyed1x7,
		V1_8: func(n int, keys profiletest.Keys) []byte {
			return keyedInPlace(t, n, keys, fieldsOf{8, "0123456789abcdef"})
		},
		V1_9: func(n int, keys profiletest.Keys) []byte { return keyedInPlace(t, n, keys, nil) },
		V1_10: func(n int, keys profiletest.Keys) []byte {
			return marshal(t, profiletest.KeyedProfiles(n, keys))
		},
	} {
		t.Run(layout.String(), func(t *testing.T) {
			profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
				data := write(n, keys)
				return func() {
					_, stats, err := Unmarshal(slices.Clone(data), nil) // it changes data
					require.NoError(t, err)
					require.Equal(t, layout, stats.Layout)
					require.Zero(t, stats.Dropped)
				}
			})
		})
	}
}

func marshal(t *testing.T, pd pprofile.Profiles) []byte {
	t.Helper()
	data, err := new(pprofile.ProtoMarshaler).MarshalProfiles(pd)
	require.NoError(t, err)
	return data
}

// keyedInPlace returns a message of 1.8 or 1.9: the tables of today, and samples of old.
func keyedInPlace(t *testing.T, n int, keys profiletest.Keys, more fieldsOf) []byte {
	t.Helper()
	pd := profiletest.KeyedProfiles(n, keys)
	pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
	profile := more
	for i := range uint64(n) {
		k := keys(i + 1)
		profile = append(profile, 2, fieldsOf{
			1, profiletest.KeyIndex(k[0], n), 2, []int{1, 1}, 3, []int{profiletest.KeyIndex(k[1], n)},
			4, profiletest.KeyIndex(k[2], n), 5, []uint64{1, 2},
		})
	}
	return append(request(profile), marshal(t, pd)...)
}

// oldTables are the tables of 1.4 to 1.7: entries by the name of their table.
type oldTables struct {
	mappings, locations, functions, links, attributes []fieldsOf
	samples                                           []fieldsOf
	locationIndices                                   []int
	texts                                             []string
}

func keyedTables(n int, keys profiletest.Keys) (all oldTables) {
	at := func(number uint64) int { return profiletest.KeyIndex(number, n) - 1 }
	number := func(v uint64) int { return int(v & math.MaxInt64) }
	all.texts = []string{""}
	for i := range uint64(n) {
		k := keys(i + 1)
		text := func(number uint64) int { return at(number) + 1 }
		all.texts = append(all.texts, fmt.Sprint("text", i))
		start, limit := number(k[0]>>2), number(k[0]>>2+k[1]>>2)+1
		all.mappings = append(all.mappings, fieldsOf{1, start, 2, limit, 3, number(k[2]), 4, text(k[3])})
		all.functions = append(all.functions, fieldsOf{1, text(k[0]), 2, text(k[1]), 3, text(k[2]), 4, number(k[3])})
		all.locations = append(all.locations,
			fieldsOf{1, at(k[0]), 2, number(k[1]), 3, fieldsOf{1, at(k[2]), 2, number(k[3])}})
		trace, span := fmt.Sprintf("%08x%08x", uint32(k[0]), uint32(k[1])), fmt.Sprintf("%08x", uint32(k[2]))
		all.links = append(all.links, fieldsOf{1, trace, 2, span})
		all.attributes = append(all.attributes, fieldsOf{1, fmt.Sprint("text", at(k[0])), 2, fieldsOf{3, number(k[1])}})
		all.locationIndices = append(all.locationIndices, at(k[0]), at(k[1]))
		all.samples = append(all.samples, fieldsOf{1, 2 * int(i), 2, 2, 3, []int{1}, 4, []int{at(k[2])}, 5, at(k[3])})
	}
	return all
}

// addTo appends the entries of a table under the number of its field.
func addTo(message fieldsOf, number int, entries []fieldsOf) fieldsOf {
	for _, entry := range entries {
		message = append(message, number, entry)
	}
	return message
}

func addTexts(message fieldsOf, number int, texts []string) fieldsOf {
	for _, text := range texts {
		message = append(message, number, text)
	}
	return message
}

func keyed1x4(n int, keys profiletest.Keys) []byte {
	all := keyedTables(n, keys)
	profile := addTo(addTo(addTo(nil, 2, all.samples), 3, all.mappings), 4, all.locations)
	profile = addTo(addTo(addTo(append(profile, 5, all.locationIndices), 6, all.functions), 7, all.attributes), 9,
		all.links)
	return request(append(addTexts(profile, 10, all.texts), 11, 1000))
}

func keyed1x6(n int, keys profiletest.Keys) []byte {
	all := keyedTables(n, keys)
	tables := addTo(addTo(addTo(addTo(nil, 2, all.mappings), 3, all.locations), 4, all.functions), 5, all.links)
	tables = addTo(addTexts(tables, 6, all.texts), 7, all.attributes)
	return request(append(addTo(nil, 2, all.samples), 3, all.locationIndices, 4, 1000), tables...)
}

func keyed1x7(n int, keys profiletest.Keys) []byte {
	all := keyedTables(n, keys)
	dictionary := addTo(addTo(addTo(addTo(nil, 1, all.mappings), 2, all.locations), 3, all.functions), 4, all.links)
	dictionary = addTo(addTexts(dictionary, 5, all.texts), 6, all.attributes)
	return request(append(addTo(nil, 2, all.samples), 3, all.locationIndices, 4, 1000), 2, dictionary)
}

// keyed1x3 refers by ids, and a sample has labels.
func keyed1x3(n int, keys profiletest.Keys) []byte {
	at := func(number uint64) int { return profiletest.KeyIndex(number, n) }
	number := func(v uint64) int { return int(v & math.MaxInt64) }
	profile := fieldsOf{6, ""}
	for i := range uint64(n) {
		k := keys(i + 1)
		id := int(i) + 1
		profile = append(profile,
			6, fmt.Sprint("text", i),
			3, fieldsOf{1, id, 2, number(k[0] >> 2), 3, number(k[0]>>2+k[1]>>2) + 1, 4, number(k[2]), 5, at(k[3])},
			5, fieldsOf{1, id, 2, at(k[0]), 3, at(k[1]), 4, at(k[2]), 5, number(k[3])},
			4, fieldsOf{1, id, 2, at(k[0]), 3, number(k[1]), 4, fieldsOf{1, at(k[2]), 2, number(k[3])}},
			2, fieldsOf{1, []int{at(k[0]), at(k[1])}, 2, []int{1}, 3, fieldsOf{1, at(k[2]), 3, number(k[3])}},
		)
	}
	return request(fieldsOf{2, uint64(1), 3, uint64(2), 8, profile})
}
