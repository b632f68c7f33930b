// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Each README has a table with every key of its component, and of the Collector's own sections the keys that it
// chooses, with their defaults.
func TestKeysOfReadmes(t *testing.T) {
	eachComponent(t, func(t *testing.T, folder string, factory component.Factory, _ metadata) {
		k := keys{own: map[string]reflect.Value{}, others: map[string]reflect.Value{}, sections: map[string]bool{}}
		k.add(reflect.ValueOf(factory.CreateDefaultConfig()).Elem(), "", true)
		readme := filepath.Join(root, folder, "README.md")
		header := regexp.MustCompile(`\| key \| type \| default .*`).FindString(readFile(t, readme))
		if len(k.own)+len(header) == 0 || folder == "receiver/profilingreceiver" {
			return // no keys, or those of the profiler
		}
		rows := profiletest.ReadmeTable(t, readme, header)
		for key := range k.own {
			assert.Contains(t, rows, key)
		}
		for key, cells := range rows {
			value, isKey := k.own[key]
			if !isKey {
				value, isKey = k.others[key]
			}
			if isKey {
				assert.Equal(t, printed(value), withoutQuotes.Replace(cells[2]), key)
			} else if assert.Contains(t, k.sections, key) && (cells[2] == "on" || cells[2] == "off") {
				assert.Equal(t, k.sections[key], cells[2] == "on", key)
			}
		}
	})
}

// keys are those of a configuration, with their values.
type keys struct {
	// own are of structs of this repository, others of the Collector's.
	own, others map[string]reflect.Value
	// sections have whether they are there, or are enabled.
	sections map[string]bool
}

// add adds the keys of a section. Optional sections get their defaults.
func (k keys) add(section reflect.Value, prefix string, isOwn bool) {
	for field, value := range section.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		isOn := false
		if get := value.Addr().MethodByName("GetOrInsertDefault"); get.IsValid() {
			isOn = value.Addr().MethodByName("HasValue").Call(nil)[0].Bool()
			value = get.Call(nil)[0].Elem()
		}
		switch {
		case value.Kind() == reflect.Struct:
			inner := prefix
			if options != "squash" {
				enabled := value.FieldByName("Enabled")
				k.sections[prefix+name] = isOn || enabled.IsValid() && enabled.Bool()
				inner += name + "."
			}
			k.add(value, inner, isOwn && strings.HasPrefix(value.Type().PkgPath(), module))
		case isOwn:
			k.own[prefix+name] = value
		default:
			k.others[prefix+name] = value
		}
	}
}

// withoutQuotes makes lists alike that are written as YAML and as Go prints them. Nothing is an empty list.
var withoutQuotes = strings.NewReplacer(`"`, "", ",", "", "map[]", "", "[]", "")

func printed(value reflect.Value) string {
	if value.Kind() == reflect.String {
		return withoutQuotes.Replace(value.String()) // secrets do not print themselves
	}
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return ""
	}
	return withoutQuotes.Replace(fmt.Sprint(value.Interface()))
}
