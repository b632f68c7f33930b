// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {SvgPen} from '../static/picture.js';

test('names are text in a picture, and what is outside is cut', () => {
  const pen = new SvgPen(100, 20, () => ({width: 7}));
  Object.assign(pen, {fillStyle: 'oklch(0.8 0.1 "20)', globalAlpha: 0.5});
  pen.fillRect(-10, 0, 500, 18);
  pen.fillRect(200, 0, 5, 18);
  pen.fillText('<script>owned("1")</script>', 4, 9.5);
  const svg = pen.text('a & b\u0000');
  assert.equal(svg, '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="20" viewBox="0 0 100 20"><title>a &amp; b\\x00</title>' +
    '<g font-family="monospace" font-size="11.5" dominant-baseline="central" xml:space="preserve">' +
    '<rect x="0" y="0" width="100" height="18" fill="oklch(0.8 0.1 &quot;20)" opacity="0.5"/>' +
    '<text x="4" y="9.5" fill="oklch(0.8 0.1 &quot;20)" opacity="0.5">&lt;script&gt;owned(&quot;1&quot;)&lt;/script&gt;</text></g></svg>');
});
