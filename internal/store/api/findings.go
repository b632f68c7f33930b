// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/findings"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// findings answers with what an experienced reader would point at in the profiles of a service.
func (s *server) findings(r *request) (*answer, error) {
	sel := r.selection()
	if sel.Service == "" {
		r.params.Fail(query.BadRequest("`service` must be given", "GET /api/services lists them"))
	}
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	sel.From, sel.Until = r.bounded(&sel)
	found, _, err := findings.Of(r.Context(), s.Store, sel, r.now)
	if err != nil {
		return nil, err
	}
	return jsonAnswer(map[string]any{"findings": append([]findings.Finding{}, found...)})
}
