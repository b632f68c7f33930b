// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"bytes"
	"fmt"
	"path"
	"runtime/pprof"
	"strings"
)

// label marks the goroutines that stop a component.
const label = "shutdown"

// maxFrames bounds how many functions are listed.
const maxFrames = 12

// waitingIn returns the functions of the goroutine that stops a component, innermost first.
func waitingIn(component string) string {
	return functionsOf(fmt.Sprintf("# labels: {%q:%q}", label, component))
}

// WaitingIn returns the functions of the main goroutine, innermost first.
func WaitingIn() string { return functionsOf("\tmain.main+") }

// functionsOf lists the functions of the first goroutine in whose profile there is a mark.
func functionsOf(mark string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, mark) {
			continue
		}
		var functions []string
		for line := range strings.Lines(stack) {
			// "#	0x4a3b1c	sync.(*WaitGroup).Wait+0x4c	/usr/local/go/src/sync/waitgroup.go:118"
			if fields := strings.Split(line, "\t"); len(fields) > 2 && len(functions) < maxFrames {
				function, _, _ := strings.Cut(fields[2], "+0x")
				functions = append(functions, path.Base(function))
			}
		}
		return strings.Join(functions, " < ")
	}
	return "unknown"
}
