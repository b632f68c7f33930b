// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compose has the test of the compose file in this folder.
package compose

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var root = filepath.Join("..", "..")

// project is what the test reads of a compose file.
type project struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context string }
		Environment map[string]string
		Ports       []struct {
			HostIP    string `json:"host_ip"`
			Target    int
			Published string
		}
		Volumes  []struct{ Type, Source, Target string }
		ReadOnly bool     `json:"read_only"`
		CapDrop  []string `json:"cap_drop"`
	}
}

// load lets the library of the compose specification read a file. It returns what is wrong with it, or nothing.
func load(t *testing.T, file string) (project, string) {
	t.Helper()
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "internal", "build", "tools", "compose"),
		"run", ".", file)
	var problem bytes.Buffer
	command.Stderr = &problem
	out, err := command.Output()
	var p project
	if err == nil {
		require.NoError(t, json.Unmarshal(out, &p))
		return p, ""
	}
	return p, problem.String()
}

// TestCompose checks the file by the schema of the compose specification, and compares it with what it refers to.
func TestCompose(t *testing.T) {
	t.Setenv("EXPORTERS", "")
	p, problem := load(t, "compose.yaml")
	require.Empty(t, problem)
	collector := p.Services["collector"]

	builder := profiletest.FileBytes(t, filepath.Join(root, "builder-config.yaml"))
	require.Equal(t, "otelcol-profiles:"+regexp.MustCompile(`\n  version: (.*)`).FindStringSubmatch(string(builder))[1],
		collector.Image)
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	require.Equal(t, absolute, collector.Build.Context)

	// Every variable is one of the configuration that the image runs, and every port one that it listens on.
	image := profiletest.FileBytes(t, filepath.Join(root, "Dockerfile"))
	require.Contains(t, string(image), "COPY config/standalone.yaml /etc/otelcol-profiles/config.yaml")
	config := profiletest.FileBytes(t, filepath.Join(root, "config", "standalone.yaml"))
	for name := range collector.Environment {
		require.Contains(t, string(config), "${env:"+name+":-")
	}
	for _, port := range collector.Ports {
		require.Regexp(t, `_ENDPOINT:-localhost:`+port.Published+`\}`, string(config))
		require.Equal(t, "127.0.0.1", port.HostIP, "profiles are confidential")
	}
	require.True(t, collector.ReadOnly)
	require.Equal(t, []string{"ALL"}, collector.CapDrop)
	for _, service := range p.Services {
		for _, volume := range service.Volumes {
			if volume.Type == "bind" {
				require.DirExists(t, volume.Source)
			}
		}
	}

	require.Equal(t, "http://collector"+collector.Environment["PAGE_ENDPOINT"],
		p.Services["grafana"].Environment["PROFILES_URL"])

	content := profiletest.FileBytes(t, filepath.Join("targets", "shop.yaml"))
	var groups []struct{ Targets []string }
	require.NoError(t, yaml.Unmarshal(content, &groups))
	host, port, err := net.SplitHostPort(groups[0].Targets[0])
	require.NoError(t, err)
	require.Equal(t, ":"+port, p.Services[host].Environment["LISTEN"])

	text := profiletest.FileBytes(t, "compose.yaml")
	broken := filepath.Join(t.TempDir(), "compose.yaml")
	require.NoError(t, os.WriteFile(broken, bytes.Replace(text, []byte("cap_drop:"), []byte("cap_drops:"), 1), 0o600))
	_, problem = load(t, broken)
	require.Contains(t, problem, "cap_drops")
}
