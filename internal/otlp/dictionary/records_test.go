// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// fill adds entries of all tables to d.
func fill(d *Dictionary, from, until int) {
	for i := from; i < until; i++ {
		key := d.Strings.Intern(fmt.Sprint("key", i%7))
		a := d.Attributes.Intern(Attribute{Key: key, Value: StringValue(fmt.Sprint("value", i))})
		b := d.Attributes.Intern(Attribute{Key: key, Unit: key, Value: IntValue(int64(-i))})
		set := d.AttributeSets.Intern([]int32{int32(a), int32(b)})
		function := d.Functions.Intern(Function{Name: d.Strings.Intern(fmt.Sprint("f", i)), Filename: key,
			StartLine: int64(i)})
		mapping := d.Mappings.Intern(Mapping{MemoryStart: uint64(i), MemoryLimit: 1 << 63, Filename: key, Attributes: set})
		location := d.Locations.Intern(Location{Mapping: mapping, Attributes: set, Address: 1<<64 - 1 - uint64(i)},
			[]Line{{function, int64(i), 3}, {function, 1, 0}})
		d.Stacks.Intern([]int32{int32(location), 1, int32(location)})
		d.Links.Intern(Link{TraceID: [16]byte{byte(i), byte(i >> 8), 1}, SpanID: [8]byte{2}})
	}
}

func table(d *Dictionary) any {
	pd := pprofile.NewProfiles()
	d.CopyTo(pd.Dictionary())
	b, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	return b
}

// A dictionary that is written in parts is equal to the one that it is read into.
func TestReadWhatWasAppended(t *testing.T) {
	d, copied := New(), NewCopying()
	for i := range 4 {
		mark := d.Mark()
		fill(d, i*100, (i+1)*100)
		require.NoError(t, copied.Read(d.AppendSince(nil, mark)))
		require.Equal(t, table(d), table(copied))
	}
	require.Equal(t, d.Mark(), copied.Mark())
	require.ErrorContains(t, copied.Read(d.AppendSince(nil, Mark{})), "twice")
	whole := New()
	require.NoError(t, whole.Read(d.AppendSince(nil, Mark{})))
	require.Equal(t, table(d), table(whole))
}

// FuzzRead changes bytes of a dictionary: Read returns an error, or entries whose references are valid.
func FuzzRead(f *testing.F) {
	d := New()
	fill(d, 0, 3)
	f.Add(d.AppendSince(nil, Mark{}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := New()
		if d.Read(b) != nil {
			return
		}
		d.CopyTo(pprofile.NewProfilesDictionary())
		for i := range d.Stacks.Len() {
			for _, l := range d.Stacks.At(StackIndex(i)) {
				_, lines := d.Locations.At(LocationIndex(l))
				for _, line := range lines {
					d.Strings.At(d.Functions.At(line.Function).Name)
				}
			}
		}
	})
}

// A list or map that is damaged is refused when it is read, not when it is written.
func TestReadRefusesDamagedValues(t *testing.T) {
	list := pcommon.NewValueSlice()
	list.Slice().AppendEmpty().SetStr("one")
	list.Slice().AppendEmpty().SetEmptyMap().PutInt("n", 7)
	d := New()
	d.Attributes.Intern(Attribute{Key: d.Strings.Intern("key"), Value: ValueOf(list)})
	sound := d.AppendSince(nil, Mark{})
	require.NoError(t, New().Read(sound))
	refused := 0
	for i := range sound {
		for _, v := range []byte{0, 1, 6, 0x7f, 0xff} {
			damaged := bytes.Clone(sound)
			damaged[i] = v
			read := New()
			if read.Read(damaged) != nil {
				refused++
				continue
			}
			read.CopyTo(pprofile.NewProfilesDictionary())
		}
	}
	require.Positive(t, refused)
}
