// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// hardened are the flags with which the image should run: without capabilities or a way to get them, and with nothing
// to write to but its volume. The ulimits make it work in a container, too.
var hardened = []string{
	"--runtime=runc", "--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--memory=256m",
	"--read-only", "--read-only-tmpfs=false", "--cap-drop=ALL", "--security-opt=no-new-privileges",
}

// TestImage builds the container image as a user does, but from local images alone, and runs it hardened: it accepts a
// profile, and ends in order. It needs root and podman, hence only `make e2e-image` runs it.
func TestImage(t *testing.T) {
	collectortest.WantedBy(t, "E2E_IMAGE")
	for _, tool := range []string{"podman", "runc", "busybox"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err,
			"on Debian: apt-get install -y --no-install-recommends podman buildah runc busybox-static ca-certificates")
	}
	image := fmt.Sprintf("localhost/otelcol-profiles-test:%d", os.Getpid())
	from := goImage(t)
	buildImage(t, image, from)

	described := imageConfig(t, image)
	require.Equal(t, "65532:65532", described.User)
	require.Equal(t, "1.2.3-test", described.Labels["org.opencontainers.image.version"])
	require.Equal(t, "0123456789abcdef", described.Labels["org.opencontainers.image.revision"])

	c := startContainer(t, image)
	c.requirePush(t, "contained", capturedPayloads(t)["go-cpu-labels.pb.gz"])
	require.Eventually(t, func() bool {
		body, err := get("http://" + c.graphs + "/api/services")
		require.NoError(t, err)
		return strings.Contains(body, `"contained"`)
	}, startTimeout, 100*time.Millisecond, "the profile is on the page")
	require.Contains(t, c.logs(t), `"total_memory_mib": 256, "limit_percentage": 80`,
		"memory_limiter knows the container's limit")
	c.requireHardened(t)

	podman(t, "stop", "--time=60", c.name)
	require.Equal(t, "0", podman(t, "inspect", "--format={{.State.ExitCode}}", c.name), "it ended by SIGTERM, in order")
	require.Contains(t, c.logs(t), "Shutdown complete.")
	run := []string{"--runtime", "runc", "run", "--rm", "--network=host", "--ulimit", "nofile=1024:1024", "--ulimit",
		"nproc=1024:1024"}
	require.Equal(t, "profiletool version 1.2.3-test",
		podman(t, append(run, "--entrypoint", "/profiletool", image, "--version")...))

	slim := image + "-slim"
	buildImage(t, slim, from, "SLIM=1")
	require.Contains(t, podman(t, append(run, slim, "--help")...), "This is the slim build")
	podman(t, append(run, slim, "validate", "--config", "/etc/otelcol-profiles/agent.yaml")...)
	t.Logf("podman run %s %s\n%s\n%s", strings.Join(hardened, " "), image, podman(t, "images", "--noheading", image),
		podman(t, "images", "--noheading", slim))
}

// TestBaseImagesArePinned checks that the Dockerfile names every image by its digest.
func TestBaseImagesArePinned(t *testing.T) {
	text := profiletest.FileBytes(t, filepath.Join(repository, "Dockerfile"))
	images := regexp.MustCompile(`(?m)^ARG [A-Z_]*IMAGE=(.*)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, images, 2)
	for _, image := range images {
		require.Regexp(t, `^(scratch|.+@sha256:[0-9a-f]{64})$`, image[1])
	}
	for _, from := range regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).
		FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, []string{"${GO_IMAGE}", "${BASE_IMAGE}"}, from[1])
	}
}

// TestImageHasTheSources checks that .dockerignore leaves every package of both binaries to the build of the image.
func TestImageHasTheSources(t *testing.T) {
	t.Parallel()
	text := profiletest.FileBytes(t, filepath.Join(repository, ".dockerignore"))
	rules := strings.Fields(regexp.MustCompile(`(?m)^#.*`).ReplaceAllString(string(text), ""))
	var list string
	for _, program := range []string{"otelcol-profiles", "profiletool"} {
		list += requireRun(t, filepath.Join(repository, "cmd", program), nil, "go", "list", "-deps", "-f", "{{.ImportPath}}",
			".") + "\n"
	}
	packages := 0
	for line := range strings.Lines(list) {
		folder, isOurs := strings.CutPrefix(strings.TrimSpace(line), "github.com/otelcol-profiles/otelcol-profiles/")
		if !isOurs {
			continue
		}
		packages++
		isIn := false
		for _, rule := range rules {
			path, isBack := strings.CutPrefix(rule, "!")
			if path == "*" || strings.HasPrefix(folder+"/", path+"/") {
				isIn = isBack
			}
		}
		require.True(t, isIn, "%s is missing in the image's build: see .dockerignore", folder)
	}
	require.Greater(t, packages, 40)
}

// goImage makes an image of this machine's Go toolchain and certificates, and of a shell.
func goImage(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"bin", "tmp", "usr/local", "etc/ssl/certs"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	busybox, err := exec.LookPath("busybox")
	require.NoError(t, err)
	requireRun(t, root, nil, "cp", busybox, "bin/busybox")
	for _, applet := range []string{"sh", "mkdir"} {
		require.NoError(t, os.Symlink("busybox", filepath.Join(root, "bin", applet)))
	}
	requireRun(t, root, nil, "cp", "-a", requireRun(t, ".", nil, "go", "env", "GOROOT"), "usr/local/go")
	requireRun(t, root, nil, "cp", "-L", "/etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/")
	name := fmt.Sprintf("localhost/golang-test:%d", os.Getpid())
	requireRun(t, root, nil, "sh", "-c", "tar -c . | podman import --quiet -c 'ENV PATH=/usr/local/go/bin:/bin' - "+name)
	t.Cleanup(func() { podman(t, "rmi", "--force", name) })
	return name
}

// buildImage runs `make image` with further variables, and with this machine's caches of modules and compiled packages.
func buildImage(t *testing.T, image, from string, variables ...string) {
	t.Helper()
	modules := requireRun(t, ".", nil, "go", "env", "GOMODCACHE")
	compiled := requireRun(t, ".", nil, "go", "env", "GOCACHE")
	requireRun(t, repository, append(freshMake, "BUILDAH_ISOLATION=chroot"), "make",
		append(variables, "--no-print-directory", "image",
			"IMAGE_TOOL=podman", "IMAGE="+image, "VERSION=1.2.3-test", "REVISION=0123456789abcdef",
			"IMAGE_FLAGS=--pull=never --layers=false --build-arg=GO_IMAGE="+from+
				" --build-arg=GOPROXY=off --build-arg=GOMODCACHE=/host/modules --build-arg=GOCACHE=/host/compiled"+
				" --volume="+modules+":/host/modules:ro --volume="+compiled+":/host/compiled")...)
	t.Cleanup(func() { podman(t, "rmi", "--force", image) })
}

func podman(t *testing.T, args ...string) string {
	t.Helper()
	return requireRun(t, ".", nil, "podman", args...)
}

type description struct {
	User   string
	Labels map[string]string
}

func imageConfig(t *testing.T, image string) (d description) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(podman(t, "image", "inspect", "--format={{json .Config}}", image)), &d))
	return d
}

// container is a collector in a container, with the image's own configuration.
type container struct {
	*collector
	name string
}

func startContainer(t *testing.T, image string) *container {
	t.Helper()
	c := &container{collector: &collector{}, name: fmt.Sprintf("otelcol-profiles-test-%d", os.Getpid())}
	args := append([]string{"run", "--detach", "--name=" + c.name}, hardened...)
	for _, variable := range append(c.setAddresses(t), "METRICS_HOST=localhost") {
		args = append(args, "--env="+variable)
	}
	podman(t, append(args, image)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the container's log:\n%s", c.logs(t))
		}
		podman(t, "rm", "--force", "--volumes", c.name)
	})
	c.requireHealthy(t)
	return c
}

func (c *container) logs(t *testing.T) string { return podman(t, "logs", c.name) }

// requireHardened checks the user, the capabilities and the mounts of the process in /proc of this machine.
func (c *container) requireHardened(t *testing.T) {
	t.Helper()
	process := "/proc/" + podman(t, "inspect", "--format={{.State.Pid}}", c.name)
	status := profiletest.FileBytes(t, process+"/status")
	for name, want := range map[string]string{
		"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532", "NoNewPrivs": "1",
		"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapBnd": "0000000000000000",
	} {
		_, rest, found := strings.Cut(string(status), "\n"+name+":")
		require.True(t, found, name)
		line, _, _ := strings.Cut(rest, "\n")
		require.Equal(t, want, strings.Join(strings.Fields(line), " "), name)
	}
	mounts := profiletest.FileBytes(t, process+"/mounts")
	require.Regexp(t, `(?m)^\S+ / \S+ ro,`, string(mounts))
	require.Regexp(t, `(?m)^\S+ /var/lib/otelcol-profiles \S+ rw,`, string(mounts))
	for line := range strings.Lines(string(mounts)) {
		require.NotContains(t, line, " /tmp ")
	}
}
