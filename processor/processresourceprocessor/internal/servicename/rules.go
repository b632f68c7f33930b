// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package servicename

import (
	"regexp"
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
