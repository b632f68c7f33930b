// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Elements, popovers and the clipboard. Nothing here parses HTML: text is always inserted as text.

// el returns an element. Properties that start with "on" are listeners, `class` is the class name, null and false
// are omitted, and all others are attributes.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// refill replaces an element's children only if its key has changed, and leaves the focus where it was: on the control at the same
// position. Otherwise new data, or what a control does, would take it away.
export function refill(element, key, children) {
  const text = JSON.stringify(key);
  if (element.filled === text) return;
  element.filled = text;
  const controls = () => [...element.querySelectorAll('button, a, input, select, summary')];
  const focused = controls().indexOf(document.activeElement);
  element.replaceChildren(...children().filter(Boolean));
  if (focused >= 0) controls().slice(0, focused + 1).at(-1)?.focus();
}

export function button(label, onclick, properties = {}) {
  return el('button', {type: 'button', onclick, ...properties}, label);
}

// fitCanvas sets the size of a canvas in CSS pixels, and returns its empty context in the same unit.
export function fitCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

// listenToDrags keeps in view.drag what a pointer drags over view.canvas: {from, until, base, moved}, of which from and until are
// what at(event) returns, undefined if there is nothing to drag over, and base is true with Shift. move(event) is called for each
// movement, end(drag, event) when the pointer is released, moved or not.
export function listenToDrags(view, {at, move, end}) {
  const {canvas} = view;
  canvas.addEventListener('pointerdown', (event) => {
    const from = at(event);
    if (from === undefined || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    view.drag = {from, until: from, base: event.shiftKey, x: event.clientX, moved: false};
  });
  canvas.addEventListener('pointermove', (event) => {
    const until = at(event);
    if (until === undefined) return;
    const {drag} = view;
    if (drag) Object.assign(drag, {until, moved: drag.moved || Math.abs(event.clientX - drag.x) > 3});
    move(event);
    if (drag) view.draw();
  });
  for (const type of ['pointerup', 'pointercancel']) {
    canvas.addEventListener(type, (event) => {
      const {drag} = view;
      view.drag = null;
      if (!drag) return;
      if (type === 'pointerup') end(drag, event);
      view.draw();
    });
  }
}

// ordered returns what was dragged over in either direction, as numbers.
export function ordered({from, until}) {
  return {from: Math.min(from, until), until: Math.max(from, until)};
}

// popover shows an element below an anchor (an element or {x, y}) until Escape, a press elsewhere, or close(). The browser moves the
// focus to its first control, keeps it inside, and gives it back.
export function popover(anchor, content, {label} = {}) {
  const element = el('dialog', {class: 'popover', 'aria-label': label, onclose: () => element.remove(),
    onpointerdown: (event) => event.target === element && element.close()}, content);
  document.body.append(element);
  element.showModal();
  const box = anchor.getBoundingClientRect?.() ?? {left: anchor.x, bottom: anchor.y, top: anchor.y};
  const {offsetWidth, offsetHeight} = element;
  const left = Math.max(6, Math.min(box.left, innerWidth - offsetWidth - 6));
  const below = box.bottom + 4;
  const top = below + offsetHeight > innerHeight - 6 ? Math.max(6, Math.min(box.top - offsetHeight - 4, innerHeight - offsetHeight - 6)) : below;
  element.style.left = `${left}px`;
  element.style.top = `${top}px`;
  return element;
}

// menu shows a list of actions: [label, action, hint]; null entries are skipped.
export function menu(anchor, label, entries) {
  const items = entries.filter(Boolean).map(([text, action, hint]) => el('button', {
    type: 'button', role: 'menuitem', class: 'item', onclick: () => { open.close(); action(); },
  }, el('span', {}, text), hint ? el('kbd', {}, hint) : null));
  const list = el('div', {role: 'menu', 'aria-label': label, class: 'menu', onkeydown: (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
  }}, items);
  const open = popover(anchor, list, {label});
}

// copyText copies a text and reports whether it succeeded. Without access to the clipboard (plain HTTP from another host) it
// uses a selection.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const back = document.activeElement;
    const area = el('textarea', {class: 'offscreen'});
    area.value = text;
    (back?.closest('dialog') ?? document.body).append(area); // nothing outside an open dialog can be selected
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    back?.focus();
    return copied;
  }
}

// copyField returns a text in a field with a button that copies it.
export function copyField(label, text) {
  const field = el('input', {readonly: true, value: text, 'aria-label': label, onfocus: () => field.select()});
  const done = button('copy', async () => {
    done.textContent = (await copyText(text)) ? 'copied' : 'select and copy';
    setTimeout(() => { done.textContent = 'copy'; }, 1500);
  });
  return el('div', {class: 'copyfield'}, el('label', {}, label), el('div', {}, field, done));
}
