// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"

	"go.uber.org/zap"
)

// Changes logs when failures begin, when their state changes, and when they end: what fails for a day takes two lines.
// It is safe for concurrent use.
type Changes struct {
	Logger *zap.Logger
	// Failed and Recovered are the messages. Without Recovered, the end of failures is not logged.
	Failed, Recovered string

	mu    sync.Mutex
	state string
}

// Note logs err unless the last call had the same state, which is a coarse name of the error, or its message. A nil err
// is a success. It reports whether the state has changed.
func (c *Changes) Note(state string, err error, fields ...zap.Field) bool {
	if err == nil {
		state = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == c.state {
		return false
	}
	c.state = state
	switch {
	case err != nil:
		if state != err.Error() {
			fields = append(fields, zap.String("reason", state))
		}
		c.Logger.Warn(c.Failed, append(fields, zap.Error(err))...)
	case c.Recovered != "":
		c.Logger.Info(c.Recovered)
	}
	return true
}

// maxSenders bounds the senders that a Once remembers.
const maxSenders = 1000

// Once remembers senders, so that each is logged once. Its zero value has none, and it is safe for concurrent use.
type Once[Sender comparable] struct {
	mu    sync.Mutex
	known map[Sender]struct{}
}

// IsNew reports whether a sender has not been seen yet. When there are too many to remember, further ones count as
// seen.
func (o *Once[Sender]) IsNew(sender Sender) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.known[sender]; known || len(o.known) >= maxSenders {
		return false
	}
	if o.known == nil {
		o.known = map[Sender]struct{}{}
	}
	o.known[sender] = struct{}{}
	return true
}
