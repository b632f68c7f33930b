// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// demangled maps mangled names to full ones.
var demangled = map[string]string{
	"main":                        "main",
	"_start":                      "_start",
	"main.(*T).Method":            "main.(*T).Method",
	"_ZNK4shop6BasketIlE5totalEv": "shop::Basket<long>::total() const",
	"_ZN4shop5priceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi": "shop::price(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&, int)",
	"_ZN4core3ptr13drop_in_place17h0123456789abcdefE":                        "core::ptr::drop_in_place",
	"_RNvNtCs1234_7mycrate3foo3bar":                                          "mycrate::foo::bar",
	"_D4core6thread8osthread6Thread3runMFZv":                                 "core.thread.osthread.Thread.run",
	"_Dmain":                                                                 "_Dmain",
	"_D3std9algorithm9iteration__T3mapZQh":                                   "std.algorithm.iteration",
	"$s4main3FooC3baryyF":                                                    "main.Foo.bar",
	"$s4main6squareyS2iF":                                                    "main.square",
	"$s4main5PointV1x1yACSi_SitcfC":                                          "main.Point.init",
	"$sSa6appendyyxnF":                                                       "Swift.Array.append",
	"$sSS4mainE5shoutSSyF":                                                   "Swift.String.shout",
	"_Z":                                                                     "_Z",
	"$s":                                                                     "$s",
	"_D4":                                                                    "_D4",
}

func TestDemangle(t *testing.T) {
	for name, expected := range demangled {
		assert.Equal(t, expected, Demangle(name, DemangleFull), name)
		assert.Equal(t, name, Demangle(name, DemangleNone))
	}
	const name = "_ZN4shop6BasketIlE3addEl"
	assert.Equal(t, "shop::Basket<long>::add(long)", Demangle(name, DemangleFull))
	assert.Equal(t, "shop::Basket<long>::add", Demangle(name, DemangleTemplates))
	assert.Equal(t, "shop::Basket::add", Demangle(name, DemangleSimple))
}

// A short name can demangle to an exponentially long one.
func TestLongNamesAreCut(t *testing.T) {
	name := "_Z1fI1aE"
	for range 30 {
		name = "_Z1f1pIS0_S0_E" + name[3:]
	}
	assert.Less(t, len(Demangle(name, DemangleFull)), 1<<14)
	assert.Less(t, len(Demangle("_Z1f"+strings.Repeat("PFvS_E", 600), DemangleFull)), 1<<14)
}
