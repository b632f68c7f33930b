// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// header is the text at the beginning.
//
//go:embed header.txt
var header string

// shared is a text that several modules have, apart from copyright lines.
type shared struct {
	spdx, text string
	// users are the files with this text, and their copyright lines.
	users []string
}

// write prints the header and the table, and the texts if they are wanted.
func write(out io.Writer, header string, modules []*module, wantTexts bool) error {
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
			byText[key].users = append(byText[key].users,
				strings.Join(append([]string{m.path + " (" + file.name + ")"}, copyrights...), "\n  "))
		}
	}
	if !wantTexts {
		return w.Flush()
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

// essence returns a text's words, so that texts are equal that differ only in line breaks and punctuation. It ignores
// what follows the terms of the Apache License, which describes how to apply it.
func essence(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(text), "end of terms and conditions")
	return notWords.ReplaceAllString(text, " ")
}

const rule = "--------------------------------------------------------------------------------"

// split separates a licence's copyright lines from its text, so that licences that differ only in them are printed
// once.
func split(text string) (body string, copyrights []string) {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimSpace(line)
		lower := strings.ToLower(trimmed)
		if (strings.HasPrefix(lower, "copyright (c)") || strings.HasPrefix(lower, "copyright ©") ||
			strings.HasPrefix(lower, "copyright 2") ||
			strings.HasPrefix(lower, "copyright 1") || strings.HasPrefix(lower, "copyright the ")) && !strings.Contains(line,
			"[yyyy]") {
			copyrights = append(copyrights, trimmed)
			continue
		}
		kept = append(kept, line)
	}
	return strings.Trim(strings.Join(kept, "\n"), "\n"), copyrights
}
