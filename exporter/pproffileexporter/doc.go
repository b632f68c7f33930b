// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pproffileexporter is the exporter `pprof_file`: it writes OTLP profiles as pprof files, and deletes the
// oldest.
//
// The queue and the retries are the Collector's. writer.writeAll makes one file for each pprof that encode.Encode
// returns. A file appears under its name when it is complete and on the disk: it is written under a temporary name,
// synced and renamed. The folders are synced once, before writeAll returns. All paths stay below one directory
// (os.Root), regardless of the names that arrive.
package pproffileexporter
