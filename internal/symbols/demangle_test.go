// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	_ "embed"
	"strings"
	"testing"
	"time"

	"github.com/ianlancetaylor/demangle"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
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
	"_Dmain":                                                                 "_Dmain",
	"_ZN3foo3barEv.llvm.123":                                                 "foo::bar()",
	"parse.llvm.1234567":                                                     "parse",
	"parse.isra.0.constprop.1.cold":                                          "parse",
	"main.part.func1":                                                        "main.part.func1",
	"main.cold":                                                              "main.cold",
	"$s4main3FooC3baryyF":                                                    "$s4main3FooC3baryyF", // Swift
	"_Z":                                                                     "_Z",
}

// Names of C++ with packs, or with letters of which one could think that they expand packs.
var expandedNames = map[string]string{
	"_ZN5spark9transport8dispatchIJiiiiiiiiiiiiiiiiiEEEvDpT_": "void spark::transport::dispatch<" + ints(17) + ">(" +
		ints(17) + ")",
	"_ZZN5spark9transport8dispatchIJiiiiiiiiiiiiiiiiiEEEvDpT_ENKUlvE_clEv": "spark::transport::dispatch<" + ints(17) +
		">(" + ints(17) +
		")::{lambda()#1}::operator()() const",
	"_ZNSspLEPKc":                        "std::string::operator+=(char const*)",
	"_ZN8responsepLERKS_":                "response::operator+=(response const&)",
	"_Z7inspectIJidEEvSt5tupleIJDpKT_EE": "void inspect<int, double>(std::tuple<int const, double const>)",
}

func ints(n int) string { return strings.TrimSuffix(strings.Repeat("int, ", n), ", ") }

//go:embed testdata/longnames.txt
var realNames string

// Real names of the standard library, of LLVM and of a program with variants, tuples and lambdas are demangled in full.
func TestRealNamesAreDemangledInFull(t *testing.T) {
	for name, expected := range expandedNames {
		assert.Equal(t, expected, Demangle(name, DemangleFull))
	}
	for name := range strings.Lines(realNames) {
		name = strings.TrimSpace(name)
		text := Demangle(name, DemangleFull)
		assert.Equal(t, demangle.Filter(name, demangleOptions[DemangleFull]...), text)
		assert.NotEqual(t, name, text)
		assert.NotEqual(t, text, Demangle(name, DemangleTemplates))
	}
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

// Names that perf prints where it cannot demangle, or takes Rust for C++.
func TestReadable(t *testing.T) {
	for name, expected := range map[string]string{
		"main":                        "main",
		"main.(*T).Method":            "main.(*T).Method",
		"_ZNK4shop6BasketIlE5totalEv": "shop::Basket<long>::total",
		"_ZN4core3ptr13drop_in_place17h0123456789abcdefE":                                       "core::ptr::drop_in_place",
		"_RNvNtCs1234_7mycrate3foo3bar":                                                         "mycrate::foo::bar",
		"core::fmt::write::h0123456789abcdef":                                                   "core::fmt::write",
		"_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$::drop::hfedcba9876543210": "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		"shop::main::_$u7b$$u7b$closure$u7d$$u7d$::h00112233445566ff":                           "shop::main::{{closure}}",
		"::h0123456789abcdef":                                                                   "::h0123456789abcdef",
		"shop::h0123":                                                                           "shop::h0123",
		"_ZZN5spark9transport8dispatchIJiiiEEEvDpT_ENKUlvE_clEv":                                "spark::transport::dispatch<int, int, int>()::{lambda()#1}::operator()",
		"_Z": "_Z",
	} {
		assert.Equal(t, expected, Readable(name))
		assert.Equal(t, name != expected || name == "_Z", NeedsDemangling(name), name)
	}
}

// Names that need much more than their length stay as they are.
func TestReadableIsBounded(t *testing.T) {
	short := "_Z7exampleI" + strings.Repeat("Ss", 7) + "Evv"
	assert.Equal(t, "example<std::string"+strings.Repeat(", std::string", 6)+">", Readable(short))
	nested := "_Z1fI1aE"
	for range 10 {
		nested = "_Z1f1pIS0_S0_E" + nested[3:]
	}
	packs := "_Z1fIJ" + strings.Repeat("i", 60) + "EEv" + strings.Repeat("Dp1AI", 12) + "T_" + strings.Repeat("T_E", 12)
	for _, name := range []string{nested, packs, "_Z7exampleI" + strings.Repeat("Ss", 1<<11) + "Evv"} {
		began := time.Now()
		assert.LessOrEqual(t, len(Readable(name)), 4*len(name)+32)
		assert.Less(t, time.Since(began), 10*time.Second)
	}
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

// Nested expansions of packs are not carried out.
func TestDemangleIsBounded(t *testing.T) {
	packs := func(elements, depth int) string {
		return "IJ" + strings.Repeat("i", elements) + "EEv" + strings.Repeat("Dp1AI", depth) + "T_" + strings.Repeat("T_E",
			depth)
	}
	for _, name := range []string{
		"_Z1f" + packs(50, 50),
		"_ZZ1f" + packs(50, 50) + "E1g",
		"_Z1fIJ" + strings.Repeat("i", 1500) + "EEv" + strings.Repeat("DpT_", 500),
		"_Z1fIJ" + strings.Repeat("i", 1000) + "EEv" + strings.Repeat("DpPT_", 400),
		"_Z1fIJ" + strings.Repeat("i", 4000) + "EEvDpT_",
		"_Z1fIJ" + strings.Repeat("i", 500) + "EEv" + strings.Repeat("DpT_", 20),
		"_Z1fIJ" + strings.Repeat("i", 30) + "EEv" + strings.Repeat("DpSt5tupleIJ", 30) + "T_" + strings.Repeat("EE", 30),
		"_Z1fIJ" + strings.Repeat("i", 30) + "EEDTcl1g" + strings.Repeat("spcl1g", 30) + "fp_" + strings.Repeat("E", 30) +
			"EEDpT_",
		"_Z1fIJ" + strings.Repeat("i", 30) + "EEDTcl1g" + strings.Repeat("spcl1gIT_E", 30) + strings.Repeat("E", 30) +
			"EEDpT_",
		"_ZN1fspLIJ" + strings.Repeat("i", 50) + "EEEv" + strings.Repeat("Dp1AI", 50) + "T_" + strings.Repeat("T_E", 50),
	} {
		for _, style := range []DemangleStyle{DemangleFull, DemangleTemplates, DemangleSimple} {
			profiletest.RequireCost(t, profiletest.BoundOf(len(name), 16<<20, 64), func() { Demangle(name, style) })
		}
	}
	assert.Equal(t, "f", Demangle("_Z1f"+packs(50, 50), DemangleFull), "without templates and parameters")
	const real = "_ZSt11make_uniqueI3FooJRiiEENSt9_MakeUniqIT_E15__single_objectEDpOT0_"
	assert.Equal(t, "std::_MakeUniq<Foo>::__single_object std::make_unique<Foo, int&, int>(int&, int&&)",
		Demangle(real, DemangleFull))
}
