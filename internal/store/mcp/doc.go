// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package mcp answers assistants about a store by the Model Context Protocol, with the official SDK: over HTTP
// (Handler), or over any transport of the SDK (New).
//
// Each tool (tools.go) is one question. It reads its arguments as parameters of package query, runs within the limits
// of all queries, works on the store's trees (frames.go, calltree.go), and writes text (text.go) that fits a context
// window: the largest rows, with their units, what was left out, and how to ask for it.
//
// The server is read only and keeps nothing between requests. Hence there are no sessions that clients could leave
// behind.
package mcp
