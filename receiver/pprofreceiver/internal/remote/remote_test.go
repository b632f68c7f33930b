// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRemoteTimeout(t *testing.T) {
	for endpoint, want := range map[string]time.Duration{
		"http://h/debug/pprof/heap":                  10 * time.Second,
		"http://h/debug/pprof/heap?seconds=3":        10 * time.Second,
		"http://h/debug/pprof/heap?seconds=60":       65 * time.Second,
		"http://h/debug/pprof/delta?seconds=12.5":    17500 * time.Millisecond,
		"http://h/debug/pprof/profile":               35 * time.Second,
		"http://h/debug/pprof/profile?seconds=x":     10 * time.Second,
		"http://h/debug/pprof/profile?seconds=-1":    10 * time.Second,
		"http://h/debug/pprof/profile?seconds=NaN":   10 * time.Second,
		"http://h/debug/pprof/profile?seconds=1e300": 24*time.Hour + 5*time.Second,
	} {
		target, err := url.Parse(endpoint)
		require.NoError(t, err)
		r := &Remote{cfg: &Config{}, target: target}
		assert.Zero(t, r.timeout(), "no timeout remains no timeout")
		r.cfg.Client.Timeout = 10 * time.Second
		assert.Equal(t, want, r.timeout(), endpoint)
	}
}
