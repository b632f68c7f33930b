// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A worker that matches names by a regular expression, for search.js.

onmessage = ({data: {source, names}}) => {
  const expression = new RegExp(source, 'i');
  postMessage(names.filter((name) => expression.test(name)));
};
