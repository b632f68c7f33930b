// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"net/url"
	"path"
	"strconv"
	"time"
)

// recordingTime returns how long the target records before it answers: `seconds` of the query, or the default of Go's net/http/pprof
// for a CPU profile.
func recordingTime(u *url.URL) time.Duration {
	const longest = 24 * time.Hour // bounds the timeout, regardless of the query
	if asked := u.Query().Get("seconds"); asked != "" {
		seconds, err := strconv.ParseFloat(asked, 64)
		if err != nil || !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
	}
	if path.Clean(u.Path) == "/debug/pprof/profile" {
		return 30 * time.Second
	}
	return 0
}
