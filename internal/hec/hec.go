// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hec is Splunk's HTTP Event Collector in both directions: Reader reads events as log records, Write writes log
// records as events, and Answer is what a server answers.
package hec

import "github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"

// LibraryHeader names the instrumentation library that all events of a request are from.
const LibraryHeader = "X-Splunk-Instrumentation-Library"

// MaxLibraryBytes bounds its value, which each event of a body can repeat.
const MaxLibraryBytes = 256

// The attributes that have a place of their own in an event, as in the exporter splunk_hec.
const (
	attributeHost       = "host.name"
	attributeSource     = "com.splunk.source"
	attributeSourceType = splunklog.KeySourceType
	attributeIndex      = "com.splunk.index"
	attributeToken      = "com.splunk.hec.access_token"
	// unknownHost is the host of a record whose resource has none.
	unknownHost = "unknown"
	// severityPrefix is that of fields for the severity of a record.
	severityPrefix = "otel.log.severity."
)

// Code is the code in an answer. The protocol has a text for each.
type Code int

// The codes that servers of this project use (Splunk Enterprise, "Troubleshoot HTTP Event Collector").
const (
	Success              Code = 0
	TokenRequired        Code = 2
	InvalidAuthorization Code = 3
	InvalidToken         Code = 4
	NoData               Code = 5
	InvalidData          Code = 6
	InternalError        Code = 8
	Busy                 Code = 9
	EventRequired        Code = 12
	EventBlank           Code = 13
	AckDisabled          Code = 14
	InvalidFields        Code = 15
	Healthy              Code = 17
	TooLarge             Code = 27
)

// Texts are the texts of the codes.
var Texts = map[Code]string{
	Success:              "Success",
	TokenRequired:        "Token is required",
	InvalidAuthorization: "Invalid authorization",
	InvalidToken:         "Invalid token",
	NoData:               "No data",
	InvalidData:          "Invalid data format",
	InternalError:        "Internal server error",
	Busy:                 "Server is busy",
	EventRequired:        "Event field is required",
	EventBlank:           "Event field cannot be blank",
	AckDisabled:          "ACK is disabled",
	InvalidFields:        "Error in handling indexed fields",
	Healthy:              "HEC is healthy",
	TooLarge:             "Request entity too large",
}

// Answer is an answer's body. Reason and Rejected are this project's own: the texts of HEC are fixed.
type Answer struct {
	Text         string `json:"text"`
	Code         Code   `json:"code"`
	InvalidEvent *int   `json:"invalid-event-number,omitempty"`
	Rejected     int    `json:"rejected,omitempty"`
	Reason       string `json:"reason,omitempty"`
}
