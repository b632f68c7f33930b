// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"strings"
)

// For D and Swift only the qualified name is read, without types, as flame graphs show it. A name that has more, such as
// the arguments of a template, is cut there or stays as it is.

func isMangledD(name string) bool {
	return strings.HasPrefix(name, "_D") && len(name) > 3 && isDigit(name[2])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// identifier reads a length and as many bytes.
func identifier(s string) (text, rest string, ok bool) {
	n, i := 0, 0
	for i < len(s) && isDigit(s[i]) && n <= maxNameBytes {
		n = n*10 + int(s[i]-'0')
		i++
	}
	if i == 0 || n == 0 || n > len(s)-i {
		return "", s, false
	}
	return s[i : i+n], s[i+n:], true
}

// demangleD reads the qualified name of https://dlang.org/spec/abi.html#name_mangling.
func demangleD(name string) string {
	if name == "_Dmain" {
		return "D main"
	}
	var parts []string
	rest := name[2:]
	for {
		text, more, ok := identifier(rest)
		if !ok {
			break
		}
		if strings.HasPrefix(text, "__T") { // a template: its name, then its arguments
			inner, _, ok := identifier(text[3:])
			if !ok {
				return name
			}
			text = inner + "!(…)"
		}
		parts = append(parts, text)
		rest = more
	}
	if len(parts) == 0 {
		return name
	}
	return strings.Join(parts, ".")
}

func isMangledSwift(name string) bool {
	return (strings.HasPrefix(name, "$s") || strings.HasPrefix(name, "$S") || strings.HasPrefix(name, "_$s") ||
		strings.HasPrefix(name, "_$S")) && len(name) > 4
}

// swiftTypes are the standard substitutions that are most common before methods.
var swiftTypes = map[byte]string{
	'a': "Swift.Array", 'b': "Swift.Bool", 'D': "Swift.Dictionary", 'd': "Swift.Double", 'f': "Swift.Float",
	'h': "Swift.Set", 'i': "Swift.Int", 'J': "Swift.Character", 'N': "Swift.ClosedRange", 'n': "Swift.Range",
	'S': "Swift.String", 's': "Swift.Substring", 'u': "Swift.UInt", 'q': "Swift.Optional",
}

// demangleSwift reads the context and the name of https://github.com/swiftlang/swift/blob/main/docs/ABI/Mangling.rst.
func demangleSwift(name string) string {
	rest := strings.TrimPrefix(name, "_")[2:]
	isInit := strings.HasSuffix(rest, "fC") || strings.HasSuffix(rest, "fc")
	var words, parts []string
	switch {
	case len(rest) > 1 && rest[0] == 'S' && swiftTypes[rest[1]] != "":
		parts, rest = append(parts, swiftTypes[rest[1]]), rest[2:]
	case rest != "" && rest[0] == 's':
		parts, rest = append(parts, "Swift"), rest[1:]
	}
	for {
		text, more, ok := swiftIdentifier(rest, &words)
		if !ok {
			break
		}
		rest = more
		if rest != "" && rest[0] == 'E' && len(parts) > 0 { // the module of an extension: its type has been read
			rest = rest[1:]
			continue
		}
		isFirst := len(parts) == 0
		parts = append(parts, text)
		isType := isFirst // the module
		for rest != "" && strings.IndexByte("CVOP", rest[0]) >= 0 {
			rest, isType = rest[1:], true
		}
		if !isType {
			if isInit {
				parts = parts[:len(parts)-1] // the label of its first argument
			}
			break
		}
	}
	if len(parts) < 2 {
		return name
	}
	switch {
	case isInit:
		parts = append(parts, "init")
	case strings.HasSuffix(rest, "fD") || strings.HasSuffix(rest, "fd"):
		parts = append(parts, "deinit")
	}
	return strings.Join(parts, ".")
}

// swiftIdentifier reads an identifier, in which letters may refer to earlier words.
func swiftIdentifier(s string, words *[]string) (text, rest string, ok bool) {
	if s == "" || !isDigit(s[0]) {
		return "", s, false
	}
	if s[0] != '0' {
		text, rest, ok = identifier(s)
		addWords(text, words)
		return text, rest, ok
	}
	s = s[1:]
	if s == "" || s[0] == '0' { // Punycode
		return "", s, false
	}
	for s != "" && len(text) < maxNameBytes {
		c := s[0]
		if c >= '0' && c <= '9' {
			if c == '0' {
				return text, s[1:], text != ""
			}
			part, more, ok := identifier(s)
			if !ok {
				return "", s, false
			}
			addWords(part, words)
			return text + part, more, true
		}
		isLast := c >= 'A' && c <= 'Z'
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return "", s, false
		}
		i := int(c|0x20) - 'a'
		if i >= len(*words) {
			return "", s, false
		}
		text += (*words)[i]
		s = s[1:]
		if isLast && s != "" && s[0] == '0' {
			return text, s[1:], true
		}
	}
	return text, s, text != ""
}

// addWords appends the words of an identifier, which begin with a capital, or after an underscore.
func addWords(text string, words *[]string) {
	const maxWords = 26
	start := 0
	for i := 1; i <= len(text); i++ {
		if i < len(text) && !(isUpper(text[i]) && !isUpper(text[i-1])) && text[i] != '_' && text[i-1] != '_' {
			continue
		}
		if i-start > 1 && len(*words) < maxWords && text[start] != '_' {
			*words = append(*words, text[start:i])
		}
		start = i
	}
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
