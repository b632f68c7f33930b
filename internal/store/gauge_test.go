// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// No answer depends on how profiles are spread over blocks: a state that has ended before the selection does not come
// back because the block with the next state sorts before that with the state.
func TestALateStateInALaterBlock(t *testing.T) {
	memory := New(Config{Window: 100 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20, MaxSeries: 100})
	disk := open(t, diskConfig(t, t.TempDir()))
	ten := noon.Add(-2 * time.Hour)
	both := func(typ string, at, now time.Time, value int64) {
		for _, s := range []*Store{memory, disk} {
			s.Add(profiletest.New().Resource("service.name", "shop").Profile(typ, "bytes").Time(uint64(at.UnixNano()), 0).
				Sample(profiletest.Value(value, "leaf")).Build(), now)
		}
	}
	state := func(at, now time.Time, value int64) { both("inuse_space", at, now, value) }
	both("inuse_objects", ten, ten, 1)                           // the block of this hour begins at ten
	for _, minute := range []int{0, 1, 45, 120, 124, 140, 200} { // each minute, and an hour apart in the end
		at := ten.Add(time.Duration(minute) * time.Minute)
		if minute == 120 {
			disk.Maintain(ten.Add(time.Hour))
		}
		state(at, at, 100)
	}
	// what was late: it holds until the next one, at 10:45
	state(ten.Add(5*time.Minute), ten.Add(4*time.Hour+time.Minute), 7)
	write := func() {
		disk.adding.Lock()
		disk.blocks[len(disk.blocks)-1].Freeze()
		disk.adding.Unlock()
		require.NoError(t, disk.flush())
	}
	write()
	sel := model.Selection{Service: "shop", Profile: "memory", Type: "inuse_space",
		From: ten.Add(50 * time.Minute).UnixNano(), Until: ten.Add(60 * time.Minute).UnixNano()}
	want, got := sum(t, memory, sel), sum(t, disk, sel)
	disk.Maintain(ten.Add(5 * time.Hour)) // the quarter becomes one block
	assert.Equal(t, want, sum(t, disk, sel), "after the quarter became one block")
	assert.Equal(t, want, got)
	require.NoError(t, disk.Close())
}
