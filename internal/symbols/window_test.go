// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Indexed addresses cost little more than the bytes of their table if entries use them in order; otherwise each costs a
// read.
func TestIndexedAddresses(t *testing.T) {
	const n = 100_000
	data := make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint64(data[8*i:], uint64(i)<<8)
	}
	d := &dwarfTable{
		image: &Image{order: binary.LittleEndian},
		addrs: extent{r: bytes.NewReader(data), size: int64(len(data))},
	}
	u := &dwarfUnit{encoding: encoding{addrSize: 8}}
	for _, test := range []struct{ step, least, most int }{
		{1, 8, 16},
		{7919, windowBytes, 2 * windowBytes}, // each in another window than the last
	} {
		const work = 1 << 40
		d.windows, d.image.work.left = nil, work
		for k := range n {
			i := uint64(k * test.step % n)
			addr, ok := d.indexedAddress(u, i)
			require.True(t, ok)
			require.Equal(t, i<<8, addr)
		}
		each := int(work-d.image.work.left) / n
		assert.GreaterOrEqual(t, each, test.least)
		assert.LessOrEqual(t, each, test.most)
	}
	_, ok := d.indexedAddress(u, n)
	assert.False(t, ok, "outside of the table")
	d.windows, d.image.work.left = nil, windowBytes
	_, ok = d.indexedAddress(u, 0)
	assert.False(t, ok, "without work left")
}
