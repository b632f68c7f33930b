// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command benchreport measures the rows of docs/benchmarks.md again: `make bench-report`.
//
// A row of the page's table is a figure, its result, its peer, a metric and a command. If the command begins with `go
// test -bench`, benchreport runs it and replaces the result. If its pattern ends with a group of two names, as in
// `impl=(ours|peer)`, the result is the metric of the first by that of the second, as geometric mean over all inputs,
// with the least and the largest ratio. Otherwise it is the geometric mean of the metric. Rows with another command
// need other programs: they are left as they are.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The cells of a row, between its bars.
const (
	resultCell  = 2
	metricCell  = 4
	commandCell = 5
	cells       = 7
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

// run rewrites a page. It adds flags to each command. A row that cannot be measured stays as it is.
func run(page string, flags []string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	lines := strings.Split(string(content), "\n")
	var errs []error
	for i, line := range lines {
		row := parseRow(line)
		if row == nil {
			continue
		}
		result, err := row.measure(flags)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Printf("%s: %s\n", strings.TrimSpace(row.cells[1]), result)
		row.cells[resultCell] = " " + result + " "
		lines[i] = strings.Join(row.cells, "|")
		// All of them take long: what has been measured stays if a later one fails.
		if err := os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

type row struct {
	cells           []string
	metric, command string
}

// measure runs the command of a row with more flags, and returns the result.
func (r *row) measure(flags []string) (string, error) {
	command := exec.Command("sh", "-c", r.command+" "+strings.Join(flags, " "))
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", r.command, err, out.Bytes())
	}
	return r.result(out.String())
}

// parseRow returns nil if a line is no row, or one that needs other programs.
func parseRow(line string) *row {
	const escaped = "\x00" // a bar within a cell
	split := strings.Split(strings.ReplaceAll(line, `\|`, escaped), "|")
	if len(split) != cells {
		return nil
	}
	for i := range split {
		split[i] = strings.ReplaceAll(split[i], escaped, `\|`)
	}
	code := func(cell string) string { return strings.Trim(strings.ReplaceAll(cell, `\|`, "|"), " `") }
	command := code(split[commandCell])
	if !strings.HasPrefix(command, "go test -bench ") {
		return nil
	}
	return &row{cells: split, metric: code(split[metricCell]), command: command}
}

// comparison matches the group at the end of a pattern: the names of what is measured and of its peer.
var comparison = regexp.MustCompile(`\(([^()|]+)\|([^()|]+)\)'?\$?'`)

// result returns the result of the benchmarks' output.
func (r *row) result(output string) (string, error) {
	values := r.values(output)
	if len(values) == 0 {
		return "", fmt.Errorf("%s: there is no %s in\n%s", r.command, r.metric, output)
	}
	var results []float64
	if names := comparison.FindStringSubmatch(r.command); names != nil {
		for name, measured := range values {
			if peer, found := values[strings.TrimSuffix(name, names[1])+names[2]]; found && strings.HasSuffix(name, names[1]) {
				results = append(results, median(measured)/median(peer))
			}
		}
		if len(results) == 0 {
			return "", fmt.Errorf("%s: nothing has a peer in\n%s", r.command, output)
		}
	} else {
		for _, measured := range values {
			results = append(results, median(measured))
		}
	}
	sum := 0.0
	for _, result := range results {
		sum += math.Log(result)
	}
	text := number(math.Exp(sum / float64(len(results))))
	if len(results) > 1 {
		text += fmt.Sprintf(" (%s to %s)", number(slices.Min(results)), number(slices.Max(results)))
	}
	return text, nil
}

var processors = regexp.MustCompile(`-\d+$`)

// values returns the values of the row's metric by the name of the benchmark.
func (r *row) values(output string) map[string][]float64 {
	values := map[string][]float64{}
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil && fields[i+1] == r.metric {
				name := processors.ReplaceAllString(fields[0], "")
				values[name] = append(values[name], value)
			}
		}
	}
	return values
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// number formats a ratio by its hundredths, and a larger number without.
func number(value float64) string {
	if value < 10 {
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}
