// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package clickhouse answers the store's queries from a table of ClickHouse, which has a row for each sample: that of
// contrib's exporter `clickhouse`, or the one of docs/sql.md, which has columns and projections that make queries fast.
//
// An Engine is a store.Engine. Each of its methods is one SELECT (sql.go), sent over HTTP (client.go) with what depends
// on a query as parameters, and lists of series, profiles or stacks as a temporary table. No text of a query becomes
// SQL. The answer comes in RowBinary, and is read row by row (rowbinary.go).
package clickhouse
