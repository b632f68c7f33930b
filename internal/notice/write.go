// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// shared is a text that several modules have, copyright lines aside.
type shared struct {
	spdx, text string
	// users are the files that hold it, with their copyright lines.
	users []string
}

// write prints the header, the table and the texts.
func write(out io.Writer, header string, modules []*module) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s\n", strings.TrimSpace(header))
	fmt.Fprintf(w, "\n%s\nModules\n%s\n\n", rule, rule)
	byText := map[string]*shared{}
	var texts []*shared
	for _, m := range modules {
		fmt.Fprintf(w, "%s: %s\n", strings.TrimSpace(m.path+" "+m.version), strings.Join(m.licences(), ", "))
		for _, file := range m.files {
			text, copyrights := split(file.text)
			key := file.spdx + essence(text)
			if byText[key] == nil {
				byText[key] = &shared{spdx: file.spdx, text: text}
				texts = append(texts, byText[key])
			}
			byText[key].users = append(byText[key].users, strings.Join(append([]string{m.path + " (" + file.name + ")"}, copyrights...), "\n  "))
		}
	}
	slices.SortStableFunc(texts, func(a, b *shared) int { return cmp.Compare(a.spdx, b.spdx) })
	for _, text := range texts {
		fmt.Fprintf(w, "\n%s\n%s of:\n%s\n\n%s\n", rule, text.spdx, rule, strings.Join(text.users, "\n"))
		if text.text != "" {
			fmt.Fprintf(w, "\n%s\n", text.text)
		}
	}
	return w.Flush()
}

var notWords = regexp.MustCompile(`https?:|[^a-z0-9]+`)

// essence returns a text's words, so that those that differ in lines and signs alone are equal. What stands behind the end of
// the Apache License's terms says how to use it.
func essence(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(text), "end of terms and conditions")
	return notWords.ReplaceAllString(text, " ")
}

const rule = "--------------------------------------------------------------------------------"

// split takes a licence's copyright lines out of its text, so that licences that differ in them alone are one.
func split(text string) (body string, copyrights []string) {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimSpace(line)
		lower := strings.ToLower(trimmed)
		if (strings.HasPrefix(lower, "copyright (c)") || strings.HasPrefix(lower, "copyright ©") || strings.HasPrefix(lower, "copyright 2") ||
			strings.HasPrefix(lower, "copyright 1") || strings.HasPrefix(lower, "copyright the ")) && !strings.Contains(line, "[yyyy]") {
			copyrights = append(copyrights, trimmed)
			continue
		}
		kept = append(kept, line)
	}
	return strings.Trim(strings.Join(kept, "\n"), "\n"), copyrights
}
