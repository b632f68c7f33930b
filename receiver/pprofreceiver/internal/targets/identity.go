// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
)

// consumed are the public labels that become attributes under other names.
var consumed = map[string]bool{
	model.JobLabel: true, model.InstanceLabel: true,
	"service_name": true, "service_namespace": true, "service_version": true, "service_instance_id": true,
}

// Prefixes of the labels of a pod from Kubernetes' discovery.
const (
	metaPod        = "__meta_kubernetes_pod_"
	metaLabel      = metaPod + "label_"
	metaAnnotation = metaPod + "annotation_"
	metaContainer  = metaPod + "container_"
)

// HiddenLabels returns a function that reports whether a discovered label must not be shown. Annotations can hold
// secrets: only those that the job's rules or the identity read are shown.
func (c *Config) HiddenLabels() func(label string) bool {
	used := map[string]bool{metaAnnotation + "pyroscope_io_service_name": true}
	for _, name := range []string{"service_name", "service_namespace", "service_version", "service_instance_id"} {
		used[metaAnnotation+"resource_opentelemetry_io_"+name] = true
	}
	for _, rule := range c.RelabelConfigs {
		for _, label := range rule.SourceLabels {
			used[string(label)] = true
		}
	}
	return func(label string) bool {
		return strings.HasPrefix(label, "__meta_") && strings.Contains(label, "_annotation") && !used[label]
	}
}

// identified has the inputs of a target's identity.
type identified struct {
	*scrapeable               // any of the target's
	meta        labels.Labels // before relabelling
	job         string
}

// resource returns the attributes in the README's order of precedence: a public label with the name of an attribute
// wins, then the four `service_…` labels, then the derived name.
func (id identified) resource() pcommon.Map {
	attributes := pcommon.NewMap()
	put := func(key string, values ...string) {
		if value := cmp.Or(values...); value != "" {
			attributes.PutStr(key, value)
		}
	}
	workload, owners := id.workload()
	put("service.name", id.serviceName(workload))
	namespace := id.meta.Get("__meta_kubernetes_namespace")
	put("service.namespace", id.public.Get("service_namespace"), id.annotated("service_namespace"), namespace)
	put("service.version", id.public.Get("service_version"), id.annotated("service_version"),
		id.podLabel("app_kubernetes_io_version"))
	put("service.instance.id", id.instanceID())
	put("server.address", id.address.host)
	attributes.PutInt("server.port", int64(fetch.Port(id.endpoint.URL)))

	put("k8s.namespace.name", namespace)
	put("k8s.pod.name", id.pod("name"))
	put("k8s.pod.uid", id.pod("uid"))
	put("k8s.pod.ip", id.pod("ip"))
	put("k8s.node.name", id.pod("node_name"), id.meta.Get("__meta_kubernetes_node_name"))
	put("k8s.container.name", id.pod("container_name"))
	for _, owner := range owners {
		put("k8s."+owner.kind+".name", owner.name)
	}
	putImage(attributes, id.pod("container_image"))
	if _, container, found := strings.Cut(id.pod("container_id"), "://"); found {
		put("container.id", container)
	}
	id.public.Range(func(l labels.Label) {
		if !consumed[l.Name] {
			put(l.Name, l.Value)
		}
	})
	return attributes
}

// serviceName returns the first of these: labels that name a service, annotations that do, labels that name an
// application, the workload, the container, the job.
func (id identified) serviceName(workload string) string {
	return cmp.Or(
		id.public.Get("service_name"),
		id.annotated("service_name"),
		id.meta.Get(metaAnnotation+"pyroscope_io_service_name"),
		id.podLabel("app_kubernetes_io_name"),
		id.podLabel("app"),
		id.podLabel("k8s_app"),
		workload,
		id.pod("container_name"),
		id.job,
	)
}

// instanceID is unique among the instances of a service. For containers it has the form that the semantic conventions
// for Kubernetes' attributes recommend.
func (id identified) instanceID() string {
	if stated := cmp.Or(id.public.Get("service_instance_id"), id.annotated("service_instance_id")); stated != "" {
		return stated
	}
	if id.instance {
		return id.public.Get(model.InstanceLabel)
	}
	parts := []string{id.meta.Get("__meta_kubernetes_namespace"), id.pod("name"), id.pod("container_name")}
	if parts[1] != "" && parts[0] != "" {
		if parts[2] == "" {
			parts = parts[:2]
		}
		return strings.Join(parts, ".")
	}
	return id.address.urlHost()
}

func (id identified) pod(name string) string { return id.meta.Get(metaPod + name) }

// podLabel returns the public label of a name, or else the pod's.
func (id identified) podLabel(name string) string {
	return cmp.Or(id.public.Get(name), id.meta.Get(metaLabel+name))
}

// annotated returns a pod's annotation `resource.opentelemetry.io/<key>`. Discovery has `_` for the key's dots.
func (id identified) annotated(key string) string {
	return id.meta.Get(metaAnnotation + "resource_opentelemetry_io_" + key)
}

// owner is an object of Kubernetes that a pod belongs to, such as its deployment.
type owner struct{ kind, name string }

// scheduled matches the names of jobs that a CronJob creates: its own and a time in minutes.
var scheduled = regexp.MustCompile(`^(.+)-\d{8,10}$`)

// workload returns the owners of a pod, and the name of the one that a user knows it by. Discovery asks Kubernetes for
// those above the pod's controller only if `attach_metadata` is set; otherwise they follow from the controller's name.
func (id identified) workload() (name string, owners []owner) {
	name = id.pod("controller_name")
	if name == "" {
		return "", nil
	}
	add := func(kind, of string) {
		name = of
		owners = append(owners, owner{kind, of})
	}
	switch id.pod("controller_kind") {
	case "ReplicaSet":
		add("replicaset", name)
		// A Deployment labels its pods with the hash that ends the ReplicaSet's name.
		stem, isDeployment := strings.CutSuffix(name, "-"+id.meta.Get(metaLabel+"pod_template_hash"))
		if deployment := id.pod("deployment_name"); deployment != "" {
			add("deployment", deployment)
		} else if isDeployment {
			add("deployment", stem)
		} else if stem, isRollout := strings.CutSuffix(name,
			"-"+id.meta.Get(metaLabel+"rollouts_pod_template_hash")); isRollout {
			name = stem // an Argo Rollout, for which there is no attribute
		}
	case "Job":
		add("job", name)
		if cron := id.pod("cronjob_name"); cron != "" {
			add("cronjob", cron)
		} else if match := scheduled.FindStringSubmatch(name); match != nil {
			add("cronjob", match[1])
		}
	case "StatefulSet":
		add("statefulset", name)
	case "DaemonSet":
		add("daemonset", name)
	case "Node":
		name = "" // a static pod: its container names it better than the machine does
	}
	return name, owners
}

// putImage adds the name and tag of an image's reference. The name keeps registry and path; a digest is left out.
func putImage(attributes pcommon.Map, image string) {
	if image == "" {
		return
	}
	image, _, _ = strings.Cut(image, "@")
	name, tag := image, ""
	// A colon before the last slash belongs to a registry's port.
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		name, tag = image[:colon], image[colon+1:]
	}
	attributes.PutStr("container.image.name", name)
	if tag != "" {
		attributes.PutEmptySlice("container.image.tags").AppendEmpty().SetStr(tag)
	}
}
