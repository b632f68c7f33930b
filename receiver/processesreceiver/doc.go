// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package processesreceiver is the receiver `processes`: profiles of memory and locks of programs that nobody has
// changed, read from outside.
//
// In: the processes in /proc. Out: pprof of Go programs and recordings of Java's Flight Recorder, decoded as if the
// programs had sent them, with a resource for each process that process_resource names. The steps:
//
//	receiver.scan    lists the processes once per interval, and keeps what it knows of each (receiver.go)
//	examine          finds out what a process is: a Go program, a JVM, or neither (examine.go)
//	source.collect   reads a Go program's memory (go.go, internal/goheap), or has a JVM write its recording (java.go, internal/hotspot)
//	sink.deliver     decodes the bytes on the budget of the process, sets the resource, and passes the profiles on (sink.go)
//
// Totals become what has happened since the last time, by a Baseline for each process and profile; states are sent as
// they are.
//
// Bounds: max_processes and a fixed number of workers; the bytes that are read of each process; the budget for what
// they become. A process that fails is logged once, counted, and tried again less and less often.
//
// Security: processes are not trusted. Their memory, files and answers are bounded and checked, and nothing of theirs
// is followed out of their own file system. The memory of Go programs is only read. A JVM is asked by its own protocol,
// as its own user, and gets SIGQUIT only if it is one that waits for it. No process is stopped.
package processesreceiver
