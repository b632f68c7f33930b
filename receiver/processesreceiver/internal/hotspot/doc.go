// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hotspot has a running HotSpot JVM record itself by Flight Recorder, as jcmd would, without a library or an
// agent in it.
//
//	Inspect            finds out whether a process is a JVM that one may attach to, before anything is done to it (inspect.go)
//	VM.Execute         sends a command by the attach protocol, as the JVM's own user (attach_linux.go, user_linux.go)
//	Recording.Start    has our recording started with a file of settings (recording_linux.go, settings.go)
//	Recording.Dump     has it written to a file, reads and deletes that, and returns the chunks that are new (chunks.go)
//	Recording.Stop     ends it
//
// The attach protocol: a file .attach_pid<pid> in the JVM's /tmp and the signal SIGQUIT have it open the socket
// .java_pid<pid>, once. A command is its version and four strings, each with a zero byte; the answer is a number, a
// line break and text.
//
// The JVM and whoever shares its /tmp are not trusted: names are looked up in the file system of the JVM alone, final
// links are not followed, the user's own rights apply, and sizes and times are bounded. HotSpot accepts commands of its
// own user; older versions do not even accept root's.
package hotspot
