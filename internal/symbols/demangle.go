// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// DemangleStyle is how much of a demangled name is kept.
type DemangleStyle string

// The styles, from the whole name to the symbol as it is.
const (
	DemangleFull      DemangleStyle = "full"      // with parameters and template arguments
	DemangleTemplates DemangleStyle = "templates" // without the parameters
	DemangleSimple    DemangleStyle = "simple"    // without either
	DemangleNone      DemangleStyle = "none"      // as the linker has it
)

// maxDemangled is the power of two that bounds a demangled name: a mangled name of a kilobyte can become a gigabyte.
const maxDemangled = 12

var demangleOptions = map[DemangleStyle][]demangle.Option{
	DemangleFull:      {demangle.NoClones, demangle.MaxLength(maxDemangled)},
	DemangleTemplates: {demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(maxDemangled)},
	DemangleSimple: {demangle.NoParams, demangle.NoEnclosingParams, demangle.NoTemplateParams,
		demangle.MaxLength(maxDemangled)},
}

func isMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z")
}

// clone matches the end of a symbol of C that a compiler made of a function: .isra.0, .llvm.1234. Some of their numbers
// differ between builds. Without a number, it could be the name of a Go function.
var clone = regexp.MustCompile(`\.(constprop|isra|llvm|lto_priv|part|__uniq)\.[0-9]+(\..+)?$`)

// Demangle returns the name in the source of a symbol of C, C++ or Rust. Other names stay as they are.
func Demangle(name string, style DemangleStyle) (result string) {
	if style == DemangleNone {
		return name
	}
	if !isMangled(name) {
		return name[:len(name)-len(clone.FindString(name))]
	}
	defer func() {
		if recover() != nil {
			result = name
		}
	}()
	if mayExplode(name, style, maxExpansion) {
		if style = DemangleSimple; mayExplode(name, style, maxExpansion) {
			return name
		}
	}
	return demangle.Filter(name, demangleOptions[style]...)
}

// NeedsDemangling reports whether a name is one that Readable can improve.
func NeedsDemangling(name string) bool { return isMangled(name) || rustHash(name) > 0 }

// Readable returns the name in the source of a symbol of C++ or Rust that a profiler could not demangle, or only as if
// it were of C++, without parameters, as perf prints names. Its time and memory are in proportion to the name: a name
// that needs more, and any that is not mangled, stay as they are.
func Readable(name string) (result string) {
	if end := rustHash(name); end > 0 {
		// A part that begins with $ has a _ before it.
		return rustEscapes.Replace(strings.TrimPrefix(strings.ReplaceAll(name[:end], "::_$", "::$"), "_"))
	}
	if !isMangled(name) || len(name) > 1<<maxDemangled {
		return name
	}
	defer func() {
		if recover() != nil {
			result = name
		}
	}()
	const steps, longer, constant = 64, 4, 32
	if mayExplode(name, DemangleTemplates, steps*len(name)) {
		return name
	}
	result = demangle.Filter(name, demangleOptions[DemangleTemplates]...)
	if len(result) >= min(1<<maxDemangled, longer*len(name)+constant) {
		return name
	}
	return result
}

// rustHash returns where the hash begins that ends the name of a function of Rust, which differs between builds, or 0.
func rustHash(name string) int {
	const hash = "::h0123456789abcdef"
	end := len(name) - len(hash)
	if end <= 0 || !strings.HasPrefix(name[end:], hash[:3]) || strings.Trim(name[end+3:], "0123456789abcdef") != "" {
		return 0
	}
	return end
}

// rustEscapes are what symbols of Rust have instead of characters that those of C++ cannot have.
var rustEscapes = strings.NewReplacer("$SP$", "@", "$BP$", "*", "$RF$", "&", "$LT$", "<", "$GT$", ">", "$LP$", "(",
	"$RP$", ")", "$C$", ",", "$u20$", " ", "$u22$", `"`, "$u27$", "'", "$u2b$", "+", "$u3b$", ";", "$u5b$", "[",
	"$u5d$", "]", "$u7b$", "{", "$u7d$", "}", "$u7e$", "~", "..", "::")

// maxExpansion bounds the work of expanding the parameter packs of a name of a file, in steps of about 0.1 µs.
const maxExpansion = 1 << 18

// neutral replaces expansions of packs by operators of the same length and shape, which real names seldom have: an
// array without a bound for types, co_await for expressions. In identifiers it changes letters, but not their number.
var neutral = newNeutral()

func newNeutral() *strings.Replacer {
	var pairs []string
	for _, expansion := range []string{"Dp", "sp"} {
		// The operators pp, pL, pl, ps and pt of a class whose name ends in D or s: no expansion of a pack looks like that.
		for _, operator := range []string{"p", "L", "l", "s", "t"} {
			for _, next := range []string{"E", "I", "B"} {
				pairs = append(pairs, expansion+operator+next, expansion+operator+next)
			}
		}
	}
	return strings.NewReplacer(append(pairs, "Dp", "A_", "sp", "aw")...)
}

// mayExplode reports whether expanding the parameter packs of a C++ name could take too long: expansions can be nested,
// so that a hundred bytes are enough to take years. It reads the name without expansions, to compute how large it would
// become.
func mayExplode(name string, style DemangleStyle, limit int) bool {
	if strings.HasPrefix(name, "_R") || !strings.Contains(name, "Dp") && !strings.Contains(name, "sp") {
		return false
	}
	// Without parameters, packs are expanded only in names of enclosing functions.
	if style != DemangleFull && strings.Count(name, "Z") == 1 {
		return false
	}
	ast, err := demangle.ToAST(neutral.Replace(name), demangleOptions[style]...)
	if err != nil {
		return true
	}
	e := expansion{sizes: map[demangle.AST]int{}, limit: limit}
	size, _ := e.measure(ast)
	return size > limit || e.steps > limit
}

// expansion computes the size of a tree of which some nodes stand for expansions of packs.
type expansion struct {
	sizes map[demangle.AST]int // of expansions
	steps int
	limit int
}

// measure returns the number of links below a node, with all expansions carried out, and the length of the largest pack
// that the node itself can expand. Results above the limit are not exact.
func (e *expansion) measure(root demangle.AST) (size, largest int) {
	seen := map[demangle.AST]bool{}
	var visit func(demangle.AST) bool
	visit = func(a demangle.AST) bool {
		e.steps++
		size = min(size+1, e.limit+1)
		if seen[a] || size > e.limit || e.steps > e.limit {
			return false
		}
		seen[a] = true
		switch a := a.(type) {
		case *demangle.ArgumentPack:
			largest = max(largest, len(a.Args))
		case *demangle.TemplateParam:
			if a.Template != nil && a.Index < len(a.Template.Args) {
				a.Template.Args[a.Index].Traverse(visit)
			}
		}
		if base := expanded(a); base != nil {
			size = min(size+e.expand(a, base), e.limit+1)
			return false
		}
		return true
	}
	root.Traverse(visit)
	return size, largest
}

// expand returns the size of an expansion: each element of the pack gets a copy of the expanded part, with its
// expansions.
func (e *expansion) expand(a, base demangle.AST) int {
	if _, ok := e.sizes[a]; !ok {
		e.sizes[a] = 0 // it can contain itself
		size, largest := e.measure(base)
		e.sizes[a] = min(size*max(largest, 1), e.limit+1)
	}
	return e.sizes[a]
}

// expanded returns the part that a node of a neutral name expands, or nil.
func expanded(a demangle.AST) demangle.AST {
	switch a := a.(type) {
	case *demangle.ArrayType:
		if bound, ok := a.Dimension.(*demangle.Name); ok && bound.Name == "" {
			return a.Element
		}
	case *demangle.Unary:
		if op, ok := a.Op.(*demangle.Operator); ok && op.Name == "co_await " {
			return a.Expr
		}
	}
	return nil
}

// Demangle demangles the name of a frame. The mangled name becomes SystemName.
func (f *Frame) Demangle(style DemangleStyle) {
	if name := Demangle(f.Name, style); name != f.Name {
		f.Name, f.SystemName = name, f.Name
	}
}
