// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// fakeTorch has the functions of PyTorch that docs/gpu.md calls. They write captured files.
const fakeTorch = `
import gzip, os, shutil, types
DATA = os.environ["TORCH_DATA"]
def write(name):
    def run(path):
        with gzip.open(os.path.join(DATA, name)) as source, open(path, "wb") as to:
            shutil.copyfileobj(source, to)
    return run
class profile:
    def __init__(self, schedule, on_trace_ready, with_stack):
        self.ready = on_trace_ready
    def start(self): pass
    def step(self): self.ready(types.SimpleNamespace(export_chrome_trace=write("torch-plain.json.gz")))
profiler = types.SimpleNamespace(profile=profile, schedule=lambda wait, warmup, active: None)
cuda = types.SimpleNamespace(memory=types.SimpleNamespace(
    _dump_snapshot=write("torch-memory.pickle.gz"), _record_memory_history=lambda max_entries, clear_history=False: None))
`

// JAX's device memory profile, as XLA writes it: a pprof without a time, of what is allocated now, with labels for the
// device and the kind.
func TestMemoryOfJAX(t *testing.T) {
	call := &profile.Function{ID: 1, Name: "__call__", Filename: "flax/linen/module.py"}
	at := &profile.Location{ID: 1, Line: []profile.Line{{Function: call, Line: 7}}}
	buffer := func(n, bytes int64, device string) *profile.Sample {
		return &profile.Sample{
			Location: []*profile.Location{at}, Value: []int64{n, bytes},
			Label: map[string][]string{"device": {device}, "kind": {"buffer"}},
		}
	}
	memory := profile.Profile{
		SampleType: []*profile.ValueType{{Type: "allocations", Unit: "count"}, {Type: "space", Unit: "bytes"}},
		Sample:     []*profile.Sample{buffer(3, 262144, "gpu:0"), buffer(1, 4096, "gpu:1")},
		Location:   []*profile.Location{at}, Function: []*profile.Function{call},
	}
	var body bytes.Buffer
	require.NoError(t, memory.Write(&body))
	f := startFixture(t, serverOnly)
	accepted(t, f.profilesURL(), body.Bytes())
	pd := f.Await(1)[0]
	text := profiletest.Render(pd)
	assert.Contains(t, text, "sample 262144 {device=\"gpu:0\", kind=\"buffer\"}\n        __call__ flax/linen/module.py:7")
	assert.Contains(t, text, "sample 3 {")
	for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		assert.Equal(t, kind.Gauge, kind.ValuesOfProfile(p, pd.Dictionary()), "what is allocated now is a state")
	}
}

// The Python of docs/gpu.md sends what PyTorch writes.
func TestPythonOfTheDocument(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	document := profiletest.FileBytes(t, "../../docs/gpu.md")
	program := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(document)
	require.NotNil(t, program)
	f := startFixture(t, serverOnly)
	text := strings.Replace(string(program[1]), "http://localhost:4040/v1/profiles", f.profilesURL(), 1)
	require.Contains(t, text, f.profilesURL())
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "torch.py"), []byte(fakeTorch), 0o600))
	main := filepath.Join(folder, "main.py")
	require.NoError(t, os.WriteFile(main, []byte(text+"\nprofiler.start()\nprofiler.step()\nsnapshot()\n"), 0o600))
	data, err := filepath.Abs("../../testdata/torch")
	require.NoError(t, err)
	command := exec.Command(python, main)
	command.Env = append(os.Environ(), "TORCH_DATA="+data, "RANK=3")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	got := f.Await(2)
	for i, want := range []string{"profile gpu_time in nanoseconds", "profile inuse_space in bytes"} {
		rendered := profiletest.Render(got[i])
		assert.Contains(t, rendered, want)
		assert.Contains(t, rendered, `service.instance.id="3"`)
	}
}
