// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Lists to pick from by typing.

import {el, popover} from './dom.js';
import {clean} from './format.js';

const shown = 200;

// filterOptions returns the options that contain all typed words, in any case and order. Those that start with the first word
// come first.
export function filterOptions(options, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return options;
  const start = [];
  const within = [];
  for (const option of options) {
    const text = `${option.label} ${option.detail ?? ''}`.toLowerCase();
    if (words.every((word) => text.includes(word))) (text.startsWith(words[0]) ? start : within).push(option);
  }
  return [...start, ...within];
}

let lists = 0;

// pick opens a list of options ({value, label, detail}) below an anchor, and calls onpick with the chosen option. custom
// may return another option for what was typed. search, if there is one, returns a promise of the options for what was typed, and how many
// more there are.
export function pick(anchor, {label, options, current, onpick, custom, search, empty = 'Nothing to choose from yet.'}) {
  const id = `list-${++lists}`;
  const list = el('ul', {role: 'listbox', id, 'aria-label': label});
  const input = el('input', {
    type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': id, 'aria-label': label, 'aria-autocomplete': 'list',
    placeholder: `${label}: type to filter`, spellcheck: 'false', autocomplete: 'off',
  });
  const note = el('p', {class: 'note', role: 'status'});
  const open = popover(anchor, el('div', {class: 'picklist'}, input, list, note), {label});
  let found = [];
  let active = 0;
  const choose = (option) => {
    open.close();
    onpick(option);
  };
  const highlight = (index) => {
    list.children[active]?.setAttribute('aria-selected', 'false');
    active = Math.max(0, Math.min(index, Math.min(found.length, shown) - 1));
    const item = list.children[active];
    if (!found.length || !item) return input.removeAttribute('aria-activedescendant');
    item.setAttribute('aria-selected', 'true');
    item.scrollIntoView({block: 'nearest'});
    input.setAttribute('aria-activedescendant', item.id);
  };
  let more = 0;
  let searched = null; // the text whose options are there
  let isChosen = false; // Enter was pressed before they were
  const find = async () => {
    const typed = input.value;
    render();
    try {
      const answer = await search(typed.trim());
      if (typed !== input.value || !open.isConnected) return;
      ({options, more} = answer);
    } catch (error) {
      empty = error.message;
    }
    searched = typed;
    render();
    if (isChosen && found[active]) choose(found[active]);
    isChosen = false;
  };
  const render = () => {
    found = filterOptions(options, input.value);
    const typed = custom?.(input.value.trim());
    if (typed && !options.some(({label: text}) => text === typed.label)) found = [...found, typed];
    list.replaceChildren(...found.slice(0, shown).map((option, i) => el('li', {
      role: 'option', id: `${id}-${i}`, 'aria-selected': 'false', class: option.value === current ? 'current' : null,
      onclick: () => choose(option),
    }, el('span', {}, clean(option.label, 200)), option.detail ? el('small', {}, clean(option.detail, 80)) : null)));
    const hidden = Math.max(0, found.length - shown) + more;
    note.textContent = !found.length ? (options.length || (search && input.value) ? `Nothing has “${clean(input.value, 40)}” in it.` : empty)
      : hidden ? `${hidden.toLocaleString('en-US')} more: type to narrow them down` : '';
    highlight(Math.max(0, input.value ? 0 : found.findIndex((option) => option.value === current)));
  };
  input.addEventListener('input', search ? find : render);
  input.addEventListener('keydown', (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10}[event.key];
    if (step) {
      event.preventDefault();
      highlight(active + step);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (search && searched !== input.value) isChosen = true;
      else if (found[active]) choose(found[active]);
    }
  });
  if (search) find();
  else render();
}

// Picker is a button that shows what is chosen and opens the list.
export class Picker {
  constructor({label, empty, onpick, search, none = 'none'}) {
    this.options = [];
    this.none = none;
    this.text = el('span', {class: 'value'});
    this.element = el('button', {type: 'button', class: 'picker', 'aria-haspopup': 'dialog', onclick: () => this.open()},
      el('small', {}, label), this.text, el('span', {'aria-hidden': 'true'}, '▾'));
    this.open = () => pick(this.element, {label, options: this.options, current: this.current, empty, search, onpick: (option) => onpick(option.value)});
  }

  set(options, current) {
    Object.assign(this, {options, current});
    const option = options.find(({value}) => value === current);
    this.text.textContent = clean(option?.label ?? (current || this.none), 60);
    this.text.title = clean(option?.label ?? current ?? '', 400);
  }
}
