// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// consumed are the public labels that do not become attributes of their own names.
var consumed = map[string]bool{
	model.JobLabel: true, model.InstanceLabel: true,
	"service_name": true, "service_namespace": true, "service_version": true, "service_instance_id": true,
}

// Prefixes of what the discovery of Kubernetes knows of a pod.
const (
	metaPod        = "__meta_kubernetes_pod_"
	metaLabel      = metaPod + "label_"
	metaAnnotation = metaPod + "annotation_"
	metaContainer  = metaPod + "container_"
)

// HiddenLabels returns a function that reports that a discovered label must not be shown. Annotations hold anything, at
// times secrets: only those are shown that the job's rules or the identity read.
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

// identified is what a target's identity is made of.
type identified struct {
	public  labels.Labels
	meta    labels.Labels // before relabelling
	address address
	scheme  string
	job     string
	// instance says that the label `instance` is more than the address.
	instance bool
}

// resource gives the attributes in the README's order of precedence: a public label of an attribute's own name wins,
// then the four `service_…` labels, then what is derived.
func (id identified) resource() pcommon.Map {
	attributes := pcommon.NewMap()
	put := func(key string, values ...string) {
		if value := first(values...); value != "" {
			attributes.PutStr(key, value)
		}
	}
	w := id.workload()
	put("service.name", id.serviceName(w))
	namespace := id.meta.Get("__meta_kubernetes_namespace")
	put("service.namespace", id.public.Get("service_namespace"), id.annotated("service_namespace"), namespace)
	put("service.version", id.public.Get("service_version"), id.annotated("service_version"),
		id.podLabel("app_kubernetes_io_version"))
	put("service.instance.id", id.instanceID())
	put("server.address", id.address.host)
	attributes.PutInt("server.port", int64(id.address.effectivePort(id.scheme)))

	put("k8s.namespace.name", namespace)
	put("k8s.pod.name", id.pod("name"))
	put("k8s.pod.uid", id.pod("uid"))
	put("k8s.pod.ip", id.pod("ip"))
	put("k8s.node.name", id.pod("node_name"), id.meta.Get("__meta_kubernetes_node_name"))
	put("k8s.container.name", id.pod("container_name"))
	w.putTo(attributes)
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

// serviceName tries, in this order: labels that name a service, annotations that do, labels that name an
// application, the workload, the container, the job.
func (id identified) serviceName(w workload) string {
	return first(
		id.public.Get("service_name"),
		id.annotated("service_name"),
		id.meta.Get(metaAnnotation+"pyroscope_io_service_name"),
		id.podLabel("app_kubernetes_io_name"),
		id.podLabel("app"),
		id.podLabel("k8s_app"),
		w.name,
		id.pod("container_name"),
		id.job,
	)
}

// instanceID is unique among the instances of a service. For containers it is put together as the semantic
// conventions for Kubernetes' attributes recommend.
func (id identified) instanceID() string {
	if stated := first(id.public.Get("service_instance_id"), id.annotated("service_instance_id")); stated != "" {
		return stated
	}
	if id.instance {
		return id.public.Get(model.InstanceLabel)
	}
	parts := []string{id.meta.Get("__meta_kubernetes_namespace"), id.pod("name"), id.pod("container_name")}
	if first(parts[1]) != "" && parts[0] != "" {
		if parts[2] == "" {
			parts = parts[:2]
		}
		return strings.Join(parts, ".")
	}
	return id.address.urlHost()
}

func (id identified) pod(name string) string { return id.meta.Get(metaPod + name) }

// podLabel is a public label, or a pod's label of the name.
func (id identified) podLabel(name string) string {
	return first(id.public.Get(name), id.meta.Get(metaLabel+name))
}

// annotated is what a pod's annotation `resource.opentelemetry.io/<key>` says. Discovery has `_` for the key's dots.
func (id identified) annotated(key string) string {
	return id.meta.Get(metaAnnotation + "resource_opentelemetry_io_" + key)
}

// workload is what a pod belongs to.
type workload struct {
	name string
	// attributes are pairs of key and value.
	attributes [][2]string
}

// scheduled matches the names that Kubernetes gives the jobs of a CronJob: its own and a time in minutes.
var scheduled = regexp.MustCompile(`^(.+)-\d{8,10}$`)

// workload finds out what is above the pod's controller. Discovery asks Kubernetes itself only where
// `attach_metadata` says so; the names tell as well.
func (id identified) workload() workload {
	name := id.pod("controller_name")
	w := workload{name: name}
	if name == "" {
		return workload{}
	}
	put := func(kind, name string) {
		w.name = name
		w.attributes = append(w.attributes, [2]string{"k8s." + kind + ".name", name})
	}
	switch id.pod("controller_kind") {
	case "ReplicaSet":
		put("replicaset", name)
		// A Deployment labels its pods with the hash that ends the ReplicaSet's name.
		stem, isDeployment := strings.CutSuffix(name, "-"+id.meta.Get(metaLabel+"pod_template_hash"))
		if deployment := id.pod("deployment_name"); deployment != "" {
			put("deployment", deployment)
		} else if isDeployment {
			put("deployment", stem)
		} else if stem, isRollout := strings.CutSuffix(name, "-"+id.meta.Get(metaLabel+"rollouts_pod_template_hash")); isRollout {
			w.name = stem // Argo's, for which there is no attribute
		}
	case "Job":
		put("job", name)
		if cron := id.pod("cronjob_name"); cron != "" {
			put("cronjob", cron)
		} else if match := scheduled.FindStringSubmatch(name); match != nil {
			put("cronjob", match[1])
		}
	case "StatefulSet":
		put("statefulset", name)
	case "DaemonSet":
		put("daemonset", name)
	case "Node":
		w.name = "" // a static pod: its container names it better than the machine does
	}
	return w
}

func (w workload) putTo(attributes pcommon.Map) {
	for _, kv := range w.attributes {
		attributes.PutStr(kv[0], kv[1])
	}
}

// putImage splits an image's reference: the name keeps registry and path, a digest is left out.
func putImage(attributes pcommon.Map, image string) {
	if image == "" {
		return
	}
	image, _, _ = strings.Cut(image, "@")
	name, tag := image, ""
	// A colon before the last slash is that of a registry's port.
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		name, tag = image[:colon], image[colon+1:]
	}
	attributes.PutStr("container.image.name", name)
	if tag != "" {
		attributes.PutEmptySlice("container.image.tags").AppendEmpty().SetStr(tag)
	}
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
