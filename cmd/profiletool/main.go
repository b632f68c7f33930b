// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Profiletool reads, checks, converts, shows and sends profiles at a terminal, by the translators of the collector.
//
//	read.go     one file of any format → messages of OTLP profiles; select.go: the selected part of them
//	convert.go  messages → pprof, OTLP in one or several messages, collapsed stacks, speedscope, text
//	check.go    the rules of the format; stats.go: tables, bytes and shapes
//	pprof.go    the reports of google/pprof on every format; diff.go: conditions on what changed, for CI
//	serve.go    the page of flame graphs on files; mcp.go: answers for assistants
//	send.go     to a collector, by client.go; load.go: many services at a rate
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK = iota
	// exitFound means that a check found faults, or that a receiver did not accept everything.
	exitFound
	// exitFailed means that the command could not do its work: wrong flags, unreadable input, no connection.
	exitFailed
)

// Errors whose details have been written already.
var (
	errFound  = errors.New("faults were found")
	errUnread = errors.New("a file could not be read")
)

// terminal is where a command reads and writes: data on out, everything else on log.
type terminal struct {
	// ctx ends with a signal; nil means that nothing ends.
	ctx      context.Context //nolint:containedctx // it is that of the process
	in       io.Reader
	out, log io.Writer
}

func (t *terminal) logf(format string, args ...any) { fmt.Fprintf(t.log, format+"\n", args...) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	term := &terminal{ctx: ctx, in: os.Stdin, out: os.Stdout, log: os.Stderr}
	err := newCommand(term).ExecuteContext(ctx)
	switch {
	case err == nil:
	case errors.Is(err, errFound):
		os.Exit(exitFound)
	case errors.Is(err, errUnread):
		os.Exit(exitFailed)
	default:
		term.logf("profiletool: %v", err)
		os.Exit(exitFailed)
	}
}

func newCommand(term *terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "profiletool",
		Short: "Read, check, convert, show and send profiles",
		Long: `Profiletool reads, checks, converts, shows and sends profiles at a terminal.

It reads every format and every layout of OTLP that the collector reads, and detects them by content.
"-" is standard input. Data goes to standard output, everything else to standard error.

The exit code is 0 if all went well, 1 if a check found faults, a condition of diff holds or a receiver refused
something, and 2 if the command could not do its work.`,
		Version:       toolVersion,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(term.in)
	root.SetOut(term.out)
	root.SetErr(term.log)
	root.AddGroup(
		&cobra.Group{ID: groupFiles, Title: "Files:"},
		&cobra.Group{ID: groupReports, Title: "Reports, with the flags of go tool pprof:"},
		&cobra.Group{ID: groupNetwork, Title: "Over the network:"},
	)
	root.AddCommand(
		newConvert(term), newCheck(term), newStats(term), newDiff(term), newStore(term),
		newServe(term), newMCP(term), newSend(term), newLoad(term),
	)
	root.AddCommand(newReports(term)...)
	return root
}

const (
	groupFiles   = "files"
	groupReports = "reports"
	groupNetwork = "network"
)

// toolVersion is set by the linker.
var toolVersion = "(devel)"
