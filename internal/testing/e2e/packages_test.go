// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestPackages installs, upgrades, removes and purges the packages with dpkg in a fresh Debian, and with rpm as far as
// Debian's rpm goes. It needs root, debootstrap, rpm and a mirror, hence only `make e2e-packages` runs it.
func TestPackages(t *testing.T) {
	collectortest.WantedBy(t, "E2E_PACKAGES")
	for _, tool := range []string{"debootstrap", "dpkg", "rpm"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "on Debian: apt-get install -y --no-install-recommends debootstrap rpm")
	}
	packages := t.TempDir()
	for _, version := range []string{"0.1.0", "0.1.1"} {
		requireRun(t, repository, freshMake, "make", "packages", "VERSION="+version)
		files, err := filepath.Glob(filepath.Join(repository, "bin", "packages", "*"))
		require.NoError(t, err)
		require.Len(t, files, 6, "two packages in three formats")
		for _, file := range files {
			require.NoError(t, os.Rename(file, filepath.Join(packages, filepath.Base(file))))
		}
	}
	base := filepath.Join(t.TempDir(), "base")
	requireRun(t, repository, nil, "debootstrap", "--variant=minbase", "bookworm", base, "http://deb.debian.org/debian")

	t.Run("deb", func(t *testing.T) {
		root := debian{t, copyOf(t, base)}
		root.dpkg("--install", packages+"/otelcol-profiles_0.1.0_amd64.deb", packages+"/profiletool_0.1.0_amd64.deb")
		root.requireInstalled()
		edited := root.edit()

		root.dpkg("--install", packages+"/otelcol-profiles_0.1.1_amd64.deb", packages+"/profiletool_0.1.1_amd64.deb")
		require.Equal(t, edited, root.read("etc/otelcol-profiles/config.yaml"), "an upgrade keeps the configuration")
		require.Contains(t, root.sh("profiletool --version"), "0.1.1")

		root.dpkg("--remove", "otelcol-profiles", "profiletool")
		require.NoFileExists(t, root.path("usr/bin/otelcol-profiles"))
		require.NoFileExists(t, root.path("usr/bin/profiletool"))
		require.Equal(t, edited, root.read("etc/otelcol-profiles/config.yaml"), "a removal keeps the configuration")
		require.FileExists(t, root.path("var/lib/otelcol-profiles/queue"), "and the state")

		root.dpkg("--purge", "otelcol-profiles", "profiletool")
		require.NoDirExists(t, root.path("etc/otelcol-profiles"))
		require.NoDirExists(t, root.path("var/lib/otelcol-profiles"))
		require.NotContains(t, root.read("etc/passwd"), "otelcol-profiles")
	})

	t.Run("rpm", func(t *testing.T) {
		root := debian{t, copyOf(t, base)}
		rpm := func(args ...string) { // Debian's dependencies are not in rpm's database
			requireRun(t, repository, nil, "rpm", append([]string{"--root", root.folder, "--nodeps"}, args...)...)
		}
		rpm("--install", packages+"/otelcol-profiles-0.1.0-1.x86_64.rpm", packages+"/profiletool-0.1.0-1.x86_64.rpm")
		root.requireInstalled()
		edited := root.edit()

		rpm("--upgrade", packages+"/otelcol-profiles-0.1.1-1.x86_64.rpm", packages+"/profiletool-0.1.1-1.x86_64.rpm")
		require.Equal(t, edited, root.read("etc/otelcol-profiles/config.yaml"), "an upgrade keeps the configuration")
		require.Contains(t, root.sh("profiletool --version"), "0.1.1")

		rpm("--erase", "otelcol-profiles", "profiletool")
		require.NoFileExists(t, root.path("usr/bin/otelcol-profiles"))
		require.Equal(t, edited, root.read("etc/otelcol-profiles/config.yaml.rpmsave"), "a removal keeps what was edited")
		require.FileExists(t, root.path("var/lib/otelcol-profiles/queue"))
	})

	t.Run("apk", func(t *testing.T) {
		listing := requireRun(t, packages, nil, "tar", "--warning=no-unknown-keyword", "-tzf",
			"otelcol-profiles_0.1.0_x86_64.apk")
		for _, name := range []string{".PKGINFO", ".pre-install", ".post-install", "usr/bin/otelcol-profiles",
			"etc/otelcol-profiles/config.yaml"} {
			require.Contains(t, strings.Fields(listing), name)
		}
	})
}

// debian is the root of a Debian without a running system.
type debian struct {
	t      *testing.T
	folder string
}

// copyOf copies the root, so that each kind of package begins with a clean one.
func copyOf(t *testing.T, base string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "root")
	requireRun(t, repository, nil, "cp", "-a", base, folder)
	return folder
}

func (d debian) path(name string) string { return filepath.Join(d.folder, name) }

func (d debian) read(name string) string {
	d.t.Helper()
	content, err := os.ReadFile(d.path(name))
	require.NoError(d.t, err)
	return string(content)
}

// sh runs a command inside.
func (d debian) sh(command string) string {
	d.t.Helper()
	return requireRun(d.t, repository, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, "chroot", d.folder, "sh", "-c",
		command)
}

// dpkg runs inside: files are handed over in a folder that is visible there.
func (d debian) dpkg(action string, args ...string) {
	d.t.Helper()
	for i, arg := range args {
		if strings.HasSuffix(arg, ".deb") {
			requireRun(d.t, repository, nil, "cp", arg, d.path("tmp"))
			args[i] = "/tmp/" + filepath.Base(arg)
		}
	}
	d.sh("DEBIAN_FRONTEND=noninteractive dpkg " + action + " " + strings.Join(args, " "))
}

// requireInstalled looks at everything that an installation brings, and runs the configuration's check as the service's
// user.
func (d debian) requireInstalled() {
	d.t.Helper()
	require.Contains(d.t, d.read("etc/passwd"), "otelcol-profiles:")
	require.Equal(d.t, "640 root otelcol-profiles", d.sh("stat -c '%a %U %G' /etc/otelcol-profiles/environment"))
	unit := d.read("usr/lib/systemd/system/otelcol-profiles.service")
	require.Contains(d.t, unit, "\nUser=otelcol-profiles\n")
	require.Contains(d.t, unit, "\nStateDirectory=otelcol-profiles\n")
	require.Contains(d.t, unit, "\nExecStart=/usr/bin/otelcol-profiles --config /etc/otelcol-profiles/config.yaml\n")
	require.NotContains(d.t, unit, "DynamicUser=yes")
	// systemd makes the state's folder.
	d.sh("install -d -o otelcol-profiles /var/lib/otelcol-profiles && touch /var/lib/otelcol-profiles/queue")
	d.sh("cd /var/lib/otelcol-profiles && setpriv --reuid otelcol-profiles --regid otelcol-profiles --clear-groups" +
		" otelcol-profiles validate --config /etc/otelcol-profiles/config.yaml")
	require.Contains(d.t, d.sh("profiletool --version"), "0.1.0")
}

// edit changes the configuration as an administrator would, and returns it.
func (d debian) edit() string {
	d.t.Helper()
	edited := d.read("etc/otelcol-profiles/config.yaml") + "# changed here\n"
	require.NoError(d.t, os.WriteFile(d.path("etc/otelcol-profiles/config.yaml"), []byte(edited), 0o644))
	return edited
}
