// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Attribute keys of the semantic conventions.
const (
	attributeServiceName       = "service.name"
	attributeServiceNamespace  = "service.namespace"
	attributeServiceVersion    = "service.version"
	attributeServiceInstanceID = "service.instance.id"
	attributeServerAddress     = "server.address"
	attributeServerPort        = "server.port"
	attributeURLFull           = "url.full"
	attributeFileName          = "file.name"
	attributeFilePath          = "file.path"

	unknownService = "unknown_service"
)

// queryAttributePrefix marks the query keys of a push that become resource attributes of any name.
const queryAttributePrefix = "attr."

// identity says where a payload comes from. Its maps are shared between payloads and read only.
type identity struct {
	// derived is what the receiver found out by itself; configured attributes win over it.
	derived pcommon.Map
	// stated is what the sender said; it wins over configured attributes.
	stated pcommon.Map
}

func newIdentity() identity {
	id := identity{derived: pcommon.NewMap(), stated: pcommon.NewMap()}
	id.derived.PutStr(attributeServiceName, unknownService)
	return id
}

func (id identity) putTo(attributes, configured pcommon.Map) {
	for _, from := range []pcommon.Map{id.derived, configured, id.stated} {
		for key, value := range from.All() {
			value.CopyTo(attributes.PutEmpty(key))
		}
	}
}

// queryIdentity reads the identity of a push from its query. Keys in passed are somebody else's.
// All faults are named: a key that was dropped in silence would be looked for in the backend.
func queryIdentity(rawQuery string, passed []string) (identity, error) {
	id := newIdentity()
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
		case attributeServiceName, attributeServiceNamespace, attributeServiceVersion, attributeServiceInstanceID:
		default:
			if !isAttribute || name == "" {
				errs = append(errs, fmt.Errorf("query key %q is unknown: use service.name, service.namespace, "+
					"service.version, service.instance.id or attr.<key>", key))
				continue
			}
		}
		if err := stateAttribute(id.stated, name, query[key]); err != nil {
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
	case value == "" && name == attributeServiceName:
		return errors.New("must not be empty")
	default:
		stated.PutStr(name, value)
		return nil
	}
}
