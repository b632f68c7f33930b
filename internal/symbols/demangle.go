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
	return demangle.Filter(name, demangleOptions[style]...)
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
