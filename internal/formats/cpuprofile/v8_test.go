// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The first delta is not between two samples.
func TestFirstDelta(t *testing.T) {
	for deltas, want := range map[string]string{
		"300000,1000,1000,1000": "period 1000000 cpu",
		"0,1000,1000,1000":      "period 1000000 cpu",
		"500,3000,-1000,1000":   "period 1000000 cpu", // Chrome's samples can be out of order
		"250":                   "period 0 cpu",       // all samples at one time
	} {
		text := `{"startTime":1764212400000000,"endTime":1764212400303000,` + nodes + `,"samples":[4,5,5,4],"timeDeltas":[` +
			deltas + `]}`
		pd, stats, err := Decode([]byte(text), events.Options{})
		require.NoError(t, err)
		assert.Equal(t, 4, stats.Events)
		assert.Contains(t, profiletest.Render(pd), want, deltas)
	}
}

// 0 is an id, of a node and of a parent.
func TestIDsFromZero(t *testing.T) {
	for _, nodes := range []string{
		`[{"id":0,"callFrame":{"functionName":"main"},"children":[1]},{"id":1,"callFrame":{"functionName":"update"}}]`,
		`[{"id":1,"parent":0,"callFrame":{"functionName":"update"}},{"id":0,"callFrame":{"functionName":"main"}}]`,
	} {
		pd, stats, err := Decode([]byte(`{"nodes":`+nodes+
			`,"samples":[0,1,1,1],"timeDeltas":[0,1,1,1],"startTime":1764212400000000}`), events.Options{})
		require.NoError(t, err)
		assert.Equal(t, events.Stats{Events: 4}, stats)
		text := profiletest.Render(pd)
		assert.Contains(t, text, "@1764212400000000000\n        main\n")
		assert.Contains(t, text,
			"@1764212400000001000 @1764212400000002000 @1764212400000003000\n        update\n        main\n")
	}
}

// Chrome up to 57 has a tree in the file.
func TestOldChrome(t *testing.T) {
	pd, stats, err := Decode([]byte(`{"typeId":"CPU","uid":"1","head":{"functionName":"(root)","url":"","lineNumber":0,"id":1,"children":[
		{"functionName":"f","url":"a.js","lineNumber":3,"columnNumber":5,"hitCount":2,"id":2,"children":[{"id":3,"functionName":"g","children":[]}]}]},
		"startTime":1764212400,"endTime":1764212401,"samples":[2,3,2],"timestamps":[1764212400100000,1764212400101000,1764212400102000]}`), events.Options{})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Equal(t, events.Stats{Events: 3}, stats)
	text := profiletest.Render(pd)
	assert.Contains(t, text, "period 1000000 cpu")
	assert.Contains(t, text, "sample @1764212400100000000 @1764212400102000000\n        f from line 3 a.js:3:5\n")
	assert.Contains(t, text, "sample @1764212400101000000\n        g\n        f from line 3 a.js:3:5\n")
}

// A profile can have counts at its nodes in place of samples.
func TestHitCounts(t *testing.T) {
	pd, stats, err := Decode([]byte(`{"startTime":1764212400000000,"endTime":1764212400005000,"nodes":[
		{"id":1,"callFrame":{"functionName":"f"},"hitCount":3,"children":[2,3]},{"id":2,"callFrame":{"functionName":"g"},"hitCount":1},
		{"id":3,"callFrame":{"functionName":"(idle)"},"hitCount":1}]}`), events.Options{Anchor: guess})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Equal(t, events.Stats{Events: 2, Filtered: 1}, stats)
	text := profiletest.Render(pd)
	assert.Contains(t, text,
		"      time 1764212400000000000 ns\n      duration 5000001 ns\n      period 1000000 cpu in nanoseconds\n")
	assert.Contains(t, text, "      sample 3\n        f\n      sample 1\n        g\n        f\n")
}

// The bytes of a heap profile are those of the functions that allocated them. The inspector answers with a profile in
// an object.
func TestHeapProfile(t *testing.T) {
	text := `{"profile":{"head":{"callFrame":{"functionName":"(root)","lineNumber":-1,"columnNumber":-1},"selfSize":10,"id":1,"children":[
		{"callFrame":{"functionName":"load","url":"a.js","lineNumber":2,"columnNumber":4},"selfSize":0,"id":2,"children":[
		 {"callFrame":{"functionName":"parse","url":"a.js","lineNumber":7},"selfSize":4096.5,"id":3,"children":[]}]}]},
		"samples":[{"size":4096,"nodeId":3,"ordinal":1}]}}`
	pd, stats, err := Decode([]byte(text), events.Options{Anchor: guess})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Equal(t, events.Stats{Events: 2, GuessedClock: true}, stats)
	got := profiletest.Render(pd)
	assert.Contains(t, got, "profile inuse_space in bytes\n      time "+fmt.Sprint(ended.UnixNano())+" ns\n")
	assert.Contains(t, got,
		"      sample 10\n      sample 4096\n        parse from line 8 a.js:8\n        load from line 3 a.js:3:5\n")
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]error{
		`{"a":[1]}`: ErrNotProfile,
		`{"head":` + strings.Repeat(`{"children":[`, 600) + strings.Repeat("]}", 600) + "}": errDeep,
	} {
		_, _, err := Decode([]byte(text), events.Options{})
		assert.ErrorIs(t, err, want, "%.40s", text)
	}
}

const program = `
globalThis.kept = [];
function allocate() { for (let i = 0; i < 2000; i++) kept.push(new Array(1000).fill(i)); }
function compute() { let sum = 0; for (let i = 0; i < 3e7; i++) sum += i % 7; return sum; }
allocate();
for (let i = 0; i < 4; i++) compute();
`

// node of this machine records a program. The sums are those of its JSON.
func TestNodeOfThisMachine(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		profiletest.SkipOutsideCI(t, "there is no node")
	}
	folder := t.TempDir()
	script := filepath.Join(folder, "program.js")
	require.NoError(t, os.WriteFile(script, []byte(program), 0o600))
	cmd := exec.Command(node, "--cpu-prof", "--cpu-prof-name=a.cpuprofile", "--heap-prof",
		"--heap-prof-name=a.heapprofile", script)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)

	data := profiletest.FileBytes(t, filepath.Join(folder, "a.cpuprofile"))
	var file struct{ Samples, TimeDeltas []int64 }
	require.NoError(t, json.Unmarshal(data, &file))
	options := events.Options{Anchor: events.Anchor{EndNanos: uint64(time.Now().UnixNano()), Guess: "arrival"}}
	pd, stats, err := Decode(data, options)
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	assert.Equal(t, len(file.Samples), stats.Events+stats.Filtered)
	length := int64(0)
	for _, delta := range file.TimeDeltas[1:] {
		length += delta
	}
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	assert.InDelta(t, length*1000, p.Period()*int64(len(file.Samples)-1), float64(len(file.Samples)))
	assert.Contains(t, profiletest.Render(pd), "compute from line 4 ")

	data = profiletest.FileBytes(t, filepath.Join(folder, "a.heapprofile"))
	pd, _, err = Decode(data, options)
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	sum := int64(0)
	for _, s := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
		sum += s.Values().At(0)
	}
	assert.Equal(t, sizes(t, data), sum)
	assert.Contains(t, profiletest.Render(pd), "\n        allocate")
}

// sizes sums what a heap profile states, of the nodes.
func sizes(t *testing.T, data []byte) (sum int64) {
	t.Helper()
	type node struct {
		SelfSize float64
		Children []json.RawMessage
	}
	var file struct{ Head json.RawMessage }
	require.NoError(t, json.Unmarshal(data, &file))
	for left := []json.RawMessage{file.Head}; len(left) > 0; left = left[1:] {
		var n node
		require.NoError(t, json.Unmarshal(left[0], &n))
		sum += int64(n.SelfSize)
		left = append(left, n.Children...)
	}
	return sum
}
