// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilestologsexporter is the exporter `profiles_to_logs`: OTLP profiles go to a peer as they are, or as log
// records that carry them if the peer has no service for profiles.
//
// The Collector's queue calls push with a batch. tryProfiles decides what the batch goes out as, split cuts it into parts
// of one request each (splitProfiles, or splunklog.Encoder), and send hands a part to the peer: grpcPeer, httpPeer or
// hecPeer. The peer's answer has an outcome (grpcAnswer, httpAnswer, hecAnswer), by which push goes on: halves what is too
// large, sends a probe where the peer cannot read a part, changes to log records, or returns what is to be sent again.
package profilestologsexporter
