// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
)

// newReports returns the commands that google/pprof runs, with its own flags.
func newReports(term *terminal) []*cobra.Command {
	var commands []*cobra.Command
	for _, report := range []struct {
		use, short string
		// args turns the command line into that of pprof.
		args func(args []string) ([]string, error)
	}{
		{"top FILE...", "The functions with the most, as text", prefix("-top")},
		{"tree FILE...", "Each function with its callers and callees, as text", prefix("-tree")},
		{"peek REGEXP FILE...", "Callers and callees of the functions that match", withRegexp("-peek")},
		{"list REGEXP FILE...", "Annotated source of the functions that match", withRegexp("-list")},
		{"flamegraph FILE...", "A flame graph in the browser, with pprof's other views", prefix("-http=localhost:")},
		{"web FILE...", "A graph of calls in the browser (needs Graphviz)", prefix("-web")},
		{"pprof FILE...", "Any other report of pprof, or its interactive shell", prefix()},
	} {
		commands = append(commands, &cobra.Command{
			Use:     report.use,
			Short:   report.short,
			GroupID: groupReports,
			Long: report.short + `.

The flags are those of go tool pprof, with one dash: -cum, -focus=REGEXP, -nodecount=20, -sample_index=alloc_space …
Files may have any format, that of -diff_base=BASE, too. -service=NAME, -profile=NAME and -type=NAME choose among the
profiles of a file. Without -service the profiles of all services are added up; without -profile it is process_cpu, or
else the first kind in the file. A URL is fetched as pprof does it.`,
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
					return cmd.Help()
				}
				args, err := report.args(args)
				if err != nil {
					return err
				}
				return runPprof(term, args)
			},
		})
	}
	return commands
}

func prefix(first ...string) func([]string) ([]string, error) {
	return func(args []string) ([]string, error) { return append(first, args...), nil }
}

// withRegexp uses the first argument that is not a flag as the value of one.
func withRegexp(name string) func([]string) ([]string, error) {
	return func(args []string) ([]string, error) {
		for i, arg := range args {
			if !strings.HasPrefix(arg, "-") {
				out := append([]string{name + "=" + arg}, args[:i]...)
				return append(out, args[i+1:]...), nil
			}
		}
		return nil, errors.New("a regular expression for the functions is missing")
	}
}

func runPprof(term *terminal, args []string) error {
	run := &pprofRun{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError), args: args, reader: newReader(term)}
	run.SetOutput(io.Discard) // the error has the same message
	run.reader.wanted.flags(run.FlagSet)
	run.StringVar(&run.directory, "store", "", "")
	run.DurationVar(&run.since, "since", 0, "")
	run.AddExtraUsage(
		"    -store DIR            Profiles of a store's directory, with -service and -since\n    -since DURATION       Profiles of this time up to now: 24h, 30m\n    -service NAME         Profiles of this service.name alone\n    -profile NAME         This profile alone: process_cpu, memory, …\n    -type NAME            This sample type alone: cpu, alloc_space, …")
	err := driver.PProf(&driver.Options{Flagset: run, Fetch: run})
	switch {
	case errors.Is(run.err, flag.ErrHelp):
		return nil
	case run.err != nil:
		return run.err
	case run.failed.Load(): // even if there is a report of the others
		return errUnread
	}
	return err
}

// pprofRun is the environment of the pprof driver for one command: its flags, of given arguments, and the files that it
// reads, several at once.
type pprofRun struct {
	*flag.FlagSet
	args   []string
	usage  []string
	reader *reader
	// directory is a store's, used in place of files, and since how much of it.
	directory string
	since     time.Duration
	err       error
	// failed reports that a file could not be read. The driver has written why.
	failed atomic.Bool
}

// StringList defines a flag that may be set once, as in pprof's own command.
func (f *pprofRun) StringList(name, value, usage string) *[]*string {
	return &[]*string{f.FlagSet.String(name, value, usage)}
}

func (f *pprofRun) ExtraUsage() string         { return strings.Join(f.usage, "\n") }
func (f *pprofRun) AddExtraUsage(usage string) { f.usage = append(f.usage, usage) }

// Parse returns the arguments that are not flags. These may stand before, between and after them. pprof ends if there
// are none.
func (f *pprofRun) Parse(usage func()) (files []string) {
	f.FlagSet.Usage = func() {}
	for rest := f.args; ; {
		if f.err = f.FlagSet.Parse(rest); f.err != nil {
			if errors.Is(f.err, flag.ErrHelp) {
				usage()
			}
			return nil
		}
		if f.FlagSet.NArg() == 0 {
			break
		}
		files, rest = append(files, f.FlagSet.Arg(0)), f.FlagSet.Args()[1:]
	}
	switch {
	case f.directory != "" && len(files) > 0:
		f.err = errors.New("-store and files do not go together")
		return nil
	case f.directory == "" && f.since != 0:
		f.err = errors.New("-since needs -store: of files, all profiles are shown")
		return nil
	case f.since < 0:
		f.err = fmt.Errorf("-since must be positive, found %v", f.since)
		return nil
	case f.directory != "":
		return []string{f.directory}
	case len(files) == 0:
		f.err = errNoFile
	}
	f.reader.several = len(files) > 1
	for _, name := range []string{"base", "diff_base"} {
		if base := f.FlagSet.Lookup(name); base != nil {
			f.reader.several = f.reader.several || base.Value.String() != ""
		}
	}
	for i, file := range files {
		files[i] = cmp.Or(asURL(file), file)
	}
	return files
}

// Fetch reads a file of any format. The driver fetches URLs itself.
func (f *pprofRun) Fetch(source string, _, _ time.Duration) (shown *profile.Profile, _ string, err error) {
	if strings.Contains(source, "://") {
		return nil, "", nil
	}
	r := *f.reader
	if f.directory != "" {
		shown, err = r.readStored(f.directory, f.since)
	} else {
		shown, err = r.readPprof(source)
	}
	if err != nil {
		f.failed.Store(true)
	}
	return shown, "", err
}

// readPprof returns the profiles of a file as a pprof: process_cpu, or else the first kind.
func (r *reader) readPprof(path string) (*profile.Profile, error) {
	messages, err := r.readAll([]string{path})
	if err != nil {
		return nil, errors.Unwrap(err) // pprof names the file
	}
	pd, err := r.summed(r.several, messages)
	if err != nil {
		return nil, err
	}
	profiles, err := pprofsOf(r.term, pd)
	switch {
	case err != nil:
		return nil, err
	case len(profiles) == 0:
		return nil, errors.New("there are no profiles")
	}
	return chosen(r.term, nameOf(path)+": -profile and -type", profiles).profile, nil
}
