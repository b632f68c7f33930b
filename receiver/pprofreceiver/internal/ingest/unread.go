// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// unreadTypes are the types of events that were not read so far. Senders choose the names, so their number is bounded.
type unreadTypes struct {
	mu    sync.Mutex
	known map[string]bool
}

const maxUnreadTypes = 64

// admit returns the name that a type has in metrics, and whether it is new.
func (u *unreadTypes) admit(eventType string) (name string, isNew bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.known[eventType]:
		return eventType, false
	case len(u.known) >= maxUnreadTypes:
		return events.UnreadOther, false
	case u.known == nil:
		u.known = map[string]bool{}
	}
	u.known[eventType] = true
	return eventType, true
}

// countUnread counts the events of a recording that were not read, and logs the first of each type.
func (in *Ingester) countUnread(ctx context.Context, unread map[string]int) {
	for eventType, n := range unread {
		name, isNew := in.unread.admit(eventType)
		if isNew {
			in.Set.Logger.Warn("a recording has events with stacks of a type that is not read; further ones are only counted",
				zap.String("type", name), zap.Int("events", n))
		}
		in.Metrics.ReceiverPprofUnreadEvents.Add(ctx, int64(n), telemetry.Attributes("type", name))
	}
}
