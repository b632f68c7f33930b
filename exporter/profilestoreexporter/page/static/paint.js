// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Draws a layout on a canvas: only the rows in view, and only nodes that are at least a pixel wide.

import {visit} from './layout.js';
import {shortName} from './colors.js';

export const rowHeight = 19;
const font = '11.5px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

let characterWidth = 0;
let hatches = {};

// measure returns the width of a character. The font is monospaced, so labels can be cut without measuring each.
function measure(context) {
  context.font = font;
  characterWidth ||= context.measureText('abcdefghij0123456789').width / 20;
  return characterWidth;
}

// hatch returns a pattern of thin diagonals.
function hatch(context, color) {
  return hatches[color] ??= (() => {
    const tile = new OffscreenCanvas(6, 6);
    const pen = tile.getContext('2d');
    pen.strokeStyle = color;
    pen.lineWidth = 1.2;
    pen.beginPath();
    for (const offset of [-6, 0, 6]) {
      pen.moveTo(offset, 6);
      pen.lineTo(offset + 6, 0);
    }
    pen.stroke();
    return context.createPattern(tile, 'repeat');
  })();
}

// rowTop returns the y of a row in the scene, of which `rows` rows are in use: the root on top, or at the bottom.
function rowTop(row, rows, upwards) {
  return (upwards ? rows - 1 - row : row) * rowHeight;
}

// paint draws a scene:
//   at: the layout; view: {from, until} in its units; rows: how many rows are in use; upwards: the root at the bottom
//   width, height: of the canvas in CSS pixels; top: the scene's y at the upper edge of the canvas
//   theme; fill(node), hatched(node), label(node), value(node), matched(node): 0, 1 or null without a search
//   selected: a function or -1; hovered: a node or -1; zoomed: a node
export function paint(context, scene) {
  const {at, view, rows, upwards, width, height, top, theme} = scene;
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  if (!at.width || !width) return;
  measure(context);
  context.textBaseline = 'middle';
  const scale = width / (view.until - view.from);
  const bottom = top + height;
  const firstRow = upwards ? rows - Math.ceil(bottom / rowHeight) : Math.floor(top / rowHeight);
  const lastRow = upwards ? rows - 1 - Math.floor(top / rowHeight) : Math.ceil(bottom / rowHeight) - 1;
  for (let row = Math.max(0, firstRow); row <= Math.min(rows - 1, lastRow); row++) {
    const y = rowTop(row, rows, upwards) - top;
    const faded = row < scene.at.tree.depth[scene.zoomed];
    context.globalAlpha = faded ? 0.55 : 1;
    visit(at, row, {...view, scale},
      (node, x0, x1) => drawFrame(context, scene, node, Math.max(x0, -1), Math.min(x1, width + 1), y),
      (node, x0, x1) => drawRun(context, scene, node, x0, Math.max(x1 - x0, 0.5), y));
  }
  context.globalAlpha = 1;
}

function drawFrame(context, scene, node, x0, x1, y) {
  const {theme} = scene;
  // Leave a gap of a pixel between neighbours if there is room.
  const width = x1 - x0 - (x1 - x0 > 3 ? 1 : 0);
  const height = rowHeight - 1;
  const matched = scene.matched(node);
  const alpha = context.globalAlpha;
  context.fillStyle = matched ? theme.match : scene.fill(node);
  if (matched === 0) context.globalAlpha = alpha * 0.35;
  context.fillRect(x0, y, width, height);
  if (width > 4 && scene.hatched(node)) {
    context.fillStyle = hatch(context, theme.hatch);
    context.fillRect(x0, y, width, height);
  }
  context.globalAlpha = matched === 0 ? alpha * 0.7 : alpha;
  if (width > 2 && scene.selected >= 0 && scene.at.tree.function(node) === scene.selected) {
    context.strokeStyle = theme.outline;
    context.lineWidth = 1.4;
    context.strokeRect(x0 + 0.7, y + 0.7, Math.max(width - 1.4, 0.1), height - 1.4);
  }
  if (node === scene.hovered) {
    context.fillStyle = theme.hover;
    context.fillRect(x0, y, width, height);
  }
  const room = Math.floor((width - 7) / characterWidth);
  if (room >= 3) {
    context.fillStyle = theme.text;
    const label = scene.label(node);
    context.fillText(fit(label, room), x0 + 4, y + height / 2 + 0.5);
    const value = room >= label.length + 10 ? scene.value?.(node) : '';
    if (value && room >= label.length + value.length + 3) {
      context.textAlign = 'right';
      context.fillText(value, x0 + width - 4, y + height / 2 + 0.5);
      context.textAlign = 'left';
    }
  }
  context.globalAlpha = alpha;
}

// drawRun draws a run of narrow nodes as one, in the colour of the first, fainter than a frame.
function drawRun(context, scene, node, x, width, y) {
  const alpha = context.globalAlpha;
  const matched = scene.matched(node);
  context.globalAlpha = alpha * (matched === 0 ? 0.25 : matched ? 1 : 0.55);
  context.fillStyle = matched ? scene.theme.match : scene.fill(node);
  context.fillRect(x, y, width, rowHeight - 1);
  context.globalAlpha = alpha;
}

// fit returns a label of at most room characters: whole, without the directories of the package, or cut.
export function fit(label, room) {
  if (label.length <= room) return label;
  const short = shortName(label);
  return short.length <= room ? short : `${short.slice(0, room - 1)}…`;
}
