// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {repositoryURL, sourceLink} from '../static/source.js';

test('a repository is a page of HTTP, or nothing', () => {
  for (const [text, want] of [
    ['https://github.com/a/b.git', 'https://github.com/a/b'], ['git@github.com:a/b.git', 'https://github.com/a/b'],
    ['ssh://git@git.example.com/a/b', 'https://git.example.com/a/b'], ['https://user:secret@example.com/a/', 'https://example.com/a'],
    ['javascript:alert(1)', ''], ['data:text/html,x', ''], ['file:///etc/passwd', ''], ['', ''], ['a/b', ''],
  ]) assert.equal(repositoryURL(text), want, text);
});

test('a line leads to its file at the revision', () => {
  const link = (file, repository = 'https://github.com/example/shop', line = 7) => sourceLink({file, line, repository, revision: 'abc'});
  for (const [file, repository, want] of [
    ['github.com/example/shop/cart/cart.go', undefined, 'https://github.com/example/shop/blob/abc/cart/cart.go#L7'],
    ['github.com/example/shop/v2/cart/cart.go', undefined, 'https://github.com/example/shop/blob/abc/cart/cart.go#L7'],
    ['/home/me/src/shop/cart/cart.py', undefined, 'https://github.com/example/shop/blob/abc/cart/cart.py#L7'],
    ['src/cart.ts', undefined, 'https://github.com/example/shop/blob/abc/src/cart.ts#L7'],
    ['src/a b#c.ts', undefined, 'https://github.com/example/shop/blob/abc/src/a%20b%23c.ts#L7'],
    ['src/cart.ts', 'https://gitlab.example.com/a/b', 'https://gitlab.example.com/a/b/-/blob/abc/src/cart.ts#L7'],
    ['src/cart.ts', 'https://codeberg.org/a/b', 'https://codeberg.org/a/b/src/commit/abc/src/cart.ts#L7'],
    ['src/cart.ts', 'https://bitbucket.org/a/b', 'https://bitbucket.org/a/b/src/abc/src/cart.ts#lines-7'],
    ['github.com/klauspost/compress@v1.18.0/zstd/decoder.go', '', 'https://github.com/klauspost/compress/blob/v1.18.0/zstd/decoder.go#L7'],
    ['github.com/a/b/v3@v3.0.0-20240102030405-0123456789ab/x.go', '', 'https://github.com/a/b/blob/0123456789ab/x.go#L7'],
    ['/usr/lib/x.c', undefined, ''], ['example.org/other/x.go', undefined, ''], ['../../etc/passwd', undefined, ''], ['', undefined, ''],
    ['src/cart.ts', 'javascript:alert(1)', ''],
  ]) assert.equal(link(file, repository), want, `${file} ${repository}`);
  assert.equal(sourceLink({file: 'src/a.ts', repository: 'https://github.com/a/b'}), '', 'no revision is known');
});

test('a template of the configuration', () => {
  const template = 'https://git.example.com/{service}/blob/{revision}/{file}#L{line}';
  assert.equal(sourceLink({template, file: '/build/x y.go', line: 3, revision: 'a/b', service: 'shop'}), 'https://git.example.com/shop/blob/a/b/build/x%20y.go#L3');
  assert.equal(sourceLink({template: '{repository}/blob/x/{file}', file: 'a.go', repository: 'javascript:alert(1)'}), '');
});
