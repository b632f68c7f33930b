// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package uninteresting finds the functions of a pprof that are of no interest to its readers, such as those of an
// allocator in a profile of memory: drop_frames, but not keep_frames. As `go tool pprof` does, trees and comparisons
// leave them out with all that they call, where somebody calls them. The profile keeps them.
package uninteresting

import (
	"iter"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// Functions are the functions that the patterns of a profile match.
type Functions struct {
	drop, keep *regexp.Regexp
	// steps is what a byte of a name costs at most.
	steps int
}

const (
	// maxPatternBytes bounds a pattern: tcmalloc's has 2 kB.
	maxPatternBytes = 8 << 10
	// maxMatchedBytes bounds what is matched of a name, maxSteps the instructions of a pattern.
	maxMatchedBytes = 512
	maxSteps        = 16 << 10
	// MaxCost bounds the work for all names of a tree.
	MaxCost = 1 << 31
)

// Of returns the functions that the attributes of a profile name.
func Of[V interface{ AsString() string }](attributes iter.Seq2[string, V]) Functions {
	var drop, keep string
	for key, value := range attributes {
		switch key {
		case scan.AttributeDropFrames:
			drop = value.AsString()
		case scan.AttributeKeepFrames:
			keep = value.AsString()
		}
	}
	return New(drop, keep)
}

// New returns the functions that drop matches, and keep does not. A pattern that cannot be compiled, or is too long, is
// ignored, as it is a matter of taste.
func New(drop, keep string) (f Functions) {
	if drop != "" {
		f.drop = f.patternOf(drop)
	}
	if keep != "" {
		f.keep = f.patternOf(keep)
	}
	return f
}

func (f *Functions) patternOf(s string) *regexp.Regexp {
	if len(s) > maxPatternBytes {
		return nil
	}
	s = "^(?:" + s + ")$"
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxSteps {
		return nil
	}
	pattern, err := regexp.Compile(s)
	if err != nil {
		return nil
	}
	f.steps += len(program.Inst)
	return pattern
}

// IsEmpty reports that there are no such functions.
func (f *Functions) IsEmpty() bool { return f.drop == nil }

// Cost is what Matches costs at most for a name, in steps.
func (f *Functions) Cost(name string) int { return f.steps * min(len(name), maxMatchedBytes) }

// Matches reports whether a function is of no interest.
func (f *Functions) Matches(name string) bool {
	if f.drop == nil {
		return false
	}
	name = withoutArguments(name[:min(len(name), maxMatchedBytes)])
	return f.drop.MatchString(name) && (f.keep == nil || !f.keep.MatchString(name))
}

// withoutArguments returns the name of a function of C++ as patterns have it.
func withoutArguments(name string) string {
	name = strings.TrimPrefix(name, ".")
	for at := 0; ; {
		i := strings.IndexByte(name[at:], '(')
		if i < 0 {
			return name
		}
		at += i
		switch {
		case strings.HasPrefix(name[at:], "(anonymous namespace)"):
			at += len("(anonymous namespace)")
		case strings.HasSuffix(name[:at], "operator") && strings.HasPrefix(name[at:], "()"):
			at += len("()")
		default:
			return name[:at]
		}
	}
}
