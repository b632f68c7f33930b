// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// template is a parsed `name`: literal text and keys in turn, beginning with text.
type template struct {
	texts []string
	keys  []string
	// made matches the paths that the template makes, including the number of a collision.
	made *regexp.Regexp
}

const suffix = ".pb.gz"

func parseName(name string) (*template, error) {
	t := &template{}
	pattern := "^"
	for rest := strings.TrimSuffix(name, suffix); ; {
		text, after, open := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, errors.New("has a } without a {")
		}
		t.texts = append(t.texts, text)
		pattern += regexp.QuoteMeta(text)
		if !open {
			break
		}
		key, next, closed := strings.Cut(after, "}")
		if !closed || key == "" {
			return nil, errors.New("must have a key between { and }")
		}
		t.keys = append(t.keys, key)
		pattern += "[A-Za-z0-9._-]+"
		rest = next
	}
	switch whole := strings.Join(t.texts, "x"); {
	case !strings.HasSuffix(name, suffix):
		return nil, errors.New("must end in " + suffix)
	case path.IsAbs(whole), path.Clean(whole) != whole, strings.HasPrefix(whole, "../"), strings.ContainsAny(whole, "\\\x00"):
		return nil, errors.New("must be a plain path below `directory`")
	}
	t.made = regexp.MustCompile(pattern + `(-[0-9]+)?\.pb\.gz$`)
	return t, nil
}

// path replaces the keys by their values; n > 1 distinguishes files that would have the same name.
func (t *template) path(value func(key string) string, n int) string {
	var b strings.Builder
	for i, text := range t.texts {
		b.WriteString(text)
		if i < len(t.keys) {
			b.WriteString(safe(value(t.keys[i])))
		}
	}
	if n > 1 {
		fmt.Fprintf(&b, "-%d", n)
	}
	return b.String() + suffix
}

// maxValueBytes keeps the parts of a path below the limits of file systems.
const maxValueBytes = 100

// reserved matches names that Windows reserves for devices, whatever follows a dot.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// safe returns a value as a part of a path: letters, digits, dots, - and _. If it has to change the value, it appends a hash, so
// that different values stay different.
func safe(value string) string {
	clean := []byte(value)
	for i, c := range clean {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0 && i < len(clean)-1:
		default:
			clean[i] = '_'
		}
	}
	if len(clean) > maxValueBytes {
		clean = clean[:maxValueBytes]
	}
	made := string(clean)
	if reserved.MatchString(made) {
		made = "_" + made
	}
	if made == value && value != "" {
		return value
	}
	return fmt.Sprintf("%s-%08x", made, uint32(xxhash.Sum64String(value)))
}
