// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilestologsexporter is the exporter `profiles_to_logs`: OTLP profiles go to a peer as they are, or as log
// records that carry them if the peer has no service for profiles.
//
// The Collector's queue calls push with a batch. tryProfiles decides whether to send profiles or log records, split
// cuts the batch into parts of one request each (splitProfiles, or records.Encoder), and send sends a part to the
// peer: grpcPeer, httpPeer or hecPeer. The peer's answer has an outcome (grpcAnswer, httpAnswer, hecAnswer), on which
// push acts: it halves parts that are too large, sends a probe if the peer cannot read a part, changes to log records,
// or returns what must be sent again.
package profilestologsexporter
