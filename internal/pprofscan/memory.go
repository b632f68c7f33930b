// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofscan

import (
	"unsafe"
)

// MaxKeptBytes bounds the memory that stays in a pool after a payload: one that needs more is rare, and its memory
// goes back.
const MaxKeptBytes = 64 << 20

// BytesOf is what the memory of a slice takes.
func BytesOf[T any](s []T) int {
	var element T
	return cap(s) * int(unsafe.Sizeof(element))
}
