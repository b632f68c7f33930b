// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package clickhousetest runs ClickHouse's engine, which npm's package chdb embeds, behind as much of its protocol over
// HTTP as tests need (Server), and makes tables of profiles (Table).
package clickhousetest
