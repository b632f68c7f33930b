// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
)

func answerHEC(w http.ResponseWriter, status int, answer hec.Answer) {
	if answer.Text == "" {
		answer.Text = hec.Texts[answer.Code]
	}
	body, err := json.Marshal(answer)
	if err != nil {
		body = []byte("{}")
	}
	httpserver.Answer(w, httpserver.ContentJSON, body, status)
}

// answerHECError answers for confighttp, and for bodies that cannot be read.
func answerHECError(w http.ResponseWriter, r *http.Request, message string, status int) {
	answer := hec.Answer{Code: hec.InvalidData, Reason: message}
	switch status {
	case http.StatusUnauthorized:
		// HEC tells these three apart; the authenticator's message may say more than a stranger should know.
		answer.Reason = ""
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch {
		case scheme == "":
			answer.Code = hec.TokenRequired
		case !strings.EqualFold(scheme, "Splunk") || token == "":
			answer.Code = hec.InvalidAuthorization
		default:
			answer.Code, status = hec.InvalidToken, http.StatusForbidden
		}
	case http.StatusRequestEntityTooLarge:
		answer.Code = hec.TooLarge
	case http.StatusInternalServerError:
		answer.Code = hec.InternalError
	case http.StatusServiceUnavailable:
		answer.Code = hec.Busy
	}
	answerHEC(w, status, answer)
}
