// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	pprofscan "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// A pprof can name functions that are of no interest to its readers, such as those of an allocator in a profile of
// memory: drop_frames, but not keep_frames. As `go tool pprof` does, trees leave them out with all that they call,
// where somebody calls them. The profile keeps them.

// uninteresting are the patterns of the latest profile.
type uninteresting struct {
	drop, keep *regexp.Regexp
	// steps is what a byte of a name costs at most.
	steps int
}

const (
	// maxPatternBytes bounds a pattern: tcmalloc's has 2 kB.
	maxPatternBytes = 8 << 10
	// maxMatchedBytes bounds what is matched of a name, maxSteps the instructions of a pattern, and maxWork those for all
	// names of a tree.
	maxMatchedBytes = 512
	maxSteps        = 16 << 10
	maxWork         = 1 << 31
)

// uninterestingOf returns the patterns of a profile. One that cannot be compiled, or is too long, is ignored, as it is
// a matter of taste.
func uninterestingOf(p *ProfileFields) (u uninteresting) {
	if p == nil {
		return u
	}
	for _, i := range p.Attributes {
		a := p.Dict.Attributes.At(dictionary.AttributeIndex(i))
		switch p.Dict.Strings.At(a.Key) {
		case pprofscan.AttributeDropFrames:
			u.drop = u.patternOf(a.Value.AsString())
		case pprofscan.AttributeKeepFrames:
			u.keep = u.patternOf(a.Value.AsString())
		}
	}
	return u
}

func (u *uninteresting) patternOf(s string) *regexp.Regexp {
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
	u.steps += len(program.Inst)
	return pattern
}

// matches reports whether a function is of no interest.
func (u *uninteresting) matches(f *Frame) bool {
	if u.drop == nil || f.Kind == kindGroup {
		return false
	}
	name := withoutArguments(f.Name[:min(len(f.Name), maxMatchedBytes)])
	return u.drop.MatchString(name) && (u.keep == nil || !u.keep.MatchString(name))
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
