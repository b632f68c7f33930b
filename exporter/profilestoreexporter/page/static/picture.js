// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A flame graph as a picture: SVG, whose text can be searched, or PNG. Both are painted by paint.js, as on the page.

import {clean} from './format.js';

const maxHeight = 16_000; // of a PNG; browsers refuse canvases that are much higher

// SvgPen is what paint.js needs of a canvas' context, and collects an SVG.
export class SvgPen {
  constructor(width, height, measure) {
    Object.assign(this, {width, height, measure, parts: [], fillStyle: '', strokeStyle: '', lineWidth: 1, globalAlpha: 1, font: '', textBaseline: '', textAlign: 'left'});
  }

  setTransform() {}

  measureText(text) {
    return this.measure(text);
  }

  // createPattern is that of hatched frames, which have a dashed outline here.
  createPattern() {
    return 'hatched';
  }

  fillRect(x, y, width, height) {
    const [from, until] = [Math.max(0, x), Math.min(this.width, x + width)];
    if (until <= from) return;
    const box = `x="${round(from)}" y="${round(y)}" width="${round(until - from)}" height="${round(height)}"`;
    this.parts.push(this.fillStyle === 'hatched' ? `<rect ${box} fill="none" stroke="gray" stroke-width="0.5" stroke-dasharray="2"/>` : `<rect ${box} fill="${escape(this.fillStyle)}"${this.alpha()}/>`);
  }

  strokeRect(x, y, width, height) {
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="none" stroke="${escape(this.strokeStyle)}" stroke-width="${this.lineWidth}"/>`);
  }

  fillText(text, x, y) {
    this.parts.push(`<text x="${round(x)}" y="${round(y)}" fill="${escape(this.fillStyle)}"${this.textAlign === 'right' ? ' text-anchor="end"' : ''}${this.alpha()}>${escape(text)}</text>`);
  }

  alpha() {
    return this.globalAlpha < 1 ? ` opacity="${round(this.globalAlpha)}"` : '';
  }

  // text returns the whole file. font is that of all text.
  text(title) {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">` +
      `<title>${escape(clean(title, 400))}</title><g font-family="monospace" font-size="11.5" dominant-baseline="central" xml:space="preserve">${this.parts.join('')}</g></svg>`;
  }
}

function round(n) {
  return Math.round(n * 100) / 100;
}

function escape(text) {
  return String(text).replace(/[&<>"]/g, (c) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'}[c]));
}

// svgOf returns the SVG of a graph, all of its rows; pngOf a promise of its PNG.
export function svgOf(graph, title) {
  const pen = new SvgPen(graph.width, graph.rowsHeight, (text) => graph.context.measureText(text));
  graph.paintAll(pen, pen.height);
  return new Blob([pen.text(title)], {type: 'image/svg+xml'});
}

export function pngOf(graph) {
  const height = Math.min(maxHeight, graph.rowsHeight);
  const ratio = devicePixelRatio || 1;
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [Math.round(graph.width * ratio), Math.round(height * ratio)];
  graph.paintAll(canvas.getContext('2d', {alpha: false}), height);
  return new Promise((resolve, reject) => { canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture is too large'))), 'image/png'); });
}

// save makes the browser save a file.
export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
