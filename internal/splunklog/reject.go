// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import "fmt"

func reject(why Reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: why, Err: fmt.Errorf(format, args...)}
}

// short cuts what a sender wrote to a length that fits into a message.
func short(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
