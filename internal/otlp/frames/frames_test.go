// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestFrames(t *testing.T) {
	pd := profiletest.New().Resource().Profile("cpu", "nanoseconds").
		Sample(profiletest.Value(1, "leaf", "mid", "leaf", "main"), profiletest.Value(2)).Build()
	var f Frames
	f.Begin(pd.Dictionary(), 2)
	stack := profiletest.SampleAt(pd, 0).StackIndex()
	for range 2 { // the second answer is remembered
		leaf, fault := f.Leaf(stack)
		assert.Equal(t, None, fault)
		assert.Equal(t, "leaf", f.Name(leaf))
	}
	names, fault := f.All(stack)
	assert.Equal(t, None, fault)
	texts := []string{}
	for _, name := range names {
		texts = append(texts, f.Name(name))
	}
	assert.Equal(t, []string{"leaf", "mid", "main"}, texts)
	leaf, fault := f.Leaf(profiletest.SampleAt(pd, 1).StackIndex())
	assert.Equal(t, None, fault)
	assert.Equal(t, Unknown, f.Name(leaf))
}

// As `go tool pprof` does: a function is left out with all that it calls, unless nobody calls it.
func TestDrop(t *testing.T) {
	for stack, want := range map[string]string{ // leaf first
		"main":                          "main",
		"sys malloc use main":           "use main",
		"malloc use malloc main":        "main",
		"sys malloc":                    "sys malloc",
		"malloc main malloc":            "main malloc",
		"leaf use main":                 "leaf use main",
		"malloc use main use":           "use main",
		"sys malloc malloc use use use": "use",
	} {
		pd := profiletest.New().Profile("space", "bytes").Sample(profiletest.Value(1, strings.Fields(stack)...)).Build()
		var f Frames
		f.Begin(pd.Dictionary(), 1)
		f.Drop(func(name string) bool { return name == "malloc" })
		names, fault := f.All(1)
		assert.Equal(t, None, fault)
		texts := []string{}
		for _, name := range names {
			texts = append(texts, f.Name(name))
		}
		assert.Equal(t, strings.Fields(want), texts, stack)
		leaf, fault := f.Leaf(1)
		assert.Equal(t, None, fault)
		assert.Equal(t, texts[0], f.Name(leaf))
	}
}

func TestFramesOutOfRange(t *testing.T) {
	for name, broken := range map[string]func(pprofile.ProfilesDictionary){
		"location": func(d pprofile.ProfilesDictionary) { d.StackTable().At(1).LocationIndices().SetAt(0, 99) },
		"negative": func(d pprofile.ProfilesDictionary) { d.StackTable().At(1).LocationIndices().SetAt(0, -1) },
		"function": func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().At(0).SetFunctionIndex(99) },
		"string":   func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetNameStrindex(-5) },
	} {
		pd := profiletest.New().Profile("cpu", "ns").Sample(profiletest.Value(1, "leaf", "main")).Build()
		broken(pd.Dictionary())
		var f Frames
		f.Begin(pd.Dictionary(), 1)
		for range 2 {
			_, fault := f.Leaf(1)
			assert.Equal(t, Index, fault, name)
		}
		_, fault := f.All(1)
		assert.Equal(t, Index, fault, name)
	}
	var f Frames
	f.Begin(pprofile.NewProfilesDictionary(), 0)
	for stack, want := range map[int32]Fault{0: None, 1: Index, -1: Index} {
		_, fault := f.Leaf(stack)
		assert.Equal(t, want, fault)
		_, fault = f.All(stack)
		assert.Equal(t, want, fault)
	}
}

// TestFramesAreBounded has locations of many lines that many stacks share.
func TestFramesAreBounded(t *testing.T) {
	pd := profiletest.New().Profile("cpu", "ns").Sample(profiletest.Value(1, "leaf")).Build()
	d := pd.Dictionary()
	lines := d.LocationTable().At(1).Lines()
	for range 2000 {
		lines.At(0).CopyTo(lines.AppendEmpty())
	}
	for range 2000 {
		d.StackTable().At(1).CopyTo(d.StackTable().AppendEmpty())
	}
	var f Frames
	f.Begin(d, 1)
	faults := map[Fault]int{}
	for i := range d.StackTable().Len() {
		_, fault := f.All(int32(i))
		faults[fault]++
	}
	assert.Positive(t, faults[None])
	assert.Positive(t, faults[Expansion])
}

func TestPackage(t *testing.T) {
	for name, want := range map[string]string{
		"net/http.(*conn).serve":                  "net/http",
		"net/http.HandlerFunc.ServeHTTP":          "net/http",
		"example.com/shop/cart.Add":               "example.com/shop/cart",
		"example.com/shop/cart.Map[go.shape.int]": "example.com/shop/cart",
		"runtime.mallocgc":                        "runtime",
		"main.main":                               "main",
		"encoding/json.(*decodeState).object":     "encoding/json",
		"com.shop.Cart.add":                       "com.shop.Cart",
		"app::cart::add":                          "app::cart",
		"std::vec<int>::push_back":                "std",
		"read":                                    "read",
		"[unknown]":                               "[unknown]",
		"":                                        "",
	} {
		assert.Equal(t, want, Package(name), name)
	}
}
