// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver"
)

// filesIn lists the files below a folder.
func filesIn(t testing.TB, folder string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			relative, _ := filepath.Rel(folder, path)
			paths = append(paths, filepath.ToSlash(relative))
		}
		return err
	}))
	return paths
}

// A pprof is written equal to what was received, with all sample types in one file, and the receiver pprof reads the
// file.
func TestFilesRoundTrip(t *testing.T) {
	folder := t.TempDir()
	f := startExporter(t, folder, nil)
	wants := map[string]*profile.Profile{}
	for _, name := range []string{"go-cpu-labels", "go-heap", "go-goroutine", "node-datadog-wall-cpu",
		"cpp-unsymbolized"} {
		payload := profiletest.FileBytes(t, "../../testdata/pprof/"+name+".pb.gz")
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(t, err)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", name)
		f.send(pd)
		want := profiletest.ParsePprof(t, payload)
		wants[name] = want
	}
	paths := filesIn(t, folder)
	require.Len(t, paths, len(wants), "one file a pprof: %v", paths)
	assert.Regexp(t, `^go-heap/memory/20\d{6}T\d{6}\.\d{3}Z-[0-9a-f]{8}\.pb\.gz$`, paths[3])
	for _, path := range paths {
		data := profiletest.FileBytes(t, filepath.Join(folder, path))
		got := profiletest.ParsePprof(t, data)
		service, _, _ := strings.Cut(path, "/")
		assert.NoError(t, profiletest.EqualPprof(wants[service], got, profiletest.StrictZero(), profiletest.CanonicalLinks()),
			path)
	}

	factory := pprofreceiver.NewFactory().(xreceiver.Factory)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"file": map[string]any{
		"include": filepath.Join(folder, "**", "*.pb.gz"), "initial_delay": "0s",
	}}).Unmarshal(cfg))
	sink := &consumertest.ProfilesSink{}
	receiver, err := factory.CreateProfiles(t.Context(), receivertest.NewNopSettings(component.MustNewType("pprof")), cfg,
		sink)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(sink.AllProfiles()) == len(wants) }, 20*time.Second,
		20*time.Millisecond)
	require.NoError(t, receiver.Shutdown(context.Background()))
}

// pprof's tools lose sample types that share a name, as those of async-profiler's OTLP do. Types of another profile are
// in its file.
func TestTypesOfOneName(t *testing.T) {
	folder := t.TempDir()
	b := profiletest.New().Resource("service.name", "shop").Scope("", "")
	for _, typ := range [][2]string{{"off_cpu", "ns"}, {"itimer", "count"}, {"itimer", "ns"}, {"cpu", "ns"}} {
		b.Profile(typ[0], typ[1]).Time(1e18, 1e9).Sample(profiletest.Value(7, "leaf"))
	}
	startExporter(t, folder, nil).send(b.Build())
	paths, types := filesIn(t, folder), []string{}
	for _, path := range paths {
		data := profiletest.FileBytes(t, filepath.Join(folder, path))
		p := profiletest.ParsePprof(t, data)
		merged, err := profile.Merge([]*profile.Profile{p})
		require.NoError(t, err)
		of := map[string]bool{}
		for _, typ := range merged.SampleType {
			assert.False(t, of[typ.Type], "%s is twice in %s", typ.Type, path)
			of[typ.Type] = true
			assert.Equal(t, typ.Type == "off_cpu", strings.HasPrefix(path, "shop/off_cpu/"), "%s is in %s", typ.Type, path)
			types = append(types, typ.Type+"/"+typ.Unit)
		}
	}
	assert.ElementsMatch(t, []string{"off_cpu/ns", "itimer/count", "itimer/ns", "cpu/ns"}, types)
}

// Names are made safe, and different names stay different.
func TestFilesOfHostileNames(t *testing.T) {
	outside := t.TempDir()
	folder := filepath.Join(outside, "in")
	f := startExporter(t, folder, nil)
	names := []string{
		"../../etc/passwd", "..", ".", "/etc/passwd", `C:\windows`, "a/b", "a_b", "a\x00b", "con", "NUL.txt", "", "-rf",
		".hidden",
		strings.Repeat("long", 1000), "<script>", "ünï",
	}
	for _, name := range names {
		pd := small(name)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.instance.id", name)
		f.send(pd)
	}
	paths := filesIn(t, outside)
	assert.Len(t, paths, len(names), "%q", paths)
	for _, path := range paths {
		assert.Regexp(t, `^in/[A-Za-z0-9_-][A-Za-z0-9._-]*/process_cpu/[A-Za-z0-9._-]+\.pb\.gz$`, path)
		assert.NotRegexp(t, `(?i)/(con|nul)[/.]`, path)
	}
	// The same name twice is two files where they differ, and one where they do not.
	one := small("twice")
	f.send(one, one)
	other := profiletest.Clone(one)
	profiletest.SampleAt(other, 0).Values().SetAt(0, 77)
	f.send(other)
	assert.Len(t, filesIn(t, filepath.Join(folder, "twice")), 2)
}

// The oldest files are deleted by age and by size, and so are unfinished files of an earlier run. Other files stay.
func TestFilesAreBounded(t *testing.T) {
	folder := t.TempDir()
	put := func(name string, size int, age time.Duration) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		require.NoError(t, os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)))
	}
	put("shop/cpu/old-a.pb.gz", 10, 2*time.Hour)
	put("shop/cpu/large-a.pb.gz", 10_000, 30*time.Minute)
	put("shop/cpu/young-a.pb.gz", 100, time.Minute)
	put("notes.txt", 10, 100*time.Hour)
	put("other.pb.gz", 10, 100*time.Hour)
	put("shop/cpu/.writing-x.pb.gz", 10, time.Hour)
	f := startExporter(t, folder, map[string]any{"max_age": "1h", "max_bytes": 9000})
	f.send(small("shop"))
	paths := filesIn(t, folder)
	require.Len(t, paths, 4, "%q", paths)
	assert.Equal(t, []string{"notes.txt", "other.pb.gz", "shop/cpu/young-a.pb.gz"}, paths[:3])
	assert.Contains(t, paths[3], "shop/process_cpu/")
	f.files.expireAt(t.Context(), time.Now().Add(48*time.Hour))
	assert.Equal(t, []string{"notes.txt", "other.pb.gz"}, filesIn(t, folder))
	_, err := os.Stat(filepath.Join(folder, "shop"))
	assert.ErrorIs(t, err, fs.ErrNotExist, "an empty folder goes, too")
}

// While files cannot be written, the error is temporary and logged once.
func TestFilesAreRetried(t *testing.T) {
	folder := t.TempDir()
	f := startExporter(t, folder, nil)
	// A file where the folder should be: as permanent as a full disk, and it works for root, too.
	blocked := filepath.Join(folder, "shop")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	pd := small("shop")
	for range 3 {
		err := f.write(t.Context(), pd)
		require.Error(t, err)
		require.False(t, consumererror.IsPermanent(err))
	}
	assert.Len(t, f.logs.FilterMessageSnippet("cannot write pprof files").All(), 1)
	require.NoError(t, os.Remove(blocked))
	require.NoError(t, f.write(t.Context(), pd))
	assert.Len(t, f.logs.FilterMessageSnippet("are written again").All(), 1)
	assert.Len(t, filesIn(t, folder), 1)
}

// TestFolderIsReplaced has somebody remove the folder, with and without making it again, and move it away: files go to
// the one that the configuration names, and those in the old one no longer count.
func TestFolderIsReplaced(t *testing.T) {
	for name, replace := range map[string]func(folder string) error{
		"removed":  os.RemoveAll,
		"replaced": func(folder string) error { return errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)) },
		"moved":    func(folder string) error { return os.Rename(folder, folder+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "out")
			f := startExporter(t, folder, nil)
			f.send(small("a"))
			require.Len(t, filesIn(t, folder), 1)
			require.NoError(t, replace(folder))
			f.send(small("b"), small("c"))
			assert.Len(t, filesIn(t, folder), 2)
			assert.Len(t, f.logs.FilterMessageSnippet("was removed or moved").All(), 1)
		})
	}
}

// What cannot be written for one service keeps neither the others from being written, nor a retry from leaving those
// alone. A profile without a time has the time of its arrival in its name.
func TestOneServiceDoesNotBlockTheOthers(t *testing.T) {
	folder := t.TempDir()
	f := startExporter(t, folder, nil)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b"), nil, 0o600))
	build := profiletest.New()
	for _, service := range []string{"a", "b", "c"} {
		build.Resource("service.name", service).Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "f"))
	}
	pd := build.Build()
	ctx := context.WithValue(t.Context(), arrival{}, time.Now())
	for range 2 {
		require.Error(t, f.write(ctx, pd))
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(t, os.Remove(filepath.Join(folder, "b")))
	require.NoError(t, f.write(ctx, pd))
	for _, service := range []string{"a", "b", "c"} {
		assert.Len(t, filesIn(t, filepath.Join(folder, service)), 1, service)
	}
}

// Any number of different files can have one name.
func TestFilesOfOneName(t *testing.T) {
	folder, n := t.TempDir(), 1100
	f := startExporter(t, folder, map[string]any{"name": "{service.name}/{profile}.pb.gz"})
	build := profiletest.New().Resource("service.name", "shop")
	for i := range n {
		build.Profile("cpu", "nanoseconds").Time(uint64(i+1), 1).Sample(profiletest.Value(1, "f"))
	}
	pd := build.Resource("service.name", "other").Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "f")).Build()
	f.send(pd, pd)
	assert.Len(t, filesIn(t, filepath.Join(folder, "shop")), n)
	assert.Len(t, filesIn(t, filepath.Join(folder, "other")), 1)
	f.stop()
	again := startExporter(t, folder, map[string]any{"name": "{service.name}/{profile}.pb.gz"})
	again.files.expireAt(t.Context(), time.Now().Add(48*time.Hour))
	assert.Empty(t, filesIn(t, folder), "they are found again")
}

// A file system allows 255 bytes for a name, whatever has to fit in.
func TestLongNames(t *testing.T) {
	folder, long := t.TempDir(), strings.Repeat("long", 100)
	name := map[string]any{"name": "{service.namespace}-{service.name}-{profile}-{time}.pb.gz"}
	f := startExporter(t, folder, name)
	for _, namespace := range []string{"a", "b"} {
		pd := small(long)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.namespace", long+namespace)
		f.send(pd)
	}
	assert.Len(t, filesIn(t, folder), 2)
	f.stop()
	again := startExporter(t, folder, name)
	again.files.expireAt(t.Context(), time.Now().Add(48*time.Hour))
	assert.Empty(t, filesIn(t, folder), "they are found again")
}

// The cost of a message's files is bounded by its size, and by their number.
func TestFilesCostIsBounded(t *testing.T) {
	const size = 256 << 10
	text := strings.Repeat("x", size/2)
	var many []any
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("some.attribute.%d", i), "x")
	}
	build := func(n int, typ string, attributes ...any) *profiletest.Builder {
		b := profiletest.New().Resource(attributes...)
		for i := range n {
			b.Profile(typ, "count").Time(uint64(i+1), 1).Sample(profiletest.Value(1, "f"))
		}
		return b
	}
	resources := profiletest.New()
	for i := range 500 {
		resources.Resource("n", i).Profile("cpu", "count").Sample(profiletest.Value(1, "f"))
	}
	for name, pd := range map[string]pprofile.Profiles{
		"many attributes": build(500, "cpu", many...).Build(),
		"long attribute":  build(200, "cpu", "service.name", text).Build(),
		"long type":       build(200, text).Build(),
		"resources of one text": resources.Break(func(pd pprofile.Profiles) {
			pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("long", text)
			long, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("long")
			for _, rp := range pd.ResourceProfiles().All() {
				rp.Resource().Attributes().PutStr("long", long.Str())
			}
		}).Build(),
		"deep stack": build(1, "cpu").Sample(profiletest.Value(1, slices.Repeat([]string{"f"}, 10_000)...)).
			Break(func(pd pprofile.Profiles) {
				deep := profiletest.SampleAt(pd, 1)
				for i := range 5000 {
					sample := profiletest.ProfileAt(pd, 0).Samples().AppendEmpty()
					deep.CopyTo(sample)
					sample.Values().SetAt(0, int64(i))
				}
			}).Build(),
	} {
		t.Run(name, func(t *testing.T) {
			n := (&pprofile.ProtoMarshaler{}).ProfilesSize(pd)
			profiletest.RequireCostOfEach(t, profiletest.BoundOf(min(n, size), 32<<20, 200), func() func() {
				f := startExporter(t, t.TempDir(), nil)
				return func() { assert.NoError(t, f.files.writeAll(t.Context(), pd, time.Now())) }
			})
		})
	}
}

// Samples that a file cannot have are counted and logged.
func TestSamplesThatDoNotFitAreCounted(t *testing.T) {
	f := startExporter(t, t.TempDir(), nil)
	pd := small("shop", profiletest.Value(1, slices.Repeat([]string{"f"}, 10_000)...))
	for i := range 3000 {
		sample := profiletest.ProfileAt(pd, 0).Samples().AppendEmpty()
		profiletest.SampleAt(pd, 0).CopyTo(sample)
		sample.Values().SetAt(0, int64(i))
	}
	f.send(pd, pd)
	points, err := f.telemetry.GetMetric("otelcol_exporter_pprof_file_dropped_samples")
	require.NoError(t, err)
	point := points.Data.(metricdata.Sum[int64]).DataPoints[0]
	reason, _ := point.Attributes.Value("reason")
	assert.Equal(t, "too_large", reason.AsString())
	assert.Positive(t, point.Value)
	assert.Len(t, f.logs.FilterMessageSnippet("samples are missing in pprof files").All(), 1)
}

// A malformed sample is left out; the file has the others.
func TestMalformedSamplesCostOnlyThemselves(t *testing.T) {
	folder := t.TempDir()
	f := startExporter(t, folder, nil)
	pd := small("shop", profiletest.Value(1, "bad"), profiletest.Value(2, "good"))
	profiletest.SampleAt(pd, 0).SetStackIndex(99)
	f.send(pd)
	paths := filesIn(t, folder)
	require.Len(t, paths, 1)
	data := profiletest.FileBytes(t, filepath.Join(folder, paths[0]))
	back, _, err := decode.Decode(data, decode.Options{})
	require.NoError(t, err)
	assert.Equal(t, 1, back.SampleCount())
	assert.Len(t, f.logs.FilterMessageSnippet("samples are missing in pprof files").All(), 1)
}

// A message may have no dictionary at all.
func TestFilesWithoutADictionary(t *testing.T) {
	folder := t.TempDir()
	f := startExporter(t, folder, nil)
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().SetDurationNano(1)
	f.send(pd)
	assert.Len(t, filesIn(t, folder), 1)
}
