// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// isKernelThread is the kernel's PF_KTHREAD among the flags of a process.
const isKernelThread = 0x00200000

// parseStat reads the name and the flags in /proc/<pid>/stat. The process chooses its name, which is in parentheses and
// may contain parentheses: the other fields follow the last one.
func parseStat(stat []byte) (name string, flags uint64, err error) {
	const flagsField = 9 - 3 // man 5 proc, from the state, field 3, on
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= flagsField {
		return "", 0, errors.New("stat: too few fields")
	}
	if flags, err = strconv.ParseUint(string(fields[flagsField]), 10, 64); err != nil {
		return "", 0, errors.New("stat: the flags are not a number")
	}
	if begin := bytes.IndexByte(stat, '('); begin >= 0 && begin < end {
		name = string(stat[begin+1 : end])
	}
	return name, flags, nil
}

// parseCommandLine reads /proc/<pid>/cmdline: arguments, each followed by a zero byte. A process may overwrite it.
func parseCommandLine(cmdline []byte) []string {
	s := strings.TrimRight(string(cmdline), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

// parseEnvironment returns the values of two variables in /proc/<pid>/environ, the first of each, as getenv does.
func parseEnvironment(environ []byte) (serviceName, resourceAttributes string) {
	var hasName, hasAttributes bool
	for len(environ) > 0 && (!hasName || !hasAttributes) {
		var variable []byte
		variable, environ, _ = bytes.Cut(environ, []byte{0})
		if value, ok := bytes.CutPrefix(variable, []byte("OTEL_SERVICE_NAME=")); ok && !hasName {
			serviceName, hasName = string(value), true
		} else if value, ok := bytes.CutPrefix(variable, []byte("OTEL_RESOURCE_ATTRIBUTES=")); ok && !hasAttributes {
			resourceAttributes, hasAttributes = string(value), true
		}
	}
	return serviceName, resourceAttributes
}

// parseCgroup reads /proc/<pid>/cgroup: a line `hierarchy:controllers:path` for each hierarchy. The ids of container
// and pod may be in any of them; the systemd unit is in the unified hierarchy, or in systemd's own.
func parseCgroup(cgroup []byte) (container, pod, unit string) {
	for line := range strings.Lines(string(cgroup)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) < 3 {
			continue
		}
		path := strings.TrimSuffix(fields[2], " (deleted)") // of a cgroup that is gone while the process still ends
		if id, uid := containerOf(path); id != "" && container == "" {
			container, pod = id, uid
		}
		if isSystemd := fields[0] == "0" || fields[1] == "name=systemd"; isSystemd && unit == "" {
			unit = unitOf(path)
		}
	}
	if container != "" {
		unit = "" // the unit is that of the container's runtime
	}
	return container, pod, unit
}

// containerOf finds the innermost container of a path, and its pod: docker-<id>.scope, cri-containerd-<id>.scope,
// /docker/<id>, kubepods-burstable-pod<uid>.slice:cri-containerd:<id>, /kubepods/burstable/pod<uid>/<id> and others.
func containerOf(path string) (id, pod string) {
	for _, segment := range slices.Backward(strings.Split(path, "/")) {
		if id == "" {
			id = idIn(segment)
		}
		if id != "" {
			if pod = podIn(segment); pod != "" {
				return id, pod
			}
		}
	}
	return id, ""
}

const containerIDLen = 64

// otherID matches ids that are a segment of their own: of ECS on Fargate (<32 digits>-<number>), and of Garden in Cloud
// Foundry.
var otherID = regexp.MustCompile(`^([0-9a-f]{32}-[0-9]{1,20}|[0-9a-f]{8}(-[0-9a-f]{4}){4})$`)

// idIn returns the container's id at the end of a segment, after the name of its runtime.
func idIn(segment string) string {
	if otherID.MatchString(segment) {
		return segment
	}
	name := strings.TrimSuffix(segment, ".scope")
	id := name[strings.LastIndexAny(name, "-:")+1:]
	if len(id) != containerIDLen || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	if strings.Contains(name, "conmon") { // the container's monitor, outside of it
		return ""
	}
	return id
}

const podUIDLen = 36

// podIn returns the uid after `pod` in a segment. systemd's names have _ in it instead of -.
func podIn(segment string) string {
	at := strings.LastIndex(segment, "pod")
	if at < 0 || at > 0 && segment[at-1] != '-' {
		return ""
	}
	uid := segment[at+len("pod"):]
	if end := strings.IndexAny(uid, ".:"); end >= 0 {
		uid = uid[:end]
	}
	uid = strings.ReplaceAll(uid, "_", "-")
	if len(uid) != podUIDLen || strings.Trim(uid, "0123456789abcdef-") != "" {
		return "" // static pods have a hash instead of a uid
	}
	return uid
}

// unitOf returns the innermost service of a path, without `.service`. Scopes, and services that systemd-run starts,
// have temporary names. A user's manager is a service, but the programs of a session are not part of it.
func unitOf(path string) string {
	for _, segment := range slices.Backward(strings.Split(path, "/")) {
		if name, ok := strings.CutSuffix(segment, ".service"); ok && !transient.MatchString(name) {
			return unescape(name)
		}
		if strings.HasSuffix(segment, ".scope") {
			return ""
		}
	}
	return ""
}

// transient matches services with temporary names, such as run-u12, run-p4711-i4712, or run-r and 32 hexadecimal
// digits, and managers of users.
var transient = regexp.MustCompile(`^(user@|run-([up][0-9]|r[0-9a-f]{32}$))`)

var escaped = regexp.MustCompile(`\\x[0-9a-fA-F]{2}`)

// unescape undoes systemd's escapes, such as \x2d.
func unescape(name string) string {
	return escaped.ReplaceAllStringFunc(name, func(escape string) string {
		c, _ := strconv.ParseUint(escape[2:], 16, 8) // the expression allows only hexadecimal digits
		return string([]byte{byte(c)})
	})
}
