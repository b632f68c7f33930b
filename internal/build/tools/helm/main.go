// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command helm does what the tests need of Helm by Helm's own packages: it compiles in a fraction of the time of the
// whole command, which `make e2e-kubernetes` uses.
//
//	helm CHART RELEASE_NAMESPACE < values.json
//
// It checks the chart as `helm lint` does, and prints the objects of `helm template` as a list in JSON.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder, namespace string) error {
	values := map[string]any{}
	if err := json.NewDecoder(os.Stdin).Decode(&values); err != nil {
		return err
	}
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	release := common.ReleaseOptions{Name: "release", Namespace: namespace, Revision: 1, IsInstall: true}
	toRender, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return err
	}
	for _, message := range lint.RunAll(folder, values, namespace).Messages {
		if message.Severity > support.InfoSev {
			return message
		}
	}
	files, err := engine.Render(chart, toRender)
	if err != nil {
		return err
	}
	objects := []json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, text := range regexp.MustCompile(`(?m)^---$`).Split(files[name], -1) {
			if strings.TrimSpace(text) == "" {
				continue
			}
			object, err := yaml.YAMLToJSONStrict([]byte(text))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			objects = append(objects, object)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(objects)
}
