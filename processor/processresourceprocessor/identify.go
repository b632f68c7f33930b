// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/environment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/regroup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/servicename"
)

// kernel is the service of the kernel's own threads, and of idle CPUs.
const kernel = "kernel"

const serviceNameKey = "service.name"

// facts are what is known about a process besides its samples. They do not change.
type facts struct {
	context, environment, unit, rule, command string
	// container is the id of its container.
	container string
	// attributes are those for its resource; key identifies them.
	attributes []regroup.Attribute
	key        string
}

// known is what the samples or their resource state about a process, before anything is looked up.
type known struct {
	regroup.Process
	// resourceName is the resource's own service.name, unless that is a placeholder.
	resourceName string
	// containerName is the name by container_attributes.
	containerName string
	// stays reports that the resource has a name of its own, and that the samples do not describe a process.
	stays bool
}

// ownFacts identifies facts that come from the message alone. Its strings are cut.
type ownFacts struct{ executable, serviceName, resourceAttributes string }

const (
	maxPath        = 4 << 10 // Linux's PATH_MAX
	maxEnvironment = 4 << 10
)

// identify finds an identity for each process of a message.
func (p *processResource) identify(ctx context.Context, resources []regroup.Resource) (bySource map[Source]int) {
	var keys []procfs.Key
	for i := range resources {
		from := p.fromResource(resources[i].Attributes)
		for k := range resources[i].Processes {
			if all := merge(&from, &resources[i].Processes[k]); !all.stays {
				if key, ok := p.keyOf(&all); ok {
					keys = append(keys, key)
				}
			}
		}
	}
	var read []*facts
	if len(keys) > 0 {
		read = p.processes.Resolve(ctx, keys)
	}
	own := map[ownFacts]*facts{}
	bySource = map[Source]int{}
	for i := range resources {
		from := p.fromResource(resources[i].Attributes)
		for k := range resources[i].Processes {
			process := &resources[i].Processes[k]
			all := merge(&from, process)
			if all.stays {
				bySource[unchanged] += process.Samples
				continue
			}
			stated := p.ownFacts(own, &all)
			found := stated
			if _, ok := p.keyOf(&all); ok {
				found, read = read[0], read[1:]
			}
			var source Source
			process.Identity, source = p.name(&all, stated, found)
			bySource[source] += process.Samples
		}
		// A program that sets its own service.name may also set its process id; resources of the profiler have no name
		// yet.
		resources[i].IsProcess = from.resourceName == "" && from.isProcess()
	}
	return bySource
}

// fromResource returns what a resource states. Its samples do not matter.
func (p *processResource) fromResource(attributes pcommon.Map) known {
	k := known{Process: regroup.Process{PID: regroup.NoPID}}
	attribute := func(key string) string {
		value, ok := attributes.Get(key)
		if !ok || value.Type() != pcommon.ValueTypeStr {
			return ""
		}
		return value.Str()
	}
	if name := attribute(serviceNameKey); !servicename.IsUnknown(name) {
		k.resourceName = name
	}
	for _, key := range p.config.ContainerAttributes {
		if k.containerName = servicename.Clean(attribute(key)); k.containerName != "" {
			break
		}
	}
	k.Container = attribute("container.id")
	k.ExecutableName, k.ExecutablePath = attribute("process.executable.name"), attribute("process.executable.path")
	k.OTelServiceName = attribute("process.environment_variable.OTEL_SERVICE_NAME")
	k.OTelResourceAttributes = attribute("process.environment_variable.OTEL_RESOURCE_ATTRIBUTES")
	if pid, ok := attributes.Get("process.pid"); ok && pid.Type() == pcommon.ValueTypeInt {
		k.PID = pid.Int()
	}
	return k
}

// merge returns what samples state, completed by what their resource states.
func merge(from *known, process *regroup.Process) known {
	all := *from
	all.ServiceName, all.Samples = process.ServiceName, process.Samples
	all.stays = all.resourceName != "" && isEmpty(process)
	if process.PID != regroup.NoPID {
		all.PID = process.PID
	}
	if process.ExecutableName != "" || process.ExecutablePath != "" {
		all.ExecutableName, all.ExecutablePath = process.ExecutableName, process.ExecutablePath
	}
	if process.Container != "" {
		all.Container = process.Container
	}
	if process.OTelServiceName != "" || process.OTelResourceAttributes != "" {
		all.OTelServiceName, all.OTelResourceAttributes = process.OTelServiceName, process.OTelResourceAttributes
	}
	return all
}

func isEmpty(p *regroup.Process) bool {
	return p.PID == regroup.NoPID && p.ExecutableName == "" && p.ExecutablePath == "" && p.ServiceName == "" &&
		p.Container == "" && p.OTelServiceName == "" && p.OTelResourceAttributes == ""
}

// executable returns the path, or the name if there is none.
func (k *known) executable() string {
	return dictionary.CutUTF8(cmp.Or(k.ExecutablePath, k.ExecutableName), maxPath)
}

func (k *known) isProcess() bool {
	return k.PID >= 0 || k.ExecutablePath != "" || k.ExecutableName != ""
}

// keyOf returns the key of the process to read, if there is one.
func (p *processResource) keyOf(k *known) (procfs.Key, bool) {
	return procfs.Key{PID: k.PID, Executable: k.executable()}, p.config.Proc.Enabled && k.PID > 0
}

// ownFacts returns the facts that follow from the message alone.
func (p *processResource) ownFacts(made map[ownFacts]*facts, k *known) *facts {
	key := ownFacts{
		executable:         k.executable(),
		serviceName:        dictionary.CutUTF8(k.OTelServiceName, maxEnvironment),
		resourceAttributes: dictionary.CutUTF8(k.OTelResourceAttributes, maxEnvironment),
	}
	f := made[key]
	if f == nil {
		f = p.factsOf(procfs.Key{Executable: key.executable}, &procfs.Process{
			ServiceName: key.serviceName, ResourceAttributes: key.resourceAttributes,
		})
		made[key] = f
	}
	return f
}

// factsOf makes facts from what was read of a process; process is nil if nothing was read.
func (p *processResource) factsOf(key procfs.Key, process *procfs.Process) *facts {
	if process == nil {
		process = &procfs.Process{}
	}
	name := ""
	if executable := cmp.Or(key.Executable, process.Executable); executable != "" {
		name = servicename.Clean(path.Base(strings.TrimSuffix(executable, " (deleted)")))
	}
	f := &facts{
		context:     contextName(&process.Context),
		environment: servicename.FromEnvironment(process.ServiceName, process.ResourceAttributes),
		unit:        servicename.Clean(process.Unit),
		container:   process.Container,
		command: servicename.FromCommand(servicename.Command{Executable: name, Name: process.Name,
			Arguments: process.Arguments}),
	}
	if name == "java" { // the agent prefers a property to the environment
		f.environment = cmp.Or(servicename.FromJavaProperty(process.Arguments), f.environment)
	}
	if process.IsKernelThread {
		f.command = kernel
	} else if name != "" {
		f.rule = servicename.Match(p.rules, name, process.Arguments)
	}
	f.add("container.id", process.Container)
	f.add("k8s.pod.uid", process.Pod)
	for _, attribute := range process.Context.Attributes {
		if slices.Contains(p.config.Proc.EnvironmentAttributes, attribute.Key) {
			f.add(attribute.Key, servicename.Clean(attribute.Value))
		}
	}
	for _, attribute := range slices.Backward(environment.Wellformed(process.ResourceAttributes)) {
		if slices.Contains(p.config.Proc.EnvironmentAttributes, attribute.Key) {
			f.add(attribute.Key, servicename.Clean(attribute.Value))
		}
	}
	return f
}

// contextName returns the name that a process has published, unless it is a placeholder.
func contextName(context *procfs.Context) string {
	for _, attribute := range context.Attributes {
		if name := servicename.Clean(attribute.Value); attribute.Key == serviceNameKey && !servicename.IsUnknown(name) {
			return name
		}
	}
	return ""
}

// contextKeys returns the attributes to read of process contexts.
func contextKeys(config *Config) []string {
	if !slices.Contains(config.ServiceNameFrom, SourceContext) {
		return nil
	}
	return append(slices.Clone(config.Proc.EnvironmentAttributes), serviceNameKey)
}

// clone copies the strings, which are parts of what was read: a command line, or a message.
func (f *facts) clone() *facts {
	for _, s := range [...]*string{&f.context, &f.environment, &f.unit, &f.rule, &f.command, &f.container} {
		*s = strings.Clone(*s)
	}
	for i := range f.attributes {
		f.attributes[i].Value = strings.Clone(f.attributes[i].Value)
	}
	return f
}

// add adds an attribute unless it is empty, or another one has the key.
func (f *facts) add(key, value string) {
	if value == "" || slices.ContainsFunc(f.attributes, func(a regroup.Attribute) bool { return a.Key == key }) {
		return
	}
	f.attributes = append(f.attributes, regroup.Attribute{Key: key, Value: value})
	f.key += key + "\x00" + value + "\x00"
}

// The values of a metric's attribute `source`, besides the sources.
const (
	// fromNothing means that no source has a name.
	fromNothing Source = "none"
	// unchanged means that the samples do not describe a process, and stay in their resource.
	unchanged Source = "unchanged"
)

var metricSources = append([]Source{fromNothing, unchanged}, allSources...)

// name finds the name of a process by the order of sources. stated are the facts from the message, found those from
// /proc, or the same.
func (p *processResource) name(k *known, stated, found *facts) (id regroup.Identity, from Source) {
	id.Attributes, id.Key = found.attributes, found.key
	if stated != found && len(stated.attributes) > 0 {
		id.Attributes, id.Key = slices.Concat(stated.attributes, found.attributes), stated.key+found.key
	}
	for _, source := range p.config.ServiceNameFrom {
		if id.ServiceName = p.nameFrom(source, k, stated, found); id.ServiceName != "" {
			id.FromSample = source == SourceSample && !servicename.IsUnknown(servicename.Clean(k.ServiceName))
			return id, source
		}
	}
	if !k.isProcess() {
		return regroup.Identity{}, unchanged
	}
	id.ServiceName = kind.UnknownService
	return id, fromNothing
}

func (p *processResource) nameFrom(source Source, k *known, stated, found *facts) string {
	container := cmp.Or(k.Container, found.container)
	isContainer := p.config.By == ByContainer && container != ""
	switch source {
	case SourceSample:
		if name := servicename.Clean(k.ServiceName); !servicename.IsUnknown(name) {
			return name
		}
		return k.resourceName
	case SourceContext:
		return found.context
	case SourceEnvironment:
		return cmp.Or(stated.environment, found.environment)
	case SourceContainer:
		return k.containerName
	case SourceSystemd:
		if container != "" {
			return "" // the unit runs the container, and is not what runs in it
		}
		return found.unit
	case SourceRules:
		if !isContainer {
			return found.rule
		}
	case SourceExecutable:
		if k.PID == 0 {
			return kernel
		}
		if !isContainer {
			return found.command
		}
	}
	if isContainer {
		const shortID = 12 // as container tools list them
		return servicename.Clean(dictionary.CutUTF8(container, shortID))
	}
	return ""
}
