// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"bytes"
	"runtime/pprof"

	"go.uber.org/zap"
)

// cpuProfiler runs the process's CPU profiler whenever nothing else does.
type cpuProfiler struct {
	logger  *zap.Logger
	running bool
	waiting bool
	data    *bytes.Buffer
}

// start starts a profile, unless one is running. If something else has the profiler, such as a request to the pprof extension, the next
// call retries.
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

// stop ends the profile and returns it, or nil if there is none.
func (c *cpuProfiler) stop() []byte {
	if !c.running { // StopCPUProfile would end another one's profile
		return nil
	}
	pprof.StopCPUProfile()
	c.running = false
	return c.data.Bytes()
}
