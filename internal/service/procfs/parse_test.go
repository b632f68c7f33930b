// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	id  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	id2 = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	uid = "2f3a1b4c-0d9e-4f5a-8b6c-7d8e9f0a1b2c"
)

func TestParseCgroup(t *testing.T) {
	underscores := strings.ReplaceAll(uid, "-", "_")
	for _, test := range []struct {
		name, cgroup         string
		container, pod, unit string
	}{
		{"nothing", "0::/\n", "", "", ""},
		{"empty", "", "", "", ""},
		{"a service", "0::/system.slice/nginx.service\n", "", "", "nginx"},
		{"an instance", "0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n", "", "",
			"postgresql@15-main"},
		{"an escaped one", `0::/system.slice/a\x2db.service` + "\n", "", "", "a-b"},
		{"an odd escape", `0::/system.slice/a\x2.service` + "\n", "", "", `a\x2`},
		{"a group in a service", "0::/system.slice/a.service/workers/3\n", "", "", "a"},
		{"version 1", "12:memory:/system.slice/a.service\n1:name=systemd:/system.slice/b.service\n0::/\n", "", "", "b"},
		{"a session", "0::/user.slice/user-1000.slice/session-3.scope\n", "", "", ""},
		{"a user's service", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/sync.service\n", "", "", "sync"},
		{"a user's program", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-4711.scope\n", "",
			"", ""},
		{"a user's manager", "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "", ""},
		{"systemd-run", "0::/system.slice/run-u12.service\n", "", "", ""},
		{"systemd-run, newer", "0::/system.slice/run-p4711-i4712.service\n", "", "", ""},
		{"systemd-run, older", "0::/system.slice/run-r" + id[:32] + ".service\n", "", "", ""},
		{"no program of systemd-run's", "0::/system.slice/run-php8.service\n", "", "", "run-php8"},
		{"not systemd-run", "0::/system.slice/run-parts.service\n", "", "", "run-parts"},
		{"docker", "0::/system.slice/docker-" + id + ".scope\n", id, "", ""},
		{"docker, version 1", "4:memory:/docker/" + id + "\n0::/\n", id, "", ""},
		{"containerd", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + underscores +
			".slice/cri-containerd-" + id + ".scope\n", id, uid, ""},
		{"cgroupfs", "0::/kubepods/besteffort/pod" + uid + "/" + id + "\n", id, uid, ""},
		{"containerd's own form",
			"0::/system.slice/containerd.service/kubepods-pod" + underscores + ".slice:cri-containerd:" + id + "\n", id, uid,
			""},
		{"a static pod", "0::/kubepods/besteffort/pod" + id[:32] + "/" + id + "\n", id, "", ""},
		{"CRI-O", "0::/kubepods.slice/kubepods-pod" + underscores + ".slice/crio-" + id + ".scope/container\n", id, uid, ""},
		{"a monitor", "0::/machine.slice/libpod-conmon-" + id + ".scope\n", "", "", ""},
		{"ECS on Fargate", "1:name=systemd:/ecs/55091c13b8cf4801b9527f4601742204/55091c13b8cf4801b9527f4601742204-2495160603\n",
			"55091c13b8cf4801b9527f4601742204-2495160603", "", ""},
		{"ECS, a task", "0::/ecs/55091c13b8cf4801b9527f4601742204\n", "", "", ""},
		{"Cloud Foundry", "0::/system.slice/garden.service/garden/6f265890-5165-7fab-6b52-18d1\n",
			"6f265890-5165-7fab-6b52-18d1", "", ""},
		{"a container that is gone", "0::/docker/" + id + " (deleted)\n", id, "", ""},
		{"podman", "0::/machine.slice/libpod-" + id + ".scope/container\n", id, "", ""},
		{"systemd in a container", "0::/docker/" + id + "/system.slice/cron.service\n", id, "", ""},
		{"a container in a container", "0::/docker/" + id + "/kubepods/pod" + uid + "/" + id2 + "\n", id2, uid, ""},
		{"seen from another namespace", "0::/../../docker-" + id + ".scope\n", id, "", ""},
		{"another length", "0::/docker/" + id[1:] + "\n", "", "", ""},
		{"no id", "0::/docker/" + strings.Repeat("x", 64) + "\n", "", "", ""},
		{"colons in a path", "0::/a:b:c.service\n", "", "", "a:b:c"},
		{"garbage", "no fields\n:::\n\x00", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			container, pod, unit := parseCgroup([]byte(test.cgroup))
			assert.Equal(t, []string{test.container, test.pod, test.unit}, []string{container, pod, unit})
		})
	}
}

func TestParseStat(t *testing.T) {
	line := func(name string) string {
		return fmt.Sprintf("7 (%s) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1", name)
	}
	for _, name := range []string{"cat", ") (", "a b", "7 (x) S 1 2 3", "\n", ""} {
		got, flags, err := parseStat([]byte(line(name)))
		require.NoError(t, err)
		assert.Equal(t, name, got)
		assert.EqualValues(t, 4194560, flags)
	}
	_, flags, err := parseStat([]byte("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0"))
	require.NoError(t, err)
	assert.NotZero(t, flags&isKernelThread)
	for _, bad := range []string{"", "7", "7 (a)", line("a")[:18], strings.Replace(line("a"), "4194560", "x", 1)} {
		_, _, err := parseStat([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func TestParseEnvironment(t *testing.T) {
	for environ, want := range map[string][2]string{
		"": {},
		"A=1\x00OTEL_SERVICE_NAME=shop\x00B=2\x00":               {"shop", ""},
		"OTEL_SERVICE_NAME=a\x00OTEL_SERVICE_NAME=b\x00":         {"a", ""},
		"OTEL_RESOURCE_ATTRIBUTES=a=b\x00OTEL_SERVICE_NAME=\x00": {"", "a=b"},
		"XOTEL_SERVICE_NAME=a\x00OTEL_SERVICE_NAMES=b":           {},
	} {
		name, attributes := parseEnvironment([]byte(environ))
		assert.Equal(t, want, [2]string{name, attributes}, environ)
	}
}

func TestParseCommandLine(t *testing.T) {
	assert.Nil(t, parseCommandLine(nil))
	assert.Nil(t, parseCommandLine([]byte("\x00\x00")))
	assert.Equal(t, []string{"a", "", "b"}, parseCommandLine([]byte("a\x00\x00b\x00")))
	assert.Equal(t, []string{"nginx: worker process"}, parseCommandLine([]byte("nginx: worker process\x00\x00\x00\x00")))
}

// FuzzParse reads anything as each of the files, within bounds.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"stat", "cgroup", "cmdline", "environ"} {
		if own, err := os.ReadFile(filepath.Join("/proc/self", name)); err == nil {
			f.Add(own)
		}
	}
	f.Add([]byte("0::/kubepods/besteffort/pod" + uid + "/" + id + "\n"))
	f.Add([]byte(`0::/system.slice/a\x2db.service`))
	f.Add([]byte("7 (a)) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1"))
	f.Add([]byte("OTEL_SERVICE_NAME=shop\x00OTEL_RESOURCE_ATTRIBUTES=a=b\x00"))
	f.Add([]byte(strings.Repeat("/", 1000)))
	f.Fuzz(func(t *testing.T, content []byte) { requireBoundedParse(t, content) })
}

func requireBoundedParse(t testing.TB, content []byte) {
	var container, pod, unit string
	var arguments []string
	profiletest.RequireCost(t, profiletest.BoundOf(len(content), 4<<20, 64), func() {
		_, _, _ = parseStat(content)
		container, pod, unit = parseCgroup(content)
		arguments = parseCommandLine(content)
		_, _ = parseEnvironment(content)
	})
	require.LessOrEqual(t, len(arguments), len(content))
	require.Contains(t, []int{0, containerIDLen}, len(container))
	require.Contains(t, []int{0, podUIDLen}, len(pod))
	require.NotContains(t, unit, "\n")
}

func TestParsersAreBounded(t *testing.T) {
	const size = 1 << 20
	for name, piece := range map[string]string{
		"slashes": "/", "lines": "0::/\n", "fields": "1 ", "arguments": "a\x00", "zeros": "\x00", "escapes": `\x`,
		"parentheses": ")", "variables": "OTEL_SERVICE_NAME=\x00", "containers": "/" + id, "pods": "/pod", "dashes": "-",
	} {
		t.Run(name, func(t *testing.T) {
			requireBoundedParse(t, []byte(strings.Repeat(piece, size/len(piece))))
			requireBoundedParse(t, []byte("0::"+strings.Repeat(piece, size/len(piece))+".service\n"))
		})
	}
}
