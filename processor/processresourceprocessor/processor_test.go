// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/servicename"
)

const (
	id  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	uid = "2f3a1b4c-0d9e-4f5a-8b6c-7d8e9f0a1b2c"
)

func without(t *testing.T) func(*Config) {
	return func(c *Config) { c.Proc.Root = machine(t) }
}

// Each source names the process unless an earlier one does.
func TestOrderOfSources(t *testing.T) {
	root := machine(t, fakeProcess{
		pid: 7, executable: "/usr/bin/python3.11", command: "python3 /srv/app.py --name cart",
		cgroup:  "0::/system.slice/shop.service",
		environ: []string{"OTEL_SERVICE_NAME=environment"}, context: "published",
	})
	own := profiletest.Attr("service.name", "own")
	said := profiletest.Attr("process.environment_variable.OTEL_SERVICE_NAME", "said")
	f := start(t, func(c *Config) {
		c.Proc.Root, c.Proc.ReadEnvironment = root, true
		c.Rules = []Rule{{Executable: "^python", CommandLine: `--name (\S+)`, ServiceName: "rule-$1"}}
	})
	drop := func(source Source) {
		f.config.ServiceNameFrom = f.config.ServiceNameFrom[1:]
		require.NotContains(t, f.config.ServiceNameFrom, source)
	}
	resource := []any{"container.id", "", "k8s.deployment.name", "deployment", "k8s.pod.name", "pod"}
	name := func(more ...profiletest.Attribute) any {
		return only(t, f.consume(sampledOn(resource, process(7, "/usr/bin/python3.11", more...))))["service.name"]
	}
	assert.Equal(t, "own", name(own, said))
	assert.Equal(t, "published", name(said))
	assert.Equal(t, "published", name(said, profiletest.Attr("service.name", "unknown_service:python3.11")))
	drop(SourceSample)
	assert.Equal(t, "published", name(own))
	drop(SourceContext)
	assert.Equal(t, "said", name(said))
	assert.Equal(t, "environment", name(own))
	drop(SourceEnvironment)
	assert.Equal(t, "deployment", name(own))
	drop(SourceContainer)
	assert.Equal(t, "shop", name(own))
	drop(SourceSystemd)
	assert.Equal(t, "rule-cart", name(own))
	drop(SourceRules)
	assert.Equal(t, "app.py", name(own))
	drop(SourceExecutable)
	assert.Equal(t, "unknown_service", name(own))
	for _, source := range allSources {
		assert.Positive(t, f.sum("samples", "source", string(source)), source)
	}
	assert.EqualValues(t, 1, f.sum("samples", "source", "none"))
}

// A process context names its own process only, in valid UTF-8, and is not looked for if it is no source.
func TestProcessContext(t *testing.T) {
	root := machine(t,
		fakeProcess{pid: 7, executable: "/bin/a", command: "a", context: "shop"},
		fakeProcess{pid: 8, executable: "/bin/a", command: "a"},
		fakeProcess{pid: 9, executable: "/bin/b", command: "b", context: "unknown_service:b",
			environ: []string{"OTEL_SERVICE_NAME=cart"}},
		fakeProcess{pid: 10, executable: "/bin/c", command: "c", context: "\xff\n" + strings.Repeat("x", 1000)},
		fakeProcess{pid: 11, executable: "/bin/d", command: "d", context: strings.Repeat("x", 1<<20)},
	)
	all := sampled(process(7, "/bin/a"), process(8, "/bin/a"), process(9, "/bin/b"), process(10, "/bin/c"),
		process(11, "/bin/d"))
	f := start(t, func(c *Config) { c.Proc.Root, c.Proc.ReadEnvironment = root, true })
	pd := f.consume(all)
	long := "\ufffd " + strings.Repeat("x", servicename.MaxBytes-4)
	assert.Equal(t, map[string]int{"shop": 1, "a": 1, "cart": 1, long: 1, "d": 1}, services(pd))
	versions := map[any]any{}
	for _, rp := range pd.ResourceProfiles().All() {
		attributes := rp.Resource().Attributes().AsRaw()
		versions[attributes["service.name"]] = attributes["service.version"]
	}
	assert.Equal(t, map[any]any{"shop": "2", "a": nil, "cart": "2", long: "2", "d": nil}, versions)
	assert.EqualValues(t, 3, f.sum("contexts", "outcome", "read"))
	assert.EqualValues(t, 1, f.sum("contexts", "outcome", "too_large"))
	assert.EqualValues(t, 4, f.sum("contexts"))

	f = start(t, func(c *Config) { c.Proc.Root, c.ServiceNameFrom = root, []Source{SourceExecutable} })
	assert.Equal(t, map[string]int{"a": 1}, services(f.consume(sampled(process(7, "/bin/a")))))
	assert.Zero(t, f.sum("contexts"))
}

// The attributes of a process move from samples to the resource as configured by `by`.
func TestBy(t *testing.T) {
	root := machine(t,
		fakeProcess{pid: 7, executable: "/usr/bin/python3.11", command: "python3 a.py"},
		fakeProcess{pid: 8, executable: "/usr/bin/python3.11", command: "python3 a.py"},
		fakeProcess{pid: 9, executable: "/usr/bin/python3.11", command: "python3 b.py"},
	)
	python := "/usr/bin/python3.11"
	resources := func(by By, attributes ...string) (all []map[string]any, left []int) {
		f := start(t, func(c *Config) { c.By, c.Proc.Root, c.Attributes = by, root, attributes })
		pd := f.consume(sampled(process(7, python), process(8, python), process(9, python)))
		for _, rp := range pd.ResourceProfiles().All() {
			all = append(all, rp.Resource().Attributes().AsRaw())
			left = append(left, rp.ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).AttributeIndices().Len())
		}
		return all, left
	}
	name, path := "python3.11", python
	all, left := resources(ByExecutable)
	assert.Equal(t, []map[string]any{
		{"service.name": "a.py", "process.executable.name": name, "process.executable.path": path},
		{"service.name": "b.py", "process.executable.name": name, "process.executable.path": path},
	}, all)
	assert.Equal(t, []int{3, 3}, left, "thread.name, thread.id, process.pid")
	all, left = resources(ByProcess)
	assert.Equal(t, []map[string]any{
		{"service.name": "a.py", "process.executable.name": name, "process.executable.path": path, "process.pid": int64(7)},
		{"service.name": "a.py", "process.executable.name": name, "process.executable.path": path, "process.pid": int64(8)},
		{"service.name": "b.py", "process.executable.name": name, "process.executable.path": path, "process.pid": int64(9)},
	}, all)
	assert.Equal(t, []int{2, 2, 2}, left)
	all, left = resources(ByContainer)
	assert.Equal(t, []map[string]any{{"service.name": "a.py"}, {"service.name": "b.py"}}, all)
	assert.Equal(t, []int{5, 5}, left)
	all, left = resources(ByContainer, "thread.name", "process.executable.name")
	assert.Equal(t, []map[string]any{
		{"service.name": "a.py", "thread.name": "thread", "process.executable.name": name},
		{"service.name": "b.py", "thread.name": "thread", "process.executable.name": name},
	}, all)
	assert.Equal(t, []int{3, 3}, left)
}

func TestContainers(t *testing.T) {
	inPod := "0::/kubepods/burstable/pod" + uid + "/" + id
	root := machine(t,
		fakeProcess{pid: 7, executable: "/usr/bin/nginx", command: "nginx", cgroup: inPod},
		fakeProcess{pid: 8, executable: "/bin/sh", command: "sh /run.sh", cgroup: inPod},
		fakeProcess{pid: 9, executable: "/usr/bin/cron", command: "cron", cgroup: "0::/system.slice/cron.service"},
	)
	processes := [][]profiletest.Attribute{process(7, "/usr/bin/nginx"), process(8, "/bin/sh"),
		process(9, "/usr/bin/cron")}
	f := start(t, func(c *Config) { c.By, c.Proc.Root = ByContainer, root })
	pd := f.consume(sampled(processes...))
	assert.Equal(t, map[string]int{id[:12]: 2, "cron": 1}, services(pd), "one resource for the container, by its short id")
	attributes := pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, map[string]any{"service.name": id[:12], "container.id": id, "k8s.pod.uid": uid}, attributes)

	// The resource knows the container, as the profiler's do, and k8s_attributes has added to it.
	resource := []any{"container.id", id, "container.name", "web", "k8s.pod.name", "web-0"}
	assert.Equal(t, map[string]any{"service.name": "web-0", "container.id": id, "container.name": "web",
		"k8s.pod.name": "web-0", "k8s.pod.uid": uid}, only(t, f.consume(sampledOn(resource, processes[:2]...))))

	// The service that runs containers does not name what runs in them.
	f = start(t, func(c *Config) {
		c.Proc.Root = machine(t,
			fakeProcess{pid: 7, executable: "/usr/bin/nginx", command: "nginx", cgroup: "0::/system.slice/containerd.service"})
	})
	assert.Equal(t, "nginx",
		only(t, f.consume(sampledOn([]any{"container.id", id}, process(7, "/usr/bin/nginx"))))["service.name"])

	f = start(t, func(c *Config) { c.Proc.Root = root })
	assert.Equal(t, map[string]int{"nginx": 1, "run.sh": 1, "cron": 1}, services(f.consume(sampled(processes...))))
}

// OTEL_RESOURCE_ATTRIBUTES adds the listed attributes, from /proc only if that is allowed.
func TestEnvironment(t *testing.T) {
	root := machine(t, fakeProcess{
		pid: 7, executable: "/srv/cart", command: "/srv/cart",
		environ: []string{"PATH=/bin", "SECRET=x",
			"OTEL_RESOURCE_ATTRIBUTES=service.name=x,service.version=1.1,service.name=cart-service," +
				"service.namespace=shop,service.version=1%2E2+5,secret=x"},
	}, fakeProcess{pid: 8, executable: "/usr/bin/java", command: "java -Dotel.service.name=orders -jar orders.jar",
		environ: []string{"OTEL_SERVICE_NAME=overridden"}})
	f := start(t, func(c *Config) { c.Proc.Root, c.Proc.ReadEnvironment = root, true })
	assert.Equal(t, map[string]any{
		"service.name": "cart-service", "service.namespace": "shop", "service.version": "1.2+5",
		"process.executable.name": "cart", "process.executable.path": "/srv/cart",
	}, only(t, f.consume(sampled(process(7, "/srv/cart")))))
	assert.Equal(t, "orders", only(t, f.consume(sampled(process(8, "/usr/bin/java"))))["service.name"])

	f = start(t, func(c *Config) { c.Proc.Root = root })
	assert.Equal(t,
		map[string]any{"service.name": "cart", "process.executable.name": "cart", "process.executable.path": "/srv/cart"},
		only(t, f.consume(sampled(process(7, "/srv/cart")))))
	said := profiletest.Attr("process.environment_variable.OTEL_RESOURCE_ATTRIBUTES",
		"service.name=said,service.namespace=ns")
	got := only(t, f.consume(sampled(process(7, "/srv/cart", said))))
	assert.Equal(t, []any{"said", "ns"}, []any{got["service.name"], got["service.namespace"]},
		"the profiler was allowed to")
}

func TestKernelThreads(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Proc.Root = machine(t, fakeProcess{pid: 2, flags: 0x00200000}, fakeProcess{pid: 20, flags: 0x00200040})
	})
	assert.Equal(t, map[string]int{"kernel": 2, "unknown_service": 1},
		services(f.consume(sampled(process(2, ""), process(20, ""), process(21, "")))))
	idle := []profiletest.Attribute{profiletest.Attr("process.pid", int64(0)),
		profiletest.Attr("thread.name", "swapper/0")}
	assert.Equal(t, map[string]int{"kernel": 1}, services(f.consume(sampled(idle))))
}

// A process that has ended keeps its name if it was read before. Otherwise its samples name it.
func TestProcessesThatAreGone(t *testing.T) {
	root := machine(t, fakeProcess{pid: 7, executable: "/usr/bin/node", command: "node shop.js"})
	f := start(t, func(c *Config) { c.Proc.Root, c.Proc.RefreshInterval = root, 0 })
	message := func() pprofile.Profiles { return sampled(process(7, "/usr/bin/node"), process(8, "/usr/bin/node")) }
	assert.Equal(t, map[string]int{"shop.js": 1, "node": 1}, services(f.consume(message())))
	require.NoError(t, os.RemoveAll(filepath.Join(root, "7")))
	assert.Equal(t, map[string]int{"shop.js": 1, "node": 1}, services(f.consume(message())))
	assert.EqualValues(t, 3, f.sum("process_reads", "outcome", "gone"))
	assert.EqualValues(t, 1, f.sum("process_reads", "outcome", "read"))
	assert.EqualValues(t, 2, f.sum("processes"))
}

// A process of another machine, or one that got the id of another, does not name samples.
func TestProcessesOfAnotherProgram(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Proc.Root = machine(t, fakeProcess{pid: 7, executable: "/usr/bin/node", command: "node shop.js"})
	})
	assert.Equal(t, map[string]int{"nginx": 1}, services(f.consume(sampled(process(7, "/usr/sbin/nginx")))))
	assert.EqualValues(t, 1, f.sum("process_reads", "outcome", "mismatch"))
}

// A program in memory, and one that was replaced on disk, have the name of what they run.
func TestAnonymousExecutables(t *testing.T) {
	const memory = "/memfd:sealed-91173221a7ea (deleted)"
	f := start(t, func(c *Config) {
		c.Proc.Root = machine(t, fakeProcess{pid: 7, executable: memory, command: "/opt/shop serve"},
			fakeProcess{pid: 8, executable: memory, command: "/proc/self/exe init"},
			fakeProcess{pid: 9, executable: "/usr/bin/node (deleted)", command: "node cart.js"})
	})
	assert.Equal(t, map[string]int{"shop": 2, "a": 1, "cart.js": 2, "unknown_service": 1}, services(f.consume(sampled(
		process(7, memory), process(7, "/memfd:sealed-91173221a7ea"), process(8, memory), process(9, "/usr/bin/node"),
		process(9, "/usr/bin/node (deleted)"), process(10, memory)))))
	assert.Zero(t, f.sum("process_reads", "outcome", "mismatch"))
}

func TestProcDisabled(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Proc.Enabled = false
		c.Proc.Root = machine(t, fakeProcess{pid: 7, executable: "/usr/bin/node", command: "node shop.js"})
		c.Rules = []Rule{{Executable: "^(ng)inx$", ServiceName: "$1"}}
	})
	assert.Equal(t, map[string]int{"node": 1, "ng": 1},
		services(f.consume(sampled(process(7, "/usr/bin/node"), process(8, "/usr/bin/nginx")))))
	assert.Zero(t, f.sum("process_reads"))
	assert.Zero(t, f.logs.Len())
}

func TestAWarningWhereNothingCanBeRead(t *testing.T) {
	f := start(t, func(c *Config) { c.Proc.Root = t.TempDir() })
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("cannot read processes").Len())
	assert.Equal(t, map[string]int{"node": 1}, services(f.consume(sampled(process(7, "/usr/bin/node")))))
}

// Newer profilers have a resource for each process. Processes can still share a resource.
func TestResourcesThatAreProcesses(t *testing.T) {
	root := machine(t, fakeProcess{pid: 7, executable: "/usr/bin/node", command: "node shop.js"},
		fakeProcess{pid: 8, executable: "/usr/bin/node", command: "node shop.js"})
	message := func() pprofile.Profiles {
		b := profiletest.New()
		for pid := int64(7); pid < 9; pid++ {
			b.Resource("process.pid", pid, "process.executable.path", "/usr/bin/node", "process.executable.name", "node").
				Scope("go.opentelemetry.io/ebpf-profiler", "v1").Profile("samples", "count").Time(1, 5).
				Sample(sampleWith("f", profiletest.Attr("thread.id", pid)), sampleWith("g", profiletest.Attr("thread.id", pid)))
		}
		return b.Build()
	}
	for by, want := range map[By]map[string]any{
		ByExecutable: {"service.name": "shop.js", "process.executable.path": "/usr/bin/node",
			"process.executable.name": "node"},
		ByContainer: {"service.name": "shop.js"},
	} {
		f := start(t, func(c *Config) { c.By, c.Proc.Root = by, root })
		pd := f.consume(message())
		assert.Equal(t, want, only(t, pd))
		require.Equal(t, 1, pd.ResourceProfiles().At(0).ScopeProfiles().Len())
		pids := map[int64]int{}
		for i := range 2 {
			for _, s := range profiletest.ProfileAt(pd, i).Samples().All() {
				pids[attributesOf(pd, s)["process.pid"].(int64)]++
			}
		}
		assert.Equal(t, map[int64]int{7: 2, 8: 2}, pids)
	}
	f := start(t, func(c *Config) { c.By, c.Proc.Root = ByProcess, root })
	pd := f.consume(message())
	require.Equal(t, 2, pd.ResourceProfiles().Len())
	assert.Equal(t, map[string]any{
		"service.name": "shop.js", "process.executable.path": "/usr/bin/node", "process.executable.name": "node",
		"process.pid": int64(8),
	}, pd.ResourceProfiles().At(1).Resource().Attributes().AsRaw())
}

func sampleWith(function string, attributes ...profiletest.Attribute) profiletest.Sample {
	return profiletest.Observed([]uint64{1}, function).With(attributes...)
}

func attributesOf(pd pprofile.Profiles, s pprofile.Sample) map[string]any {
	all := map[string]any{}
	for _, a := range s.AttributeIndices().All() {
		entry := pd.Dictionary().AttributeTable().At(int(a))
		all[pd.Dictionary().StringTable().At(int(entry.KeyStrindex()))] = entry.Value().AsRaw()
	}
	return all
}

// Programs that set service.name themselves are left as they are.
func TestResourcesWithANameOfTheirOwn(t *testing.T) {
	f := start(t, func(c *Config) {
		c.Proc.Root = machine(t, fakeProcess{pid: 7, executable: "/usr/bin/node", command: "node shop.js"},
			fakeProcess{pid: 8, executable: "/usr/bin/node", command: "node shop.js", cgroup: "0::/docker/" + id})
	})
	resource := []any{"process.pid", int64(7), "process.executable.path", "/usr/bin/node", "process.executable.name",
		"node"}
	resource = append(resource, "service.name", "own")
	got := only(t, f.consume(sampledOn(resource, nil)))
	assert.Equal(t, []any{"own", int64(7)}, []any{got["service.name"], got["process.pid"]})

	plain := profiletest.New().Resource("service.name", "scraped", "process.pid", int64(8)).Profile("cpu", "ns").
		Sample(profiletest.Value(1, "f")).Build()
	want := profiletest.Clone(plain)
	require.NoError(t, profiletest.Equal(want, f.consume(plain)))
	nothing := profiletest.New().Resource("a", "b").Profile("cpu", "ns").Sample(profiletest.Value(1, "f")).Build()
	nothing.CopyTo(want)
	require.NoError(t, profiletest.Equal(want, f.consume(nothing)))
	assert.EqualValues(t, 3, f.sum("samples", "source", "unchanged"))
	assert.Zero(t, f.sum("process_reads"), "nobody looks at them")
}

// One fact is enough for samples to describe a process, on a resource with a name of its own, too.
func TestSamplesThatDescribeAProcess(t *testing.T) {
	f := start(t, without(t))
	for _, fact := range []profiletest.Attribute{
		profiletest.Attr("service.name", "shop"), profiletest.Attr("container.id", id),
		profiletest.Attr("process.pid", int64(7)), profiletest.Attr("process.executable.name", "shop"),
		profiletest.Attr("process.executable.path", "/srv/shop"),
		profiletest.Attr("process.environment_variable.OTEL_SERVICE_NAME", "shop"),
		profiletest.Attr("process.environment_variable.OTEL_RESOURCE_ATTRIBUTES", "service.name=shop"),
	} {
		f.consume(sampledOn([]any{"service.name", "host"}, []profiletest.Attribute{fact}))
		assert.Zero(t, f.sum("samples", "source", "unchanged"), fact)
	}
}

// A sample's own name becomes that of its resource, and is no attribute of the sample any longer.
func TestSamplesThatNameTheirService(t *testing.T) {
	pd := start(t, without(t)).consume(sampled(process(7, "/srv/shop", profiletest.Attr("service.name", "own"))))
	assert.Equal(t, "own", only(t, pd)["service.name"])
	assert.NotContains(t, attributesOf(pd, profiletest.ProfileAt(pd, 0).Samples().At(0)), "service.name")
}

func TestMaxResources(t *testing.T) {
	f := start(t, func(c *Config) {
		without(t)(c)
		c.MaxResources = 2
	})
	now := time.Unix(1_000, 0)
	f.processor.(*processResource).resources.now = func() time.Time { return now }
	message := func(names ...string) pprofile.Profiles {
		var processes [][]profiletest.Attribute
		for i, name := range names {
			processes = append(processes, process(i+1, "/bin/"+name))
		}
		return sampled(processes...)
	}
	assert.Equal(t, map[string]int{"a": 1, "b": 1, "other": 2}, services(f.consume(message("a", "b", "c", "d"))))
	assert.Equal(t, map[string]int{"other": 1, "b": 1}, services(f.consume(message("c", "b"))),
		"those that are known stay")
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("`max_resources`").Len(), "it is logged when it begins")
	assert.EqualValues(t, 3, f.sum("other_samples", "reason", "max_resources"))
	assert.EqualValues(t, 2, f.sum("resources"))
	now = now.Add(f.config.ResourceTTL - time.Minute)
	f.consume(message("b"))
	now = now.Add(2 * time.Minute)
	assert.Equal(t, map[string]int{"c": 1, "b": 1, "other": 1}, services(f.consume(message("c", "d", "b"))),
		"a had no samples for so long")
}

func TestCopiesOfALargeResourceAreBounded(t *testing.T) {
	f := start(t, without(t))
	var processes [][]profiletest.Attribute
	for i := range 100 {
		processes = append(processes, process(i+1, fmt.Sprint("/bin/program", i)))
	}
	pd := f.consume(sampledOn([]any{"text", strings.Repeat("x", 100_000)}, processes...))
	found := services(pd)
	assert.Positive(t, found["other"])
	assert.EqualValues(t, found["other"], f.sum("other_samples", "reason", "message_size"))
	assert.Less(t, (&pprofile.ProtoMarshaler{}).ProfilesSize(pd), 10_000_000)
}

func TestTheSenderGetsTheAnswer(t *testing.T) {
	refusal := errors.New("come back later")
	next, err := xconsumer.NewProfiles(func(context.Context, pprofile.Profiles) error { return refusal })
	require.NoError(t, err)
	p, err := NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), processortest.NewNopSettings(metadata.Type),
		createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	assert.True(t, p.Capabilities().MutatesData)
	require.ErrorIs(t, p.ConsumeProfiles(t.Context(), sampled(process(1, "/bin/a"))), refusal)
	require.NoError(t, p.Shutdown(t.Context()))
}

func TestReadOnlyInputIsNotChanged(t *testing.T) {
	f := start(t, without(t))
	shared := sampled(process(1, "/bin/a"))
	shared.MarkReadOnly()
	assert.Equal(t, map[string]int{"a": 1}, services(f.consume(shared)))
	assert.Equal(t, map[string]int{"": 1}, services(shared))
}

func TestManySenders(t *testing.T) {
	f := start(t, func(c *Config) { c.Proc.RefreshInterval, c.MaxResources = 0, 20 })
	var senders sync.WaitGroup
	for sender := range 8 {
		senders.Go(func() {
			for i := range 20 {
				pd := sampled(process(sender+1, fmt.Sprint("/bin/program", i)), process(1, "/bin/init"))
				assert.NoError(t, f.processor.ConsumeProfiles(t.Context(), pd))
			}
		})
	}
	senders.Wait()
	assert.EqualValues(t, 8*20*2, f.sum("samples"))
}
