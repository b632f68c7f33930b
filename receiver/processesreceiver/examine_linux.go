// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package processesreceiver

import (
	"context"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/hotspot"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// source has the profiles of one process.
type source interface {
	// collect delivers the new data.
	collect(ctx context.Context, t *target.Target) error
	// close ends the recording in the process, if that still runs.
	close()
}

// process is the state of a process. Except for isBusy and next, only the worker that has it uses it.
type process struct {
	isBusy atomic.Bool
	// next is when it is tried again.
	next time.Time
	// file is the program that was examined.
	file       target.File
	executable string
	runtime    runtimeName
	// source is nil if there is nothing to read.
	source source
	// quiet counts the examinations that found nothing, failures the attempts since the last that succeeded.
	quiet, failures int
	why             reason
	isCounted       bool
}

// examine determines the runtime of a process, unless it is known and runs the same program.
func (r *processes) examine(p *process, t *target.Target) error {
	file, err := t.File()
	if err != nil {
		return err
	}
	if p.source != nil {
		if p.file == file {
			return nil
		}
		r.release(p)
	}
	p.file, p.runtime = file, runtimeUnknown
	found, err := r.reader.Read(t.PID)
	if err != nil || found.IsKernelThread {
		return err
	}
	p.executable = found.Executable
	if !r.filter.admits(path.Base(found.Executable), strings.Join(found.Arguments, " "), found.Container) {
		return nil
	}
	mappings, err := t.Mappings()
	if err != nil {
		return err
	}
	if hotspot.IsJVM(mappings) {
		p.runtime = runtimeJava
		if r.cfg.Java.Enabled && r.admit() {
			p.source = r.newJavaSource(t, resourceOf(t, &found))
		}
		return nil
	}
	if r.cfg.Go.Enabled {
		p.runtime = runtimeGo
		program, err := r.newGoSource(t, mappings, file, resourceOf(t, &found))
		switch {
		case program == nil:
		case r.admit():
			p.source = program
		default:
			program.close()
		}
		return err
	}
	return nil
}

// resourceOf describes a process with the attributes by which process_resource names it.
func resourceOf(t *target.Target, found *procfs.Process) pcommon.Map {
	resource := pcommon.NewMap()
	resource.PutInt("process.pid", t.PID)
	if found.Executable != "" {
		resource.PutStr("process.executable.name", strings.ToValidUTF8(path.Base(found.Executable), "\uFFFD"))
		resource.PutStr("process.executable.path", strings.ToValidUTF8(found.Executable, "\uFFFD"))
	}
	if found.Container != "" {
		resource.PutStr("container.id", found.Container)
	}
	return resource
}
