// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
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
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z") ||
		isMangledD(name) || isMangledSwift(name)
}

// Demangle returns the name in the source of a C++, Rust, D or Swift symbol. Other names stay as they are.
func Demangle(name string, style DemangleStyle) (text string) {
	if style == DemangleNone || !isMangled(name) {
		return name
	}
	defer func() {
		if recover() != nil {
			text = name
		}
	}()
	switch {
	case isMangledD(name):
		return demangleD(name)
	case isMangledSwift(name):
		return demangleSwift(name)
	}
	if mayExplode(name, style) {
		if style = DemangleSimple; mayExplode(name, style) {
			return name
		}
	}
	return demangle.Filter(name, demangleOptions[style]...)
}

// maxExpansion bounds the work of expanding the parameter packs of a name: it takes about 0.1 s.
const maxExpansion = 1 << 20

// neutral replaces expansions of packs by other operators of their shape: volatile const for types, & for expressions.
var neutral = strings.NewReplacer("Dp", "VK", "sp", "ad")

// mayExplode reports whether expanding the parameter packs of a C++ name could take too long: expansions can be nested, so that
// a hundred bytes are enough to take years. It reads the name without expansions, to find the largest pack.
func mayExplode(name string, style DemangleStyle) bool {
	expansions := strings.Count(name, "Dp") + strings.Count(name, "sp")
	// Without parameters, packs are expanded only in names of enclosing functions.
	if expansions == 0 || strings.HasPrefix(name, "_R") || style != DemangleFull && strings.Count(name, "Z") == 1 {
		return false
	}
	ast, err := demangle.ToAST(neutral.Replace(name), demangleOptions[style]...)
	if err != nil {
		return true
	}
	largest, seen := 0, map[demangle.AST]bool{}
	ast.Traverse(func(a demangle.AST) bool {
		if seen[a] {
			return false
		}
		seen[a] = true
		if pack, ok := a.(*demangle.ArgumentPack); ok {
			largest = max(largest, len(pack.Args))
		}
		return true
	})
	work := 1
	for range expansions + 1 {
		if work *= max(largest, 1); work > maxExpansion {
			return true
		}
	}
	return false
}

// DemangleFrames demangles the names of frames in place. The mangled name goes to SystemName.
func DemangleFrames(frames []Frame, style DemangleStyle) {
	for i := range frames {
		f := &frames[i]
		if text := Demangle(f.Name, style); text != f.Name {
			f.Name, f.SystemName = text, f.Name
		}
	}
}
