// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	runtimepprof "runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// fenced matches a fenced block of a Markdown page: its language, the rest of its first line, and its content.
var fenced = regexp.MustCompile("(?ms)^ *```(\\w+)(?: ([^\n]*))?\n(.*?)^ *```$")

// TestDocuments runs what the README, docs/ and the components' READMEs tell users to type, and validates the
// configurations in them. A block of commands is marked `run`, or `needs` and what a machine may not have; one of YAML
// `run`, or `over` the file that it is a part of. The blocks of a page are one script, and all pages share one
// collector, whose ports replace the usual ones. Nothing is built, and no further collector runs: make lists what it
// would do, and a configuration that would run is validated.
func TestDocuments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, page := range pages(t) {
		content := profiletest.FileBytes(t, filepath.Join(repository, page))
		var script strings.Builder
		for _, block := range fenced.FindAllStringSubmatch(string(content), -1) {
			language, mark, text := block[1], block[2], block[3]
			base, isPart := strings.CutPrefix(mark, "over ")
			switch {
			case language == "sh" && mark == "run":
				script.WriteString(text)
			case language == "sh":
				assert.Regexp(t, "^needs .", mark, "%s: a block of commands that is neither run nor says why\n%s", page, text)
			case language == "yaml" && mark == "run":
				requireValid(t, newFile(t, "config.yaml", []byte(text)))
			case language == "yaml" && isPart:
				requireValid(t, base, newFile(t, "config.yaml", []byte(text)))
			case language == "yaml" && filepath.Base(page) != page && !strings.HasPrefix(page, "docs"):
				// Each component tests its own.
			case language == "yaml":
				assert.Regexp(t, "^(part|of .+)$", mark, "%s: a configuration without a test or a reason\n%s", page, text)
			}
		}
		if script.Len() > 0 {
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				d.run(t, script.String())
			})
		}
	}
}

// pages returns the pages whose commands are for users: the README, those of docs/, and those of components.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{
		"*.md", "docs/*.md", "receiver/*/*.md", "receiver/*/docs/*.md", "processor/*/*.md", "exporter/*/*.md",
		"connector/*/*.md",
	} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		for _, path := range found {
			path, err = filepath.Rel(repository, path)
			require.NoError(t, err)
			paths = append(paths, path)
		}
	}
	return paths
}

// desk is where somebody who reads the documents types: a collector runs, a program serves net/http/pprof, and profiles
// of two versions of the service shop have arrived.
type desk struct {
	repository string
	ports      *strings.Replacer
	env        []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	c := launchWith(t, standaloneConfig, []string{"--config", "yaml:exporters::profile_store::mcp: {}"})
	program := http.NewServeMux()
	program.HandleFunc("/debug/pprof/profile", pprof.Profile)
	program.HandleFunc("/debug/pprof/trace", pprof.Trace)
	program.Handle("/debug/pprof/heap", pprof.Handler("heap"))
	server := httptest.NewServer(program)
	t.Cleanup(server.Close)
	root, err := filepath.Abs(repository)
	require.NoError(t, err)
	d := &desk{repository: root, ports: strings.NewReplacer("localhost:4040", c.endpoint, "localhost:4042", c.graphs,
		"localhost:4317", c.otlp, "localhost:4318", c.otlpHTTP, "localhost:6060", strings.TrimPrefix(server.URL, "http://"))}

	var cpu, heap bytes.Buffer
	require.NoError(t, runtimepprof.WriteHeapProfile(&heap))
	require.Eventually(t, func() bool { return runtimepprof.StartCPUProfile(&cpu) == nil }, time.Minute,
		50*time.Millisecond, "programs of other tests run in this process, and one at a time can be profiled")
	for end := profiletest.ProcessCPU() + 300*time.Millisecond; profiletest.ProcessCPU() < end; {
		_ = fmt.Sprint(time.Now())
	}
	runtimepprof.StopCPUProfile()
	for _, version := range []string{"1.0", "1.1"} {
		push := "http://" + c.endpoint + "/v1/pprof?service.name=shop&attr.region=eu&service.version=" + version
		requirePost(t, push, "application/octet-stream", cpu.Bytes())
		requirePost(t, push, "application/octet-stream", heap.Bytes())
	}

	commands := t.TempDir()
	realMake, err := exec.LookPath("make")
	require.NoError(t, err)
	for name, script := range map[string]string{
		"sudo": `exec env "$@"`,
		"make": `for a; do case $a in CONFIG=*) otelcol-profiles --config "${a#CONFIG=}";; esac; done
exec ` + realMake + ` -C "` + root + `" --dry-run "$@" >/dev/null`,
		"otelcol-profiles": `case $1 in --*) set -- validate "$@";; esac; exec "` + root + `/bin/otelcol-profiles" "$@"`,
		"profiletool":      `exec "` + root + `/bin/profiletool" "$@"`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(commands, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	curl := newFile(t, ".curlrc", []byte("fail\nsilent\nshow-error\n"))
	d.env = append(slices.Clone(freshMake), "PATH="+commands+":"+os.Getenv("PATH"), "CURL_HOME="+filepath.Dir(curl),
		"PPROF_TMPDIR="+t.TempDir())
	return d
}

// run runs a page's commands in a folder like a clone, with files of the names that pages use.
func (d *desk) run(t *testing.T, script string) {
	t.Helper()
	clone := t.TempDir()
	for _, name := range []string{"testdata", "docs", "cmd", "internal"} {
		require.NoError(t, os.Symlink(filepath.Join(d.repository, name), filepath.Join(clone, name)))
	}
	require.NoError(t, os.CopyFS(filepath.Join(clone, "config"), os.DirFS(filepath.Join(d.repository, "config"))))
	const prepare = `mkdir bin
for name in otelcol-profiles profiletool; do ln -s "$(command -v $name)" bin/$name; done
for name in cpu old new; do cp testdata/pprof/go-cpu-labels.pb.gz $name.pb.gz; done
profiletool convert -o otlp cpu.pb.gz > captured.otlp
cp captured.otlp cpu.otlp
for name in profiles before after; do profiletool convert -o otlp-json testdata/pprof/go-heap.pb.gz > $name.jsonl; done
echo 'main;work 12' > trace.folded
cp trace.folded out.folded
`
	out := requireRun(t, clone, d.env, "bash", "-euxo", "pipefail", "-c", prepare+d.ports.Replace(script))
	require.NotContains(t, out, `"isError":true`)
}
