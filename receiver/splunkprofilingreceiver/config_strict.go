// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// unmarshalStrict reads conf into section, and refuses keys that section does not have, which confighttp would
// pass over in silence.
func unmarshalStrict(conf *confmap.Conf, section any) error {
	known := map[string]bool{}
	collectKeys(reflect.TypeOf(section).Elem(), known)
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(conf.ToStringMap())) {
		if !known[key] {
			errs = append(errs, fmt.Errorf("`%s` is not a key of this section", key))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return conf.Unmarshal(section)
}

// collectKeys notes the keys that a config struct is read from, those of squashed structs included.
func collectKeys(section reflect.Type, known map[string]bool) {
	for field := range section.Fields() {
		if !field.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		if slices.Contains(strings.Split(options, ","), "squash") {
			collectKeys(field.Type, known)
		} else if name != "" {
			known[name] = true
		}
	}
}
