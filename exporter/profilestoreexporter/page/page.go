// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package page has the files of the page of flame graphs: HTML, CSS and JavaScript modules that a browser runs
// unchanged. There is no build step, and no request leaves the page's own origin.
//
// index.html loads static/app.js, which reads the state from the URL (state.js), asks the API (loader.js, load.js,
// api.js), builds a tree of the answer (tree.js), lays it out (layout.js) and shows it (stage.js): timeline.js,
// flamegraph.js with paint.js, table.js, functions.js with details.js. Without a service it lists all of them
// (overview.js); compare.js chooses the sides of a diff, notices.js shows banners above the graph. search.js finds
// names, by match.js in a thread of its own. The remaining modules are parts of these. docs/architecture.md of the
// repository has the whole picture.
package page

import "embed"

// Files has index.html at its root and everything that it loads below static/. All paths in them are relative, so that
// the page also works below a prefix of a reverse proxy.
//
//go:embed index.html static/*.css static/*.js static/*.svg
var Files embed.FS
