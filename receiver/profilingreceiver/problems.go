// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"slices"
	"strings"
)

// reason is the kind of a problem, for the metric.
type reason string

const (
	reasonPlatform  reason = "platform"
	reasonBusy      reason = "busy"
	reasonKernel    reason = "kernel"
	reasonPrivilege reason = "privilege"
	reasonMount     reason = "mount"
	reasonOther     reason = "other"
)

var reasons = []reason{reasonPlatform, reasonBusy, reasonKernel, reasonPrivilege, reasonMount, reasonOther}

// problem is something that the profiler lacks, and the remedy.
type problem struct {
	reason  reason
	message string
}

// problems is everything that the profiler lacks, as one error.
type problems []problem

func (p problems) Error() string {
	messages := make([]string, len(p))
	for i, one := range p {
		messages[i] = one.message
	}
	return strings.Join(messages, "; ")
}

// reason returns the first reason that any problem has, in the order of reasons.
func (p problems) reason() reason {
	for _, r := range reasons {
		if slices.ContainsFunc(p, func(one problem) bool { return one.reason == r }) {
			return r
		}
	}
	return reasonOther
}
