// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/discovery"
	"go.yaml.in/yaml/v2"
)

// kubernetesKey is the only discovery that the slim build lacks, since it needs the whole Kubernetes client.
const kubernetesKey = "kubernetes_sd_configs"

var (
	yamlLine    = regexp.MustCompile(`line \d+: `)
	yamlUnknown = regexp.MustCompile(`field (\S+) not found in type (\S+)`)
	// yamlDuration matches the errors of Prometheus' durations.
	yamlDuration = regexp.MustCompile(`^(?:not a valid duration string: |unknown unit .* in duration )(".*")$`)
	yamlValue    = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: `[^`]*`)? into (\\S+)")
)

// instead has what replaces keys of Prometheus and Grafana Alloy.
var instead = map[string]string{
	"profiling_config": ": use `profiles`", "metrics_path": ": use `path_prefix`, or `path` in `profiles`",
	"targets": ": use `static_configs: [{targets: [...]}]`",
}

// yamlTypes are YAML's types in words.
var yamlTypes = map[string]string{"str": "a string", "int": "a number", "float": "a number", "bool": "true or false",
	"seq": "a list", "map": "a section", "null": "nothing"}

// typeName returns a type of Go as a user of YAML knows it.
func typeName(t string) string {
	switch {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case t == "string":
		return "a string"
	case t == "bool":
		return "true or false"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"), strings.HasPrefix(t, "float"):
		return "a number"
	}
	return "a section"
}

// readable rewords the errors of yaml.v2 and of Prometheus' types for a section. Their line numbers are not those of
// the user's file, their types are Go's, they name no keys, and the values that they quote may be secrets in the wrong
// place.
func readable(section any, err error) error {
	var errs []error
	messages := messagesOf(err)
	slices.Sort(messages)
	for _, message := range slices.Compact(messages) {
		reworded := reword(message)
		paths := locate("", section, func(inner any) any { return inner }, message)
		if unknown := yamlUnknown.FindStringSubmatch(message); unknown != nil {
			for i, path := range paths {
				paths[i] = "`" + path + "`" + strings.TrimPrefix(reworded, "`"+unknown[1]+"`")
			}
		} else {
			for i, path := range paths {
				paths[i] = "`" + path + "`: " + reworded
			}
		}
		if len(paths) == 0 {
			paths = []string{reworded}
		}
		for _, located := range paths {
			errs = append(errs, errors.New(located))
		}
	}
	return errors.Join(errs...)
}

// messagesOf returns the messages of an error, without line numbers.
func messagesOf(err error) []string {
	if err == nil {
		return nil
	}
	messages := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var several *yaml.TypeError
	if errors.As(err, &several) {
		messages = slices.Clone(several.Errors)
	}
	for i, message := range messages {
		messages[i] = yamlLine.ReplaceAllString(message, "")
	}
	return messages
}

// locate returns the keys below path whose value alone causes an error. wrap puts a value at the path into a section
// that has nothing else.
func locate(path string, value any, wrap func(any) any, message string) (paths []string) {
	causes := func(section any) bool {
		_, err := decode(section)
		return slices.Contains(messagesOf(err), message)
	}
	visit := func(path string, inner any, wrap func(any) any) {
		if causes(wrap(inner)) {
			paths = append(paths, locate(path, inner, wrap, message)...)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		if causes(wrap(map[string]any{})) {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			visit(strings.TrimPrefix(path+"."+key, "."), v[key],
				func(inner any) any { return wrap(map[string]any{key: inner}) })
		}
	case []any:
		if causes(wrap([]any{})) {
			break
		}
		for i, item := range v {
			visit(fmt.Sprintf("%s[%d]", path, i), item, func(inner any) any { return wrap([]any{inner}) })
		}
	}
	if len(paths) == 0 && path != "" {
		return []string{path}
	}
	return paths
}

// reword returns a message in the words of a configuration.
func reword(message string) string {
	if duration := yamlDuration.FindStringSubmatch(message); duration != nil {
		return "must be a duration in whole numbers of y, w, d, h, m, s and ms, as in 1h30m, found " + duration[1]
	}
	if value := yamlValue.FindStringSubmatch(message); value != nil {
		return fmt.Sprintf("found %s where %s is expected", cmp.Or(yamlTypes[value[1]], value[1]), typeName(value[2]))
	}
	unknown := yamlUnknown.FindStringSubmatch(message)
	if unknown == nil {
		return message
	}
	if unknown[1] == kubernetesKey { // it is known in the full build
		return "`" + kubernetesKey + "` is not in the slim build: use the full build of otelcol-profiles"
	}
	message = fmt.Sprintf("`%s` is not a key here", unknown[1]) + instead[unknown[1]]
	if strings.HasSuffix(unknown[2], ".yamlProfiles") {
		message += ": the kinds are `process_cpu`, `memory`, `goroutine`, `block`, `mutex`, `fgprof` and `trace`, others go to `custom`"
	}
	if strings.HasSuffix(unknown[1], "_sd_configs") {
		message += fmt.Sprintf("; use one of %s", strings.Join(discoveryKeys(), ", "))
	}
	return message
}

func discoveryKeys() []string {
	var keys []string
	for _, name := range discovery.RegisteredConfigNames() {
		if name != "static" {
			name += "_sd"
		}
		keys = append(keys, "`"+name+"_configs`")
	}
	return keys
}
