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
	waiting bool
	data    *bytes.Buffer // nil while it does not run
}

// start starts a profile, unless one is running. If something else has the profiler, such as a request to the pprof
// extension, the next call retries.
func (c *cpuProfiler) start() {
	if c.data != nil {
		return
	}
	var data bytes.Buffer
	if err := pprof.StartCPUProfile(&data); err != nil {
		if !c.waiting {
			c.waiting = true
			c.logger.Info("another CPU profile of the collector is running; waiting until it ends", zap.Error(err))
		}
		return
	}
	if c.waiting {
		c.logger.Info("profiling the collector's CPU again")
	}
	c.data, c.waiting = &data, false
}

// stop ends the profile and returns it, or nil if there is none.
func (c *cpuProfiler) stop() []byte {
	if c.data == nil { // StopCPUProfile would end another one's profile
		return nil
	}
	pprof.StopCPUProfile()
	data := c.data.Bytes()
	c.data = nil
	return data
}
