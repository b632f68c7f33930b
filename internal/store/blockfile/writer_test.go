// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that cannot be created, as without descriptors or room, is an error of the block.
func TestIndexThatCannotBeCreated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "block")
	w, err := Create(dir, "block")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	_, err = w.Close(0)
	require.ErrorIs(t, err, os.ErrNotExist)
}
