// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

func importer(src pprofile.ProfilesDictionary) *Importer {
	im := &Importer{}
	im.Reset(dictionary.New())
	im.Begin(src)
	return im
}

// Index 0 means the entry at 0, in tables that do not begin with the zero value.
func TestIndexZeroMeansTheFirstEntry(t *testing.T) {
	src := pprofile.NewProfilesDictionary()
	src.StringTable().Append("main")
	src.FunctionTable().AppendEmpty()
	src.LocationTable().AppendEmpty().Lines().AppendEmpty()
	src.StackTable().AppendEmpty().LocationIndices().Append(0)
	src.LinkTable().AppendEmpty().SetTraceID([16]byte{1})
	im := importer(src)
	stack, why := im.Stack(0)
	require.Equal(t, Understood, why)
	require.NotZero(t, stack)
	_, lines := im.dict.Locations.At(dictionary.LocationIndex(im.dict.Stacks.At(stack)[0]))
	assert.Equal(t, "main", im.dict.Strings.At(im.dict.Functions.At(lines[0].Function).Name))
	assert.Zero(t, im.Link(0), "except for links")
}

func TestMissingTablesReadAsZeroValues(t *testing.T) {
	im := importer(pprofile.NewProfilesDictionary())
	stack, why := im.Stack(0)
	assert.Equal(t, Understood, why)
	assert.Zero(t, stack)
	for _, i := range []int32{1, -1, 1<<31 - 1, -1 << 31} {
		_, why = im.Stack(i)
		assert.Equal(t, DropStackIndex, why)
	}
}

// The importer finds a reason at any depth, and reports the same one every time.
func TestReasons(t *testing.T) {
	for want, breakIt := range map[DropReason]func(pprofile.ProfilesDictionary){
		DropLocationIndex: func(d pprofile.ProfilesDictionary) { d.StackTable().At(1).LocationIndices().SetAt(0, 9) },
		DropFunctionIndex: func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().At(0).SetFunctionIndex(-2) },
		DropMappingIndex:  func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).SetMappingIndex(3) },
		DropStringIndex:   func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetFilenameStrindex(77) },
	} {
		d := pprofile.NewProfilesDictionary()
		newZeroValues().CopyTo(d)
		d.FunctionTable().AppendEmpty()
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(1)
		d.StackTable().AppendEmpty().LocationIndices().Append(1)
		breakIt(d)
		im := importer(d)
		im.Reach(1)
		im.ImportReached()
		for range 2 {
			_, why := im.Stack(1)
			assert.Equal(t, want, why)
		}
	}
}

// The main binary's mapping is the first of the table, whichever mapping a sample refers to first.
func TestMappingsKeepTheirOrder(t *testing.T) {
	d := pprofile.NewProfilesDictionary()
	newZeroValues().CopyTo(d)
	for i, name := range []string{"/bin/main", "/lib/libc.so"} {
		d.StringTable().Append(name)
		d.MappingTable().AppendEmpty().SetFilenameStrindex(int32(i + 1))
	}
	for _, mapping := range []int32{2, 2, 2, 1} {
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(mapping)
		l.SetAddress(uint64(d.LocationTable().Len()))
	}
	d.StackTable().AppendEmpty().LocationIndices().FromRaw([]int32{1, 2, 3, 4})
	im := importer(d)
	im.Reach(1)
	im.ImportReached()
	stack, _ := im.Stack(1)
	var s subset
	s.reset(im.dict)
	s.use(dictionary.StackTable, int32(stack))
	s.arrange(true)
	out := pprofile.NewProfilesDictionary()
	s.Write(out)
	assert.Equal(t, "/bin/main", out.StringTable().At(int(out.MappingTable().At(1).FilenameStrindex())))
}

func TestTextsThatAreNotUTF8(t *testing.T) {
	d := pprofile.NewProfilesDictionary()
	d.StringTable().FromRaw([]string{"", "bad\xff\xfe", "bad\xff", "k"})
	a := d.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(3)
	a.Value().SetEmptyMap().PutStr("in\xffner", "te\xffxt")
	im := importer(d)
	one, _ := im.String(1)
	other, _ := im.String(2)
	assert.Equal(t, "bad\uFFFD", im.dict.Strings.At(one))
	assert.Equal(t, one, other, "what reads the same is the same")
	set := pcommon.NewInt32Slice()
	set.Append(0)
	value := pcommon.NewValueEmpty()
	im.dict.Attributes.At(dictionary.AttributeIndex(im.dict.AttributeSets.At(im.AttributeSet(set))[0])).Value.CopyTo(value)
	assert.Equal(t, map[string]any{"in\uFFFDner": "te\uFFFDxt"}, value.AsRaw())
	assert.Equal(t, 3, im.Repairs[RepairInvalidUTF8])
}

func TestDeepValuesAreLeftOut(t *testing.T) {
	nested := func(depth int) pcommon.Value {
		v := pcommon.NewValueEmpty()
		for at := v; depth > 0; depth-- {
			at = at.SetEmptySlice().AppendEmpty()
		}
		return v
	}
	d := pprofile.NewProfilesDictionary()
	d.StringTable().FromRaw([]string{"", "k"})
	a := d.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(1)
	nested(maxValueDepth + 1).CopyTo(a.Value())
	im := importer(d)
	_, ok := im.CleanValue(nested(maxValueDepth))
	assert.True(t, ok)
	_, ok = im.CleanValue(nested(maxValueDepth + 1))
	assert.False(t, ok)
	assert.Equal(t, 1, im.Repairs[RepairAttributeDepth])

	set := pcommon.NewInt32Slice()
	set.Append(0)
	for range 2 {
		assert.Zero(t, im.AttributeSet(set))
	}
	assert.Equal(t, 2, im.Repairs[RepairAttributeDepth])
	assert.Zero(t, im.Repairs[RepairAttributeIndex])
}

// A sender of a later version refers from attributes into the string table. Over gRPC pdata leaves that unresolved.
func TestReferencesAreResolved(t *testing.T) {
	sent := pprofile.NewProfiles()
	sent.Dictionary().StringTable().Append("")
	rp := sent.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", "shop")
	rp.ScopeProfiles().AppendEmpty().Scope().Attributes().PutEmptySlice("list").AppendEmpty().SetStr("item")
	// Marshalling moves the texts into the dictionary of the message itself.
	_, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(sent)
	require.NoError(t, err)
	_, readable := sent.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
	require.False(t, readable)

	got := ResolveReferences(sent).ResourceProfiles().At(0)
	assert.Equal(t, map[string]any{"service.name": "shop"}, got.Resource().Attributes().AsRaw())
	assert.Equal(t, map[string]any{"list": []any{"item"}}, got.ScopeProfiles().At(0).Scope().Attributes().AsRaw())

	// The same in the attribute table.
	table := sent.Dictionary().AttributeTable()
	table.AppendEmpty()
	for _, v := range sent.ResourceProfiles().At(0).Resource().Attributes().All() {
		v.CopyTo(table.AppendEmpty().Value())
	}
	im := importer(sent.Dictionary())
	a, ok := im.attribute(1)
	require.True(t, ok)
	assert.Equal(t, dictionary.StringValue("shop"), im.dict.Attributes.At(a).Value)
}

// A set of very many attributes takes time in proportion to their number.
func TestManyAttributesOfOneKey(t *testing.T) {
	const n = 300_000
	d := pprofile.NewProfilesDictionary()
	d.StringTable().FromRaw([]string{"", "k"})
	for i := range n {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(1)
		a.Value().SetInt(int64(i))
	}
	set := pcommon.NewInt32Slice()
	for i := range n {
		set.Append(int32(n - 1 - i))
	}
	im := importer(d)
	kept := im.dict.AttributeSets.At(im.AttributeSet(set))
	require.Len(t, kept, 1)
	assert.Equal(t, dictionary.IntValue(n-1), im.dict.Attributes.At(dictionary.AttributeIndex(kept[0])).Value,
		"the first counts")
	assert.Equal(t, n-1, im.Repairs[RepairAttributeKey])
}

func TestWideMapsAreReadInProportion(t *testing.T) {
	v := pcommon.NewValueMap()
	v.Map().EnsureCapacity(1)
	long := strings.Repeat("k", 3)
	for i := range 2000 {
		v.Map().PutInt(long+string(rune(0x4e00+i)), int64(i))
	}
	back := pcommon.NewValueEmpty()
	dictionary.ValueOf(v).CopyTo(back)
	assert.Equal(t, v.AsRaw(), back.AsRaw())
}
