// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// label is a label of a series.
type label struct{ name, value string }

// Labels with a meaning in Pyroscope.
const (
	labelProfileName = "__name__"
	labelDelta       = "__delta__"
	labelService     = "service_name"
)

const attributeService = "service.name"

// unknownService is what Pyroscope's own clients send without a service name.
const unknownService = "unknown_service"

// preferred are the attributes that are kept first if there are more labels than allowed.
var preferred = []string{
	"service.namespace", "service.version", "deployment.environment.name", "k8s.cluster.name", "k8s.namespace.name",
	"k8s.deployment.name", "k8s.statefulset.name", "k8s.daemonset.name", "k8s.container.name", "k8s.pod.name",
	"host.name", "cloud.region", "process.runtime.name", "process.runtime.version", "service.instance.id",
}

// labeler makes the labels of series.
type labeler struct {
	cfg      *Config
	first    []string // the attributes that are kept first
	external []label
}

func newLabeler(cfg *Config) *labeler {
	l := &labeler{cfg: cfg, first: cfg.Labels.Include}
	if len(l.first) == 0 {
		l.first = preferred
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.ExternalLabels)) {
		l.external = append(l.external, label{name, cfg.ExternalLabels[name]})
	}
	return l
}

// labels returns the labels of a series, sorted by name, and how many were dropped because there are more than allowed:
// the preferred attributes are kept first, then the others by name. If several attributes become the same label, the first is
// used. The server adds sampleLabels labels of samples, and counts all labels, including __delta__.
func (l *labeler) labels(resource pcommon.Map, profileName string, sampleLabels int) (labels []label, dropped int) {
	service := unknownService
	if v, ok := resource.Get(attributeService); ok && v.AsString() != "" {
		service = v.AsString()
	}
	labels = append(labels, label{labelProfileName, profileName}, label{labelDelta, "false"}, label{labelService, cutText(service)})
	labels = append(labels, l.external...)
	taken := map[string]bool{}
	for _, known := range labels {
		taken[known.name] = true
	}
	type candidate struct {
		label
		key  string
		rank int
	}
	var candidates []candidate
	for key, v := range resource.All() {
		rank := slices.Index(l.first, key)
		if key == attributeService || slices.Contains(l.cfg.Labels.Exclude, key) || len(l.cfg.Labels.Include) > 0 && rank < 0 {
			continue
		}
		if rank < 0 {
			rank = len(l.first)
		}
		if value := v.AsString(); value != "" {
			candidates = append(candidates, candidate{label{labelName(key, l.cfg.Labels.Dots), cutText(value)}, key, rank})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.key, b.key))
	})
	for _, c := range candidates {
		switch {
		case taken[c.name] || c.name == "":
		case len(labels)+sampleLabels >= l.cfg.Labels.Max:
			dropped++
		default:
			taken[c.name] = true
			labels = append(labels, c.label)
		}
	}
	slices.SortFunc(labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
	return labels, dropped
}

// labelName returns the name of the label for an attribute: characters that Prometheus does not allow become underscores, and so
// do dots if configured.
func labelName(key, dots string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.' && dots == dotsKeep:
			return r
		default:
			return '_'
		}
	}, key)
	if clean != "" && clean[0] >= '0' && clean[0] <= '9' {
		clean = "_" + clean
	}
	return clean
}
