// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// fill sets all fields that a block keeps to different values, except those that are sets of attributes.
func fill(v reflect.Value, next *int64) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case v.Type().Field(i).Tag.Get("parquet") == "-" || f.Type() == reflect.TypeFor[dictionary.AttributeSetIndex]():
		case f.Kind() == reflect.Struct:
			fill(f, next)
		case f.Kind() == reflect.String:
			f.SetString(strings.Repeat("x", int(*next)))
		default:
			f.SetInt(*next)
		}
		*next++
	}
}

// A block has every field of a profile.
func TestEveryFieldIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "block")
	w, err := Create(dir, "block")
	require.NoError(t, err)
	dict, next := dictionary.New(), int64(1)
	for range 3 {
		dict.Strings.Intern(strings.Repeat("k", dict.Strings.Len()))
		key := dictionary.StringIndex(dict.Strings.Len() - 1)
		a := dict.Attributes.Intern(dictionary.Attribute{Key: key, Value: dictionary.StringValue("v")})
		dict.AttributeSets.Intern([]int32{int32(a)})
	}
	list := make([]Profile, 3)
	for _, service := range []string{"a", "b"} {
		w.Service(service)
		w.Series(model.BlockSeries{Service: service, Profile: "p", Type: model.SampleType{Type: "delay", Unit: "ns"}},
			map[string]string{"k": "v"})
		for i := range list {
			fill(reflect.ValueOf(&list[i]).Elem(), &next)
			list[i].Attributes, list[i].Scope = dictionary.AttributeSetIndex(i), 2
			list[i].Samples, list[i].Values = 1, 1
			require.NoError(t, w.Profile(list[i], func(yield func(Row, error) bool) { yield(Row{Value: 1}, nil) }))
		}
		require.NoError(t, w.EndService(dict))
	}
	_, err = w.Close(0)
	require.NoError(t, err)
	r, err := Open(dir)
	require.NoError(t, err)
	defer r.Close()
	series, err := r.Series(&r.Services[1])
	require.NoError(t, err)
	require.Equal(t, "delay/nanoseconds", series[0].Type.String(), "earlier versions wrote the producer's name of a unit")
	scan := r.Scan()
	defer scan.Close()
	got := make([]Profile, len(list))
	require.NoError(t, scan.ProfileTimes(3, got))
	require.NoError(t, scan.ProfileKinds(3, got))
	require.NoError(t, scan.ProfileMetas(&r.Services[1], 3, got))
	require.Equal(t, list, got)
}

// docs/store.md names every column and every field.
func TestFormatIsDocumented(t *testing.T) {
	page := profiletest.FileBytes(t, "../../../docs/store.md")
	parts := regexp.MustCompile(`(?m)^(?:\*\*|\| )([a-z]+\.[a-z]+)(?::\*\*| \|)`).Split(string(page), -1)
	names := regexp.MustCompile(`(?m)^(?:\*\*|\| )([a-z]+\.[a-z]+)(?::\*\*| \|)`).FindAllStringSubmatch(string(page), -1)
	about := map[string]string{}
	for i, name := range names {
		text, _, _ := strings.Cut(parts[i+1], "\n\n")
		about[name[1]] += text
	}
	for file, schema := range map[string]*parquet.Schema{
		samplesFile: parquet.SchemaOf(sample{}), profilesFile: parquet.SchemaOf(profileRow{}),
		seriesFile: parquet.SchemaOf(seriesRow{}), stacksFile: parquet.SchemaOf(stackRow{}),
		attributesFile: parquet.SchemaOf(attributeRow{}),
	} {
		for _, column := range schema.Columns() {
			if name := column[0]; name != "block" {
				assert.Contains(t, about[file]+map[bool]string{true: "`attribute_set`"}[file == attributesFile], "`"+name+"`", file)
			}
		}
	}
	for _, object := range []any{Index{}, Service{}, Range{}, File{}} {
		for i := range reflect.TypeOf(object).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(object).Field(i).Tag.Get("json"), ",")
			assert.Contains(t, about[IndexFile], "`"+name+"`")
		}
	}
}
