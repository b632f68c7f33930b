// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import "strings"

// IsSeriesAttribute reports whether a profile attribute distinguishes series: profiles with different values of it are
// not added up. Those of pprof's own header (comments, doc_url, drop_frames, keep_frames) describe one profile, and the
// temporality its values.
func IsSeriesAttribute(key string) bool {
	return key != TemporalityAttribute && !strings.HasPrefix(key, "pprof.profile.")
}
