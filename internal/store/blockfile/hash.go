// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
)

// stackHash identifies a stack by its frames, in all blocks and on all machines: FNV-1a of 64 bits.
type stackHash struct{ hash.Hash64 }

func newStackHash() stackHash { return stackHash{fnv.New64a()} }

func (h stackHash) add(function, file, mapping string, number int64) {
	for _, s := range []string{function, file, mapping} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0xff}) // is not in UTF-8
	}
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(number)))
}

// String returns 16 hexadecimal digits.
func (h stackHash) String() string { return fmt.Sprintf("%016x", h.Sum64()) }
