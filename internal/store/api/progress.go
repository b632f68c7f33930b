// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// progressHeader is the request header that names queries: GET /api/progress?id=… tells how far those of a name are.
const progressHeader = "Progress-Id"

const maxProgressID = 64

// progress has the queries under way that have a name. Several can share it.
type progress struct {
	mu   sync.Mutex
	byID map[string]*named
}

type named struct {
	model.Progress
	queries int
}

// begin returns a context for a query, which ends with end.
func (p *progress) begin(r *http.Request) (ctx context.Context, end func()) {
	id := r.Header.Get(progressHeader)
	if id == "" || len(id) > maxProgressID {
		return r.Context(), func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.byID[id]
	if n == nil {
		n = &named{}
		p.byID[id] = n
	}
	n.queries++
	return model.WithProgress(r.Context(), &n.Progress), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n.queries--; n.queries == 0 {
			delete(p.byID, id)
		}
	}
}

// ServeHTTP answers at once: it is no query, and waits for no slot.
func (p *progress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	n := p.byID[r.URL.Query().Get("id")]
	p.mu.Unlock()
	if n == nil {
		w.WriteHeader(http.StatusNoContent) // It may have ended since the caller decided to ask: no mistake of the caller.
		return
	}
	done, total := n.Blocks()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int64{"blocks": total, "blocks_read": done})
}
