// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// queryAttributePrefix marks the query keys of a push that become resource attributes of any name.
const queryAttributePrefix = "attr."

// The query keys that describe the body of a push.
const (
	queryFormat      = "format"
	queryAt          = "at"
	querySampleType  = "sample_type"
	queryTemporality = "temporality"

	formatAuto = "auto"
)

var bodyKeys = []string{queryFormat, queryAt, querySampleType, queryTemporality}

var identityKeys = []string{
	ingest.AttributeServiceName, ingest.AttributeServiceNamespace, ingest.AttributeServiceVersion,
	ingest.AttributeServiceInstanceID,
}

// readQuery reads the identity of the sender and the description of the body from the query of a push. It ignores the
// keys in passed. Other unknown keys are errors: a user would look in the backend for a key that was dropped silently.
func readQuery(rawQuery string, passed []string) (ingest.Payload, error) {
	p := ingest.Payload{Identity: ingest.NewIdentity()}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return p, fmt.Errorf("query: %w", err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(query)) {
		name, isAttribute := strings.CutPrefix(key, queryAttributePrefix)
		switch {
		case slices.Contains(passed, key):
			continue
		case slices.Contains(bodyKeys, key):
			err = describe(&p, key, query[key])
		case isAttribute && name != "", slices.Contains(identityKeys, key):
			err = stateAttribute(p.Stated, name, query[key])
		default:
			err = errors.New(
				"is unknown: use service.name, service.namespace, service.version, service.instance.id, attr.<key>, format, at, sample_type or temporality")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("query key %q %w", key, err))
		}
	}
	return p, errors.Join(errs...)
}

// describe reads a key that describes the body.
func describe(p *ingest.Payload, key string, values []string) error {
	if len(values) > 1 {
		return errRepeated
	}
	switch value := values[0]; key {
	case queryTemporality:
		var err error
		p.Temporality, err = kind.ParseTemporality(value)
		return err
	case queryFormat:
		if value == formatAuto {
			return nil
		}
		if !slices.Contains(ingest.AllFormats(), value) {
			return fmt.Errorf("must be %s or one of %s, found %q", formatAuto, strings.Join(ingest.AllFormats(), ", "), value)
		}
		p.Format = formats.Format(value)
	case queryAt:
		at, err := time.Parse(time.RFC3339Nano, value)
		if number, notNumber := strconv.ParseInt(value, 10, 64); notNumber == nil {
			nanos := events.UnixNanos(number)
			at, err = time.Unix(0, int64(nanos)), nil
			if nanos == 0 {
				err = errors.New("out of range")
			}
		}
		if err != nil {
			return fmt.Errorf("must be a Unix time between 2000 and 2100 or as in RFC 3339, found %q", value)
		}
		p.Ended = at
	case querySampleType:
		name, unit, ok := strings.Cut(value, "/")
		if !ok || name == "" || unit == "" || !utf8.ValidString(value) {
			return fmt.Errorf("must be a type and a unit, such as cpu/nanoseconds, found %q", value)
		}
		p.Folded.SampleType, p.Folded.Unit = name, unit
	}
	return nil
}

var errRepeated = errors.New("is set more than once")

// stateAttribute adds an attribute that the sender states.
func stateAttribute(stated pcommon.Map, name string, values []string) error {
	_, again := stated.Get(name)
	switch value := values[0]; {
	case again || len(values) > 1:
		return errRepeated
	case !utf8.ValidString(name) || !utf8.ValidString(value):
		return errors.New("is not UTF-8")
	case value == "" && name == ingest.AttributeServiceName:
		return errors.New("must not be empty")
	default:
		stated.PutStr(name, value)
		return nil
	}
}
