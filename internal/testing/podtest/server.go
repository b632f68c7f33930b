// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package podtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// startAPIServer starts an API server of a cluster without pods.
func startAPIServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if request.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		if request.URL.Query().Get("sendInitialEvents") != "" {
			fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1",`+
				`"annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		}
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
	}))
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}
