// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
)

// IDs are the build ids of a file: the semantic conventions process.executable.build_id.gnu, .go and .htlhash.
// GNU and Htlhash are lower-case hexadecimal. An id that is not known is empty.
type IDs struct{ GNU, Go, Htlhash string }

// IsEmpty reports whether no id is known.
func (i IDs) IsEmpty() bool { return i == IDs{} }

// String returns the first id that is known.
func (i IDs) String() string { return cmp.Or(i.GNU, i.Go, i.Htlhash) }

// Matches reports whether a file is of the build that has the wanted ids: the program itself, or its debug file. Every
// GNU or Go id that is wanted must be the file's. The hash counts if none of these is wanted, since a debug file has
// the program's build id and a hash of its own.
func (m *Image) Matches(want IDs) bool {
	isSameBuild := false
	for _, pair := range [][2]string{{want.GNU, m.ids.GNU}, {want.Go, m.ids.Go}} {
		if pair[0] == "" {
			continue
		}
		if !strings.EqualFold(pair[0], pair[1]) {
			return false
		}
		isSameBuild = true
	}
	if isSameBuild || want.Htlhash == "" {
		return isSameBuild
	}
	hash, err := m.Htlhash()
	return err == nil && strings.EqualFold(hash, want.Htlhash)
}

// IDs returns the ids in the file's notes. Htlhash is computed by Image.Htlhash only.
func (m *Image) IDs() IDs { return m.ids }

// Htlhash hashes the file as the OpenTelemetry eBPF profiler does for process.executable.build_id.htlhash: the first
// 16 bytes of the SHA-256 of the first 4096 bytes, the last 4096 bytes, and the length as 8 bytes, most significant
// first.
func (m *Image) Htlhash() (string, error) {
	if m.ids.Htlhash != "" {
		return m.ids.Htlhash, nil
	}
	h := sha256.New()
	n := min(m.file.size, 4096)
	for _, off := range []int64{0, m.file.size - n} {
		if _, err := io.Copy(h, io.NewSectionReader(m.file.r, off, n)); err != nil {
			return "", err
		}
	}
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(m.file.size))
	h.Write(length[:])
	m.ids.Htlhash = hex.EncodeToString(h.Sum(nil)[:16])
	return m.ids.Htlhash, nil
}

const (
	noteGNUBuildID = 3
	noteGoBuildID  = 4
)

// readNotes reads the build ids in a note section or segment. The first of each kind is used.
func (m *Image) readNotes(off, size uint64) {
	if size > maxNoteBytes || off > uint64(m.file.size) {
		return
	}
	b, err := m.file.bytes(int64(off), int64(min(size, uint64(m.file.size)-off)))
	if err != nil {
		return
	}
	c := m.cursor(b)
	for !c.isAtEnd() {
		nameSize, descSize, kind := c.u32(), c.u32(), c.u32()
		name := c.next(int(min(nameSize, maxNoteBytes)))
		c.skip(uint64(-nameSize & 3))
		desc := c.next(int(min(descSize, maxNoteBytes)))
		if desc == nil {
			return
		}
		if pad := int(-descSize & 3); pad <= len(c.data)-c.off {
			c.off += pad
		}
		const maxID = 256
		switch {
		case len(desc) == 0 || len(desc) > maxID:
		case kind == noteGNUBuildID && string(name) == "GNU\x00" && m.ids.GNU == "":
			m.ids.GNU = hex.EncodeToString(desc)
		case kind == noteGoBuildID && string(name) == "Go\x00\x00" && m.ids.Go == "":
			m.ids.Go = string(desc)
		}
	}
}
