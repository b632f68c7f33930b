// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

type label struct{ name, value string }

// Labels with a meaning in Pyroscope.
const (
	labelProfileName = "__name__"
	labelDelta       = "__delta__"
	labelService     = "service_name"
)

const attributeService = "service.name"

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

// resourceLabels are the labels that the series of a resource share.
type resourceLabels struct {
	service string
	// best are the labels that are kept first, at most as many as a series can have, and total is how many there are. No
	// name is that of a label that every series has.
	best  []label
	total int
}

// ofResource returns the labels that attributes become: the preferred attributes first, then the others by name. If
// several attributes become the same label, the first is used. Only the values that a series can have are read, and
// those that are no string only if the budget allows it. Pyroscope would refuse a whole profile for a name that is too
// long.
func (l *labeler) ofResource(attributes pcommon.Map, b *budget) (labels resourceLabels) {
	if v, ok := attributes.Get(attributeService); ok {
		labels.service = labelValue(v, b)
	}
	labels.service = cmp.Or(labels.service, kind.UnknownService)
	type candidate struct {
		key   string
		value pcommon.Value
		rank  int
	}
	var candidates []candidate
	for key, v := range attributes.All() {
		rank := slices.Index(l.first, key)
		if key == attributeService || slices.Contains(l.cfg.Labels.Exclude, key) || len(l.cfg.Labels.Include) > 0 &&
			rank < 0 || isEmpty(v) {
			continue
		}
		if len(key) > maxLabelNameBytes {
			labels.total++
			continue
		}
		if rank < 0 {
			rank = len(l.first)
		}
		candidates = append(candidates, candidate{key, v, rank})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.key, b.key))
	})
	taken := map[string]bool{labelProfileName: true, labelDelta: true, labelService: true, "": true}
	for _, known := range l.external {
		taken[known.name] = true
	}
	for _, c := range candidates {
		name := kind.LabelName(c.key, l.cfg.Labels.Dots == dotsKeep)
		if taken[name] {
			continue
		}
		taken[name] = true
		labels.total++
		if len(labels.best) < l.cfg.Labels.Max {
			if value := labelValue(c.value, b); value != "" {
				labels.best = append(labels.best, label{name, value})
			}
		}
	}
	return labels
}

// ofProfile returns the labels that the attributes of a profile become, at most as many as a series can have, and how
// many were dropped. They distinguish profiles that are otherwise of one series.
func (l *labeler) ofProfile(pd pprofile.Profiles, profile pprofile.Profile, b *budget) (labels []label, dropped int) {
	for key, value := range otlp.Attributes(pd.Dictionary(), profile.AttributeIndices()) {
		switch {
		case !kind.IsSeriesAttribute(key), slices.Contains(l.cfg.Labels.Exclude, key), isEmpty(value):
			continue
		case len(labels) == l.cfg.Labels.Max, len(key) > maxLabelNameBytes:
			dropped++
			continue
		}
		name := kind.LabelName(key, l.cfg.Labels.Dots == dotsKeep)
		if s := labelValue(value, b); s != "" && name != "" && !hasLabel(labels, name) && !hasLabel(l.external, name) {
			labels = append(labels, label{name, s})
		}
	}
	return labels, dropped
}

func hasLabel(labels []label, name string) bool {
	return slices.ContainsFunc(labels, func(l label) bool { return l.name == name })
}

// labels returns the labels of a series, sorted by name, and how many of the profile's and the resource's were dropped
// because there are more than allowed. own are those that it has in any case. If profile and resource have one of the
// same name, the profile's is used. The server adds sampleLabels labels of samples, and counts all labels.
func (l *labeler) labels(resource *resourceLabels, own, ofProfile []label, sampleLabels int) (labels []label,
	dropped int) {
	labels = append(own, label{labelService, resource.service})
	labels = append(labels, l.external...)
	dropped = len(ofProfile) + resource.total
	for _, candidate := range slices.Concat(ofProfile, resource.best) {
		switch {
		case hasLabel(labels, candidate.name):
			dropped--
		case len(labels)+sampleLabels < l.cfg.Labels.Max:
			labels = append(labels, candidate)
			dropped--
		}
	}
	slices.SortFunc(labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
	return labels, dropped
}

func isEmpty(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return true
	case pcommon.ValueTypeStr:
		return v.Str() == ""
	case pcommon.ValueTypeBytes:
		return v.Bytes().Len() == 0
	default:
		return false
	}
}

// labelValue returns a value as the value of a label, or an empty string if the budget does not allow it.
func labelValue(v pcommon.Value, b *budget) string {
	if v.Type() != pcommon.ValueTypeStr && !b.allow(size.OfValue(v)) {
		return ""
	}
	return kind.LabelValue(v.AsString())
}
