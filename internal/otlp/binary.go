// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import "strings"

// CanBeMainBinary reports whether a mapping's file can be the main binary of a process: it is neither a shared library
// nor what the kernel and profilers name in brackets, such as [vdso].
func CanBeMainBinary(file string) bool {
	base := file[strings.LastIndexAny(file, `/\`)+1:]
	return base != "" && base[0] != '[' && !strings.HasSuffix(base, ".so") && !strings.Contains(base, ".so.") &&
		!strings.HasSuffix(base, ".dylib") && !strings.HasSuffix(strings.ToLower(base), ".dll")
}
