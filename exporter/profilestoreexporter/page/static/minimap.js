// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The minimap of a graph that is much higher than the screen: all of its rows, with a frame around those in view. A press or a drag scrolls.

import {el, fitCanvas} from './dom.js';
import {visit} from './layout.js';

export const mapWidth = 84;

export class Minimap {
  // on.scroll(share) scrolls to a share of the height.
  constructor(on) {
    Object.assign(this, {on, key: null});
    // Keys scroll the graph itself.
    this.canvas = el('canvas', {class: 'minimap', 'aria-hidden': 'true', hidden: true});
    const scroll = (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.on.scroll((event.clientY - box.top) / box.height);
    };
    this.canvas.addEventListener('pointerdown', (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      scroll(event);
    });
    this.canvas.addEventListener('pointermove', (event) => event.buttons && scroll(event));
  }

  // draw shows rows of a layout, of which the share from top to bottom is in view.
  draw({at, view, rows, upwards, height, fill, theme, top, bottom}) {
    const width = mapWidth;
    const pen = fitCanvas(this.canvas, width, height);
    this.canvas.style.width = `${width}px`;
    pen.fillStyle = theme.background;
    pen.fillRect(0, 0, width, height);
    const step = height / rows;
    const scale = width / (view.until - view.from);
    // Of rows that share a pixel, one is drawn.
    const stride = Math.max(1, Math.floor(1 / step));
    for (let row = 0; row < rows; row += stride) {
      const y = (upwards ? rows - 1 - row : row) * step;
      const paint = (node, x0, x1) => {
        pen.fillStyle = fill(node);
        pen.fillRect(Math.max(0, x0), y, Math.max(0.5, Math.min(width, x1) - Math.max(0, x0)), Math.max(1, step));
      };
      visit(at, row, {...view, scale}, paint, paint);
    }
    pen.strokeStyle = theme.accent;
    pen.lineWidth = 1.5;
    pen.strokeRect(0.75, top * height + 0.75, width - 1.5, Math.max(3, (bottom - top) * height - 1.5));
  }
}
