// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package servicename

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Rule names the processes that match. A nil expression matches everything.
type Rule struct {
	// Executable is matched against the executable's name.
	Executable *regexp.Regexp
	// CommandLine is matched against the arguments with spaces between them. It matches nothing if they are not known.
	CommandLine *regexp.Regexp
	// Template is the name, with $1 and ${name} for groups of CommandLine, or of Executable if there is no other.
	Template string
}

// reference matches what Regexp.Expand replaces: an escaped $, or a group by its number or name.
var reference = regexp.MustCompile(`\$(?:\$|\w+|\{\w+\})`)

// MissingGroup returns the first reference of the template to a group that its expression does not have, or "": such a
// reference is replaced by nothing.
func (r *Rule) MissingGroup() string {
	by := cmp.Or(r.CommandLine, r.Executable)
	if by == nil {
		return ""
	}
	for _, found := range reference.FindAllString(r.Template, -1) {
		group := strings.Trim(found, "${}")
		number, err := strconv.Atoi(group)
		isNumber := err == nil && number <= by.NumSubexp()
		if group != "" && !isNumber && !slices.Contains(by.SubexpNames(), group) {
			return found
		}
	}
	return ""
}

// maxCommandLine bounds the string that rules are matched against.
const maxCommandLine = 4 << 10

// Match returns the name of the first rule that matches and yields one.
func Match(rules []Rule, executable string, arguments []string) string {
	commandLine := ""
	if len(rules) > 0 {
		commandLine = dictionary.CutUTF8(strings.Join(arguments, " "), maxCommandLine)
	}
	for _, rule := range rules {
		if name := rule.name(executable, commandLine); name != "" {
			return name
		}
	}
	return ""
}

func (r *Rule) name(executable, commandLine string) string {
	match, by, in := []int(nil), r.Executable, executable
	if r.Executable != nil {
		if match = r.Executable.FindStringSubmatchIndex(executable); match == nil {
			return ""
		}
	}
	if r.CommandLine != nil {
		if match = r.CommandLine.FindStringSubmatchIndex(commandLine); match == nil {
			return ""
		}
		by, in = r.CommandLine, commandLine
	}
	return Clean(string(by.ExpandString(nil, r.Template, in, match)))
}
