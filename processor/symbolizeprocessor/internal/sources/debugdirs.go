// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// openDebugFile opens a module's debug file in a debug directory: by its build id, of this host and of the processes that
// have the module mapped.
func (f *Finder) openDebugFile(m Module) (*Opened, error) {
	id := m.IDs.GNU
	if !isHex(id) || len(id) < 4 {
		return nil, ErrNotFound
	}
	name := path.Join(".build-id", id[:2], id[2:]+".debug")
	var s search
	for _, dir := range f.settings.DebugDirectories {
		if o := f.try(&s, m, func() (*os.File, error) { return openFile(dir, name) }); o != nil {
			return o, nil
		}
		for _, pid := range m.PIDs {
			root := filepath.Join(f.settings.ProcPath, strconv.FormatInt(pid, 10), "root")
			if o := f.try(&s, m, func() (*os.File, error) { return openFile(root, path.Join(dir, name)) }); o != nil {
				return o, nil
			}
		}
	}
	return nil, s.result()
}

// isHex reports whether s has lower-case hexadecimal digits alone: it becomes part of a path and of a URL.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}
