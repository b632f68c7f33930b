// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The package, module and kind of a frame, and its colour. All colours have the same lightness and a low chroma, so that only
// the frames that a search or a comparison marks stand out.

import {hash32} from './format.js';

// packageOf returns the package, namespace or directory that a function belongs to, '' if it is unknown.
export function packageOf(name, file = '', mapping = '') {
  const cut = name.length > 1000 ? name.slice(0, 1000) : name;
  const head = cut.slice(0, indexOfAny(cut, '([<{ ', 1));
  const scopes = head.split('::');
  if (scopes.length > 1) return scopes.slice(0, Math.min(2, scopes.length - 1)).join('::');
  const slash = head.lastIndexOf('/');
  const dot = head.indexOf('.', slash + 1);
  if (dot > 0) {
    if (slash >= 0) return head.slice(0, dot);
    // java.util.HashMap.put: the words before the first one with a capital.
    const words = head.split('.');
    const type = words.findIndex((word) => /^[A-Z]/.test(word));
    return type > 1 ? words.slice(0, type).join('.') : words[0];
  }
  const node = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file);
  if (node) return node[1];
  if (file.includes('/')) return file.slice(0, file.lastIndexOf('/'));
  return baseName(mapping);
}

// moduleOf returns the module or the binary that a function belongs to.
export function moduleOf(name, file = '', mapping = '') {
  const path = packageOf(name, file, mapping);
  const parts = path.split('/');
  if (parts.length > 1 && parts[0].includes('.')) return parts.slice(0, 3).join('/');
  if (file.endsWith('.go')) return parts[0] === 'main' ? 'main' : 'standard library';
  return baseName(mapping) || parts[0];
}

function indexOfAny(text, characters, from) {
  for (let i = from; i < text.length; i++) if (characters.includes(text[i])) return i;
  return text.length;
}

export function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

// shortName returns a function's name without the directories of its package: http.(*conn).serve.
export function shortName(name) {
  const head = name.slice(0, indexOfAny(name, '([<{ ', 1));
  return name.slice(head.lastIndexOf('/') + 1);
}

// kinds are the kinds of frames that the page distinguishes, with their names in the legend.
export const kinds = {
  __proto__: null, kernel: 'kernel', runtime: 'runtime', inlined: 'inlined', unknown: 'unknown',
  gpu_kernel: 'GPU kernel', gpu_memory: 'GPU copy or fill', gpu_runtime: 'launch',
};

// hueOfKind and chromaOfKind are the colours of kinds that must be told apart: what a GPU does has its own in every mode.
const hueOfKind = { __proto__: null, gpu_kernel: 150, gpu_memory: 330, gpu_runtime: 250, torch_op: 200, torch_annotation: 120, cpython: 285 };
const chromaOfKind = { __proto__: null, gpu_kernel: 0.11, gpu_memory: 0.11, gpu_runtime: 0.022 };

// kindOf returns one of kinds, or '' for a frame of the program itself.
export function kindOf(frames, frame) {
  const kind = frames.kind[frame] ?? '';
  if (kind in kinds) return kind;
  return !frames.name[frame] ? 'unknown' : '';
}

export const themes = {
  light: {
    dark: false, background: '#fcfcfb', text: '#1c1d1f', faint: '#65686d', line: '#dfdfda', accent: '#2f6fb3', base: '#a4559d',
    area: '#bcd3ea', areaLine: '#5b8fc4', hover: 'rgba(0,0,0,0.12)', outline: '#16181b', match: 'oklch(0.84 0.15 92)',
    hatch: 'rgba(30,30,30,0.16)', lightness: 0.845, chroma: 0.062, neutral: 0.9,
  },
  dark: {
    dark: true, background: '#15171a', text: '#e8e8e6', faint: '#9a9ea5', line: '#2c3036', accent: '#78aee6', base: '#d48fce',
    area: '#24405c', areaLine: '#5f94c8', hover: 'rgba(255,255,255,0.16)', outline: '#ffffff', match: 'oklch(0.60 0.12 90)',
    hatch: 'rgba(255,255,255,0.13)', lightness: 0.44, chroma: 0.062, neutral: 0.33,
  },
};

// colorer returns a function from a frame to its fill, by 'package', 'module' or 'kind'.
export function colorer(frames, by, theme) {
  const cache = new Array(frames.count);
  const hues = (key, tint) => {
    const hash = hash32(key);
    // The hues from 60 to 110 are reserved for matches of a search.
    const hue = (110 + (hash % 310)) % 360;
    const lift = (((hash >>> 12) % 5) - 2) * 0.012 + tint;
    return `oklch(${(theme.lightness + lift).toFixed(3)} ${theme.chroma} ${hue})`;
  };
  return (frame) => {
    if (frame < 0) return `oklch(${theme.neutral} 0.004 250)`;
    return cache[frame] ??= fill(frame);
  };
  function fill(frame) {
    const kind = kindOf(frames, frame);
    if (kind === 'kernel') return `oklch(${theme.lightness - 0.02} 0.105 48)`;
    if (kind === 'runtime' || (kind === 'inlined' && frames.name[frame].startsWith('runtime.'))) return `oklch(${theme.lightness} 0.022 250)`;
    if (kind === 'unknown' || frames.isGroup(frame)) return `oklch(${theme.neutral} 0.004 250)`;
    const [name, file, mapping] = [frames.name[frame], frames.file[frame] ?? '', frames.mapping[frame] ?? ''];
    // Functions of one package differ a little, so that neighbours can be distinguished.
    const tint = ((hash32(name) % 7) - 3) * 0.006;
    if (kind in chromaOfKind || (by === 'kind' && frames.kind[frame] in hueOfKind)) {
      const which = kind || frames.kind[frame];
      return `oklch(${(theme.lightness + tint).toFixed(3)} ${chromaOfKind[which] ?? theme.chroma} ${hueOfKind[which]})`;
    }
    if (by === 'kind') return hues(kind || frames.kind[frame] || 'user', tint);
    return hues(by === 'module' ? moduleOf(name, file, mapping) : packageOf(name, file, mapping), tint);
  }
}

// changeColor returns the fill for a change from -1 (gone) over 0 to 1 (new). Increases and decreases differ in lightness as
// well as in hue; the label has the sign.
export function changeColor(change, palette, theme) {
  const size = Math.min(1, Math.abs(change));
  if (!(size > 0.004)) return `oklch(${theme.neutral} 0.004 250)`;
  const [more, less] = palette === 'orange-blue' ? [60, 250] : [25, 150];
  const step = Math.ceil(Math.sqrt(size) * 8) / 8;
  const lift = theme.dark ? (change > 0 ? 0.16 : 0.06) : (change > 0 ? -0.18 : -0.07);
  return `oklch(${(theme.neutral + lift * step).toFixed(3)} ${((change > 0 ? 0.115 : 0.09) * step).toFixed(3)} ${change > 0 ? more : less})`;
}
