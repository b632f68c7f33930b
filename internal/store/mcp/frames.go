// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

const (
	// maxPatternBytes bounds a pattern, maxPatternSteps the program that a regular expression becomes: each byte of a name
	// can take as many steps.
	maxPatternBytes = 200
	maxPatternSteps = 1000
	// maxMatchedBytes is how much of a name is looked at.
	maxMatchedBytes = 1 << 10
)

// matcher returns a function that reports whether a name contains a pattern or, if slashes enclose the pattern, matches
// that regular expression. It ignores case. It returns nil for an empty pattern.
func matcher(key, pattern string) (func(name string) bool, error) {
	if pattern = strings.TrimSuffix(pattern, cut); pattern == "" {
		return nil, nil
	}
	if len(pattern) > maxPatternBytes {
		return nil, query.BadRequest(fmt.Sprintf("`%s` must have at most %d bytes, found %d", key, maxPatternBytes,
			len(pattern)), "")
	}
	if len(pattern) < 3 || pattern[0] != '/' || pattern[len(pattern)-1] != '/' {
		part := strings.ToLower(pattern)
		return func(name string) bool { return strings.Contains(strings.ToLower(name), part) }, nil
	}
	source := "(?i)" + pattern[1:len(pattern)-1]
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, query.BadRequest(fmt.Sprintf("`%s` is not a regular expression: %v", key, err),
			"leave out the slashes to look for the text itself")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxPatternSteps {
		return nil, query.BadRequest(fmt.Sprintf("`%s` is too complex a regular expression", key), "use fewer repetitions")
	}
	expression, err := regexp.Compile(source)
	if err != nil {
		return nil, query.BadRequest(fmt.Sprintf("`%s` is not a regular expression: %v", key, err), "")
	}
	return expression.MatchString, nil
}

// matches reports for each frame whether its name matches; nil if there is no matcher.
func matches(meter *size.Meter, frames []answers.Frame, match func(string) bool) ([]bool, error) {
	if match == nil {
		return nil, nil
	}
	if err := meter.Grow(len(frames)); err != nil {
		return nil, err
	}
	found := make([]bool, len(frames))
	for i := range frames {
		if err := meter.Grow(0); err != nil { // a name takes up to a millisecond
			return nil, err
		}
		frame := frames[i].Name
		found[i] = match(frame[:min(len(frame), maxMatchedBytes)])
	}
	return found, nil
}

type frameFilter struct {
	Focus  string `json:"focus,omitempty" jsonschema:"only stacks with a function whose name contains this text, or matches this regular expression between slashes, such as /json|yaml/"`
	Ignore string `json:"ignore,omitempty" jsonschema:"no stacks with such a function"`
}

// stackFilter has the matchers of a filter, nil without a pattern.
type stackFilter struct{ focus, ignore func(name string) bool }

func (f *frameFilter) compile() (c stackFilter, err error) {
	if c.focus, err = matcher("focus", f.Focus); err != nil {
		return c, err
	}
	c.ignore, err = matcher("ignore", f.Ignore)
	return c, err
}

// filteredBytes is what a node of a filtered tree takes.
const filteredBytes = 33

// apply returns the tree with the values of the selected stacks alone.
func (f *stackFilter) apply(meter *size.Meter, t *answers.Tree) (*answers.Tree, error) {
	if f.focus == nil && f.ignore == nil {
		return t, nil
	}
	focus, err := matches(meter, t.Frames, f.focus)
	if err != nil {
		return nil, err
	}
	ignore, err := matches(meter, t.Frames, f.ignore)
	if err != nil {
		return nil, err
	}
	if err := meter.Grow(filteredBytes * len(t.Frame)); err != nil {
		return nil, err
	}
	const isFocused, isIgnored = 1, 2
	states := make([]uint8, len(t.Frame))
	if focus == nil {
		states[0] = isFocused
	}
	for i := 1; i < len(states); i++ {
		states[i] = states[t.Parent[i]]
		if focus != nil && focus[t.Frame[i]] {
			states[i] |= isFocused
		}
		if ignore != nil && ignore[t.Frame[i]] {
			states[i] |= isIgnored
		}
	}
	filtered := *t
	filtered.Self, filtered.Total = selected(t, t.Self, states, isFocused)
	filtered.BaseSelf, filtered.BaseTotal = selected(t, t.BaseSelf, states, isFocused)
	return &filtered, nil
}

// selected returns the values of the nodes in a state, and their totals.
func selected(t *answers.Tree, values []int64, states []uint8, state uint8) (self, total []int64) {
	if values == nil {
		return nil, nil
	}
	self, total = make([]int64, len(values)), make([]int64, len(values))
	for i := len(values) - 1; i >= 0; i-- {
		if states[i] == state {
			self[i] = values[i]
		}
		if total[i] = otlp.SaturatingAdd(total[i], self[i]); i > 0 {
			total[t.Parent[i]] = otlp.SaturatingAdd(total[t.Parent[i]], total[i])
		}
	}
	return self, total
}
