// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"bytes"
	"runtime/pprof"

	"go.uber.org/zap"
)

// cpuProfiler holds the process's CPU profiler whenever nobody else does.
type cpuProfiler struct {
	logger  *zap.Logger
	running bool
	waiting bool
	data    *bytes.Buffer
}

// start takes the profiler. Where somebody else has it, such as a request to the pprof extension,
// that one keeps it: the next call asks again.
func (c *cpuProfiler) start() {
	if c.running {
		return
	}
	c.data = &bytes.Buffer{}
	if err := pprof.StartCPUProfile(c.data); err != nil {
		if !c.waiting {
			c.waiting = true
			c.logger.Info("another CPU profile of the collector is running; waiting until it ends", zap.Error(err))
		}
		return
	}
	if c.waiting {
		c.logger.Info("profiling the collector's CPU again")
	}
	c.running, c.waiting = true, false
}

// stop gives the profile since start, or nil where the profiler was not ours.
func (c *cpuProfiler) stop() []byte {
	if !c.running {
		return nil
	}
	// Stopping what is not ours would break somebody else's profile; running says that it is ours.
	pprof.StopCPUProfile()
	c.running = false
	return c.data.Bytes()
}
