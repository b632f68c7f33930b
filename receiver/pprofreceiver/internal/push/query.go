// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// queryAttributePrefix marks the query keys of a push that become resource attributes of any name.
const queryAttributePrefix = "attr."

// queryIdentity reads the identity of a push from its query. Keys in passed are somebody else's.
// All faults are named: a key that was dropped in silence would be looked for in the backend.
func queryIdentity(rawQuery string, passed []string) (ingest.Identity, error) {
	id := ingest.NewIdentity()
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return id, fmt.Errorf("query: %w", err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(passed, key) {
			continue
		}
		name, isAttribute := strings.CutPrefix(key, queryAttributePrefix)
		switch key {
		case ingest.AttributeServiceName, ingest.AttributeServiceNamespace, ingest.AttributeServiceVersion, ingest.AttributeServiceInstanceID:
		default:
			if !isAttribute || name == "" {
				errs = append(errs, fmt.Errorf("query key %q is unknown: use service.name, service.namespace, "+
					"service.version, service.instance.id or attr.<key>", key))
				continue
			}
		}
		if err := stateAttribute(id.Stated, name, query[key]); err != nil {
			errs = append(errs, fmt.Errorf("query key %q %w", key, err))
		}
	}
	return id, errors.Join(errs...)
}

func stateAttribute(stated pcommon.Map, name string, values []string) error {
	_, again := stated.Get(name)
	switch value := values[0]; {
	case again || len(values) > 1:
		return errors.New("stands more than once")
	case !utf8.ValidString(name) || !utf8.ValidString(value):
		return errors.New("is not UTF-8")
	case value == "" && name == ingest.AttributeServiceName:
		return errors.New("must not be empty")
	default:
		stated.PutStr(name, value)
		return nil
	}
}
