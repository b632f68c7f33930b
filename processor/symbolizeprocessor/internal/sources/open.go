// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var errNotRegular = errors.New("not a regular file")

// openInRoot opens a regular file below a root with the standard library: symbolic links out of it are an error. With
// O_NONBLOCK, a pipe that was put in the file's place does not block the caller.
func openInRoot(root, name string) (*os.File, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	name = strings.TrimLeft(filepath.Clean("/"+name), "/")
	info, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, errNotRegular)
	}
	file, err := r.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	if again, err := file.Stat(); err != nil || !again.Mode().IsRegular() {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", name, errors.Join(err, errNotRegular))
	}
	return file, nil
}
