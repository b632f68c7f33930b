// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"path"
	"path/filepath"
	"strings"
)

// openDebugFile opens a module's debug file by its build id, in the debug directories of this host and of the processes
// that have the module mapped.
func (f *Finder) openDebugFile(m Module) (*SymbolFile, error) {
	id := m.IDs.GNU
	if !isHex(id) || len(id) < 4 {
		return nil, ErrNotFound
	}
	name := path.Join(".build-id", id[:2], id[2:]+".debug")
	s := f.search(m)
	for _, dir := range f.config.DebugDirectories {
		if o := s.try(openFile(dir, name)); o != nil {
			return o, nil
		}
		for _, pid := range m.PIDs {
			root := filepath.Join(f.processPath(pid), "root")
			if o := s.try(openFile(root, path.Join(dir, name))); o != nil {
				return o, nil
			}
		}
	}
	return nil, s.result()
}

// isHex reports whether s consists of lower-case hexadecimal digits. Only then can it be part of a path and of a URL.
func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }
