// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package shutdown

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// again is the interval at which a signal is sent again until the collector listens for it.
const again = 50 * time.Millisecond

// Signals handles SIGTERM, SIGINT and SIGHUP until the collector has started, and while it stops.
//
// The Collector listens for signals only once everything has started. Before that, SIGTERM would kill the process, or,
// if it is the first of a container, do nothing at all.
type Signals struct{ received chan os.Signal }

// Listen catches the signals from now on. A SIGHUP before the start has no effect: the configuration is about to be
// read.
func Listen() *Signals {
	s := &Signals{make(chan os.Signal, 1)}
	signal.Notify(s.received, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	return s
}

// Stop restores the usual effect of the signals.
func (s *Signals) Stop() { signal.Stop(s.received) }

// Forward sends a SIGTERM or SIGINT to the process again until it ends, so that the Collector receives it as soon as it
// listens. It calls late if the process still runs after the timeout. It returns at once.
func (s *Signals) Forward(timeout time.Duration, late func()) {
	go func() {
		for received := range s.received {
			if received == syscall.SIGHUP {
				continue
			}
			// Signals that Forward sends again must not start another loop.
			time.AfterFunc(timeout, late)
			for {
				time.Sleep(again)
				_ = syscall.Kill(os.Getpid(), received.(syscall.Signal))
			}
		}
	}()
}
