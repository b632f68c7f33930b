// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhousetest

import (
	"bufio"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// Engine is ClickHouse's engine from npm. It answers one query at a time.
type Engine struct {
	input  io.Writer
	output *bufio.Reader
	// took is how long all queries took in the engine.
	took time.Duration
}

//go:embed app
var app embed.FS

// Install installs the engine from npm, if `make e2e-clickhouse` runs this, and returns its folder.
func Install(t testing.TB) string {
	t.Helper()
	folder, err := fs.Sub(app, "app")
	require.NoError(t, err)
	return collectortest.InstallNPM(t, "E2E_CLICKHOUSE", folder)
}

// StartEngine starts the engine that was installed in a folder. Files in queries are relative to dir.
func StartEngine(t testing.TB, app, dir string) *Engine {
	t.Helper()
	return startEngine(t, app, dir, filepath.Join(t.TempDir(), "data"))
}

// startEngine is StartEngine for a folder of tables.
func startEngine(t testing.TB, app, dir, data string) *Engine {
	t.Helper()
	node := exec.CommandContext(t.Context(), "node", filepath.Join(app, "engine.js"), data)
	node.Dir, node.Stderr = dir, os.Stderr
	input, err := node.StdinPipe()
	require.NoError(t, err)
	output, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = node.Wait()
	})
	return &Engine{input: input, output: bufio.NewReader(output)}
}

// Query answers a query in a format.
func (e *Engine) Query(sql, format string) ([]byte, error) {
	if err := json.NewEncoder(e.input).Encode(map[string]string{"sql": sql, "format": format}); err != nil {
		return nil, err
	}
	line, err := e.output.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data  []byte
		Error string
		Took  float64
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, err
	}
	e.took += time.Duration(answer.Took * float64(time.Millisecond))
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Data, nil
}
