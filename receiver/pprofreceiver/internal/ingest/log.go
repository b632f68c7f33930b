// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import "go.uber.org/zap"

// ChangeLog logs when failures begin, when their reason changes, and when they end: a target that is down for a day takes two lines.
type ChangeLog struct {
	Logger *zap.Logger
	state  string
}

// Note logs err unless the last call had the same state. A nil err is a success.
func (c *ChangeLog) Note(state string, err error) {
	if err == nil {
		state = ""
	}
	if state == c.state {
		return
	}
	if c.state = state; err == nil {
		c.Logger.Info("accepting profiles again")
		return
	}
	c.Logger.Warn("cannot accept a profile; suppressing repeats until the reason changes", zap.String("reason", state), zap.Error(err))
}
