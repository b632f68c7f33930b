// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"encoding/json"
	"net/http"
	"strings"
)

// hecCode is the code in an answer of HEC. The protocol has a text for each.
type hecCode int

// The codes that are used here (Splunk Enterprise, "Troubleshoot HTTP Event Collector").
const (
	hecSuccess       hecCode = 0
	hecTokenRequired hecCode = 2
	hecAuthorization hecCode = 3
	hecInvalidToken  hecCode = 4
	hecNoData        hecCode = 5
	hecInvalidData   hecCode = 6
	hecInternal      hecCode = 8
	hecBusy          hecCode = 9
	hecEventRequired hecCode = 12
	hecEventBlank    hecCode = 13
	hecAckDisabled   hecCode = 14
	hecFields        hecCode = 15
	hecHealthy       hecCode = 17
	hecTooLarge      hecCode = 27
)

var hecTexts = map[hecCode]string{
	hecSuccess:       "Success",
	hecTokenRequired: "Token is required",
	hecAuthorization: "Invalid authorization",
	hecInvalidToken:  "Invalid token",
	hecNoData:        "No data",
	hecInvalidData:   "Invalid data format",
	hecInternal:      "Internal server error",
	hecBusy:          "Server is busy",
	hecEventRequired: "Event field is required",
	hecEventBlank:    "Event field cannot be blank",
	hecAckDisabled:   "ACK is disabled",
	hecFields:        "Error in handling indexed fields",
	hecHealthy:       "HEC is healthy",
	hecTooLarge:      "Request entity too large",
}

// hecAnswer is an answer's body. Reason and Rejected are this receiver's own: HEC's texts are fixed.
type hecAnswer struct {
	Text         string  `json:"text"`
	Code         hecCode `json:"code"`
	InvalidEvent *int    `json:"invalid-event-number,omitempty"`
	Rejected     int     `json:"rejected,omitempty"`
	Reason       string  `json:"reason,omitempty"`
}

func answerHEC(w http.ResponseWriter, status int, answer hecAnswer) {
	if answer.Text == "" {
		answer.Text = hecTexts[answer.Code]
	}
	body, err := json.Marshal(answer)
	if err != nil {
		body = []byte("{}")
	}
	answerBody(w, contentJSON, body, status)
}

// answerHECError answers for confighttp, and for bodies that cannot be read.
func answerHECError(w http.ResponseWriter, r *http.Request, message string, status int) {
	answer := hecAnswer{Code: hecInvalidData, Reason: message}
	switch status {
	case http.StatusUnauthorized:
		// HEC tells these three apart; the authenticator's message may say more than a stranger should know.
		answer.Reason = ""
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch {
		case scheme == "":
			answer.Code = hecTokenRequired
		case !strings.EqualFold(scheme, "Splunk") || token == "":
			answer.Code = hecAuthorization
		default:
			answer.Code, status = hecInvalidToken, http.StatusForbidden
		}
	case http.StatusRequestEntityTooLarge:
		answer.Code = hecTooLarge
	case http.StatusInternalServerError:
		answer.Code = hecInternal
	case http.StatusServiceUnavailable:
		answer.Code = hecBusy
	}
	answerHEC(w, status, answer)
}
