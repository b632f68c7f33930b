// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal reads conf into section, a pointer to a struct, and refuses keys that section does not have. It is for sections that
// squash one of the Collector's HTTP configs: confighttp decodes itself with unknown keys ignored (confmap.WithIgnoreUnused,
// since its `keepalive` section: open-telemetry/opentelemetry-collector#15308), so that a misspelt key would be accepted
// silently. It can go when confighttp refuses unknown keys again; TestConfigHTTPIgnoresUnknownKeys fails then.
func Unmarshal(conf *confmap.Conf, section any) error {
	known := map[string]bool{}
	addKeys(known, reflect.TypeOf(section).Elem())
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(conf.ToStringMap())) {
		if !known[key] {
			errs = append(errs, fmt.Errorf("`%s` is not a key of this section", key))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return conf.Unmarshal(section)
}

// addKeys collects the keys that a config struct is read from, those of squashed structs included.
func addKeys(known map[string]bool, section reflect.Type) {
	for field := range section.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		switch {
		case !field.IsExported():
		case slices.Contains(strings.Split(options, ","), "squash"):
			addKeys(known, field.Type)
		case name != "":
			known[name] = true
		}
	}
}
