// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

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
	// maxBytes[i] is how many bytes the value of keys[i] may have.
	maxBytes []int
	// made matches the paths that the template makes, including the hash of a collision.
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
	case path.IsAbs(whole), path.Clean(whole) != whole, strings.HasPrefix(whole, "../"),
		strings.ContainsAny(whole, "\\\x00"):
		return nil, errors.New("must be a plain path below `directory`")
	}
	t.made = regexp.MustCompile(pattern + `(-[0-9a-f]{16})?\.pb\.gz$`)
	return t, t.divide()
}

// File systems allow 255 bytes between two slashes. The rest is for the prefix of unfinished files, the hash of a
// collision, and the suffix.
const maxElementBytes = 255 - len(temporary) - len("-0123456789abcdef") - len(suffix)

const (
	// maxValueBytes bounds a value in a path, minValueBytes keeps room for a time. Both include the hash of a changed
	// value.
	maxValueBytes = 110
	minValueBytes = 30
	// changedBytes is what safe adds to a changed value.
	changedBytes = len("_") + len("-01234567")
)

// divide divides the bytes of an element of the path among its keys.
func (t *template) divide() error {
	literal := 0
	finish := func(end int) error {
		n := end - len(t.maxBytes)
		room := (maxElementBytes - literal) / max(n, 1)
		if room < 0 || n > 0 && room < minValueBytes {
			return errors.New("is too long between two slashes for the name of a file")
		}
		for range n {
			t.maxBytes = append(t.maxBytes, min(room, maxValueBytes))
		}
		literal = 0
		return nil
	}
	for i, text := range t.texts {
		for k, part := range strings.Split(text, "/") {
			if k > 0 {
				if err := finish(i); err != nil {
					return err
				}
			}
			literal += len(part)
		}
	}
	return finish(len(t.keys))
}

// path replaces the keys by their values, which must be safe.
func (t *template) path(value func(i int) string) string {
	var b strings.Builder
	for i, text := range t.texts {
		b.WriteString(text)
		if i < len(t.keys) {
			b.WriteString(value(i))
		}
	}
	return b.String()
}

// reserved matches names that Windows reserves for devices, with any extension.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// safe returns a value as a part of a path of at most room bytes: letters, digits, dots, - and _. If it has to change
// the value, it appends a hash, so that different values stay different.
func safe(value string, room int) string {
	clean := []byte(value[:min(len(value), room-changedBytes)])
	for i, c := range clean {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0 &&
			i < len(value)-1:
		default:
			clean[i] = '_'
		}
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
