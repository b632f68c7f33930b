// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// linkOf gives the link that labels name by a trace_id and a span_id: one string of
// hexadecimal digits each, neither zero. Anything else, half a pair included, stays labels.
func linkOf(labels []Label) (link profiledict.Link, ok bool) {
	trace, hasTrace := onlyText(labels, pprofscan.KeyTraceID)
	span, hasSpan := onlyText(labels, pprofscan.KeySpanID)
	if !hasTrace || !hasSpan {
		return profiledict.Link{}, false
	}
	return profiledict.ParseLink(trace, span)
}

// onlyText gives the value of key where it has exactly one, and that is text.
func onlyText(labels []Label, key string) (value string, ok bool) {
	for i := range labels {
		if labels[i].Key != key {
			continue
		}
		if ok || !labels[i].IsText {
			return "", false
		}
		value, ok = labels[i].Text, true
	}
	return value, ok
}
