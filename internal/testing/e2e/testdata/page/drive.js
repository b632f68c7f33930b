// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Drives the page in a browser as a reader would, and prints what it measured as JSON. TestPage starts it with:
//   PAGE: the page's address; CHROMIUM: the browser; OUT: a folder for screenshots and downloads
//   EXPECT: a JSON file with what TestPage expects of the profiles that it has pushed
//   FORMAT: the page's module that formats values, which has tests of its own

import assert from 'node:assert/strict';
import {mkdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {chromium} from 'playwright-core';

const {PAGE: address, CHROMIUM: executablePath, OUT: out} = process.env;
const expect = JSON.parse(readFileSync(process.env.EXPECT, 'utf8'));
const {formatShare, formatValue} = await import(process.env.FORMAT);
const total = Object.fromEntries(Object.entries(expect.totals).map(([region, value]) => [region, formatValue(value, 'nanoseconds')]));
const searchSum = `${formatShare(expect.search.value, expect.totals.eu)} of ${total.eu}`;
const origin = new URL(address).origin;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const measured = {};
mkdirSync(out, {recursive: true});

// The page loads everything from loopback, so the browser may run as root, and needs no network of its own.
const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync']});

// newVisit returns what a step begins with. open opens a page whose requests, dialogs and errors are watched, and faults is what was
// seen that nobody may see. inOrder is false while the step breaks the connection on purpose.
function newVisit() {
  const visit = {faults: [], contexts: [], inOrder: true, open};
  const {faults, contexts} = visit;
  async function open(hash = '', options = {}) {
    const context = await browser.newContext({viewport: {width: 1360, height: 820}, colorScheme: 'light', acceptDownloads: true, ...options});
    contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000); // the machine may be busy
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${origin}/`) && !url.startsWith('data:') && url !== 'about:blank') faults.push(`a request left the origin: ${url}`);
    });
    page.on('console', (message) => {
      if (visit.inOrder && message.type() === 'error') faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`error: ${error.stack}`));
    page.on('dialog', (dialog) => {
      faults.push(`a dialog opened: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.goto(`${address}#${hash}`);
    return page;
  }
  return visit;
}

const focused = (page) => page.evaluate(() => document.activeElement.getAttribute('aria-label') || document.activeElement.textContent);
const state = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
const text = (page, selector) => page.locator(selector).first().textContent();
const shot = (page, name) => page.screenshot({path: join(out, `${name}.png`)});
const of = (service, more = '') => `service=${service}&profile=process_cpu&seconds=all${more && `&${more}`}`;

// shown waits until the page shows the data that it has loaded.
async function shown(page) {
  await page.waitForSelector('#main[aria-busy="false"] > *');
}

// click clicks on a row of the graph, at a share of its width.
async function click(page, row, share = 0.02, options = {}) {
  const box = await page.locator('main .flamegraph').first().boundingBox();
  await page.mouse.click(box.x + box.width * share, box.y + row * 19 + 9, options);
  await page.waitForTimeout(250);
}

// drag drags over the time line between two shares of its width.
async function drag(page, from, to, shift = false) {
  const box = await page.locator('#timeline canvas').boundingBox();
  if (shift) await page.keyboard.down('Shift');
  await page.mouse.move(box.x + box.width * from, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + 30, {steps: 4});
  await page.mouse.up();
  if (shift) await page.keyboard.up('Shift');
  await page.waitForTimeout(200);
  await shown(page);
}

// The longest come first.
const steps = {
  async 'the page opens on what costs most; a click is at its processor time, and follows what comes in'(visit) {
    const page = await visit.open();
    await page.waitForSelector('.overview tbody tr');
    assert.deepEqual(await state(page), {}, 'nothing is chosen');
    const cores = (await page.locator('.overview tbody .share span').allTextContents()).map((value) => Number(value.replace(/[<a-z ]/g, '')));
    assert.ok(cores.length >= 5, String(cores));
    assert.deepEqual(cores, [...cores].sort((a, b) => b - a), 'the most expensive first');
    await shot(page, 'start');
    await page.setViewportSize({width: 1360, height: 300});
    assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 300, 'the list scrolls below its heads');
    await page.setViewportSize({width: 1360, height: 820});
    await page.locator('.overview tr', {hasText: 'deployed'}).locator('button').click();
    await page.waitForSelector('.overview tr.type >> text=process_cpu · cpu');
    assert.equal((await state(page)).open, 'deployed');
    await shot(page, 'start-types');
    await page.keyboard.press('/');
    await page.keyboard.type('OTHER');
    await page.waitForFunction(() => document.querySelectorAll('.overview tbody tr:not(.type)').length === 1);
    assert.equal((await state(page)).find, 'OTHER');
    await page.locator('#find').fill('');
    await page.locator('.overview thead button', {hasText: 'Service'}).click();
    await page.waitForFunction(() => document.querySelector('.overview tbody a').textContent === 'deep');
    const old = await page.locator('.overview a', {hasText: /^shop$/}).getAttribute('href');
    assert.match(old, /from=\d+&until=\d+/, 'a service without profiles in this time leads to the time that has some');
    await page.locator('.overview a', {hasText: /^deployed$/}).click();
    await shown(page);
    await page.waitForSelector('main .flamegraph');
    assert.deepEqual(await state(page), {service: 'deployed'}, 'a profile is in the address when one is chosen');
    assert.match(await text(page, '#selection'), /process_cpu · cpu/);
    assert.match(await text(page, '#rate'), /^0\.(4[0-9]|50) cores$/); // eight minutes at 0.55, at most seven at 0.3
    assert.equal(await text(page, '.live'), '● live');
    await page.route('**/api/page?*', async (route) => {
      const answer = await (await route.fetch()).json();
      answer.profiles = [{...answer.profiles[0], profile: 'block', type: 'delay/nanoseconds', default: true}];
      await route.fulfill({json: answer});
    });
    visit.inOrder = false; // there are no such profiles
    await page.waitForSelector('#selection >> text=block · delay');
    await page.unroute('**/api/page?*');
    await page.waitForSelector('#selection >> text=process_cpu · cpu');
    visit.inOrder = true;
    await page.waitForResponse((response) => response.url().includes('/api/flamegraph'));
    const line = page.locator('#timeline canvas');
    const box = await line.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 30);
    await page.mouse.down();
    const held = await line.getAttribute('aria-label');
    for (let i = 0; i < 2; i++) await page.waitForResponse((response) => response.url().includes('/api/timeline'));
    await shown(page);
    assert.equal(await line.getAttribute('aria-label'), held, 'the time line does not move below a pointer that drags');
    await page.mouse.up();
    await page.waitForFunction((before) => document.querySelector('#timeline canvas').getAttribute('aria-label') !== before, held);
    await page.keyboard.press('l');
    await shown(page);
    assert.equal(await text(page, '.live'), '❚❚ paused');
    await page.waitForTimeout(1000); // for what was asked before
    let asked = 0;
    page.on('request', () => asked++);
    await page.waitForTimeout(6000);
    assert.equal(asked, 0, 'a paused page asks for nothing');
    await page.context().close();
  },

  async 'no violation of accessibility in any state, width or scheme'({open}) {
    const own = of('deployed'); // of few functions: the checks take long for each element
    const stalls = 'service=stalls&profile=off_cpu&type=off_cpu/nanoseconds&seconds=all';
    const states = [
      ['start', 'open=deployed'], ['flame graph', own], ['table', `${own}&view=table`], ['both', `${own}&view=both&q=main`], ['sandwich', `${own}&view=sandwich`],
      ['sandwich of a function', `${own}&view=sandwich&fn=main.discounted`], ['groups', `${own}&group_by=service.version`],
      ['two versions', 'service=deployed&view=diff&attr.service.version=1.1&base.attr.service.version=1.0'], ['heat map', `${stalls}&view=heat`], ['threads', `${stalls}&view=threads`],
      ['details', `${own}&fn=main.render`], ['unknown service', 'service=nobody'],
      ['picker', own, 'f'], ['services', own, 's'], ['deep', 'service=deep'], ['downloads', own, 'd'], ['links', own, 'u'], ['help', own, '?'],
    ];
    const rules = {dark: {runOnly: ['color-contrast', 'link-in-text-block']}}; // the scheme changes only colors, and all rules take three times as long
    const found = [];
    for (const [name, hash, key] of states) {
      const page = await open(hash);
      await shown(page);
      if (key) await page.keyboard.press(key);
      await page.waitForTimeout(300);
      await page.evaluate(axe);
      for (const width of [1360, 390]) {
        for (const colorScheme of ['light', 'dark']) {
          await page.setViewportSize({width, height: 820});
          await page.emulateMedia({colorScheme});
          await page.waitForTimeout(150);
          const {violations} = await page.evaluate((options) => globalThis.axe.run(document, options), {resultTypes: ['violations'], ...rules[colorScheme]});
          found.push(...violations.map(({impact, id, nodes}) => `${name}, ${width}, ${colorScheme}: ${impact} ${id}: ${nodes.map(({html}) => html.slice(0, 120)).join(' ')}`));
        }
      }
      await page.context().close();
    }
    assert.deepEqual(found, []);
    measured.accessibility = states.length;
  },

  async 'empty and broken states say what to do next'(visit) {
    const empty = await visit.open('service=nobody&profile=process_cpu&type=cpu/nanoseconds');
    await empty.waitForSelector('.message h2');
    assert.match(await text(empty, '.message h2'), /nobody/);
    await empty.context().close();
    const idle = await visit.open('service=idle');
    await idle.waitForSelector('.message >> text=No samples here');
    assert.ok(!(await text(idle, '.message')).includes('There are samples'), 'an idle process has a profile without samples');
    await idle.context().close();
    const early = await visit.open(`${of(expect.service).replace('seconds=all', '')}&from=1000000000000&until=1000000060000`);
    await early.waitForSelector('.message h2');
    assert.match(await text(early, '.message h2'), /No samples here/);
    await early.locator('.message button', {hasText: 'whole window'}).click();
    await shown(early);
    await early.waitForSelector('main .flamegraph');
    await early.context().close();

    const page = await visit.open(of(expect.service));
    await shown(page);
    for (const key of ['6', '7']) {
      await page.keyboard.press(key);
      await page.waitForSelector('.message >> text=no times of single events');
      await page.locator('.message button', {hasText: 'flame graph'}).click();
      await page.waitForSelector('main .flamegraph');
    }
    visit.inOrder = false;
    await page.route('**/api/**', (route) => route.abort());
    await page.waitForSelector('#notices .error');
    await shot(page, 'broken');
    await page.unroute('**/api/**');
    await page.waitForSelector('#notices .error', {state: 'detached'});
    await page.route('**/api/**', () => {}); // a collector that hangs
    await page.locator('#progress button', {hasText: 'cancel'}).click();
    await page.waitForSelector('#notices >> text=was cancelled');
    await page.unroute('**/api/**');
    await page.locator('#notices button', {hasText: 'load again'}).click();
    await page.waitForSelector('#notices .error', {state: 'detached'});
    await page.route('**/api/**', (route) => route.abort());
    await page.reload();
    await page.waitForSelector('.message >> text=does not answer');
    assert.match(await page.locator('.message input').inputValue(), /^curl -i http/);
    await page.unroute('**/api/**');
    await page.waitForSelector('main .flamegraph');
    await page.route('**/api/flamegraph?*', (route) => route.fulfill({status: 500, json: {error: 'out of order', hint: ''}}));
    await page.evaluate(() => { location.hash += '&attr.region=us'; });
    await page.waitForSelector('.message >> text=out of order');
    assert.equal(await page.locator('main .flamegraph').count(), 0, 'another selection\'s graph is not shown');
    await page.unroute('**/api/flamegraph?*');
    await page.waitForSelector('main .flamegraph');
    await page.route('**/api/flamegraph?*', (route) => route.fulfill({status: 401, body: 'log in'}));
    await page.goto(`${address}#service=deployed&from=${Date.now() - 3600e3}&until=${Date.now()}`);
    await page.waitForSelector('.message >> text=is not JSON');
    await page.unroute('**/api/flamegraph?*');
    await page.waitForSelector('main .flamegraph'); // a page of a fixed time asks again, too
    visit.inOrder = true;
    await page.context().close();
  },

  async 'what happens within seconds is shown by the millisecond, and by goroutine'({open}) {
    const page = await open('service=stalls&profile=off_cpu&type=off_cpu/nanoseconds&view=heat&seconds=all');
    await page.waitForSelector('.heatmap canvas');
    const asked = await page.evaluate(() => performance.getEntriesByType('resource').map(({name}) => name).find((name) => name.includes('/api/heatmap?')));
    assert.equal(new URL(asked).searchParams.get('columns'), '1200', 'as many columns as there is room for');
    await shown(page);
    const whole = await text(page, '#sum');
    const box = await page.locator('.heatmap canvas').boundingBox();
    await page.mouse.move(box.x + 44 + 24 * 1.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 44 + 24 * 1.5, box.y + 120, {steps: 4});
    await page.mouse.up();
    await page.waitForFunction((before) => document.querySelector('#sum').textContent !== before, whole);
    const part = await state(page);
    assert.ok(part['part.until'] - part['part.from'] > 100 && part['part.until'] - part['part.from'] <= 1000, JSON.stringify(part));
    await page.waitForSelector('#notices >> text=with its whole duration');
    assert.match(await text(page, '.heatkey'), /^[\d.]+ [µm]?s[\d.]+ [µm]?s in 20 ms$/, 'a legend');
    await shot(page, 'heatmap');
    await page.reload();
    await page.waitForSelector('.heatmap canvas');
    assert.equal((await state(page))['part.from'], part['part.from'], 'the part is in the link');
    await page.locator('#main').focus();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.hash.includes('part.'));

    await page.locator('.heatmap canvas').focus();
    for (const key of ['ArrowDown', 'Shift+ArrowDown', 'Shift+ArrowDown', 'Enter']) await page.keyboard.press(key);
    const byKeys = await state(page);
    assert.ok(Math.abs(byKeys['part.until'] - byKeys['part.from'] - 60) < 1, JSON.stringify(byKeys)); // three rows of 20 ms
    await page.waitForFunction(() => document.querySelector('.heatmap .readout').textContent.endsWith('60 ms'));
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.hash.includes('part.'));

    await page.click('[data-view=threads]');
    await page.waitForSelector('.threads canvas');
    assert.equal(await page.locator('.threads .legend').getAttribute('tabindex'), '0', 'it scrolls if there are many states');
    await page.waitForFunction(() => /^\d+ threads/.test(document.querySelector('.threads canvas').getAttribute('aria-label') ?? ''));
    const requests = []; // from now on, since the heat map's last requests may still be under way
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    const lanes = await page.locator('.threads canvas').boundingBox();
    await page.mouse.move(lanes.x + lanes.width * 0.6, lanes.y + 8);
    await page.mouse.down();
    await page.mouse.move(lanes.x + lanes.width * 0.7, lanes.y + 8, {steps: 4});
    await page.mouse.up();
    await page.waitForFunction(() => location.hash.includes('part.'));
    await page.waitForTimeout(500);
    for (let lane = 0; lane < 20 && !(await page.locator('.stackpanel').isVisible()); lane++) {
      await page.mouse.click(lanes.x + lanes.width * 0.5, lanes.y + 18 + lane * 18 + 9);
    }
    assert.ok(await page.locator('.stackpanel li').count() > 0, 'a click on an event shows its stack');
    await shot(page, 'threads');
    await page.locator('.threads canvas').focus();
    await page.keyboard.press('Escape');
    assert.ok(!await page.locator('.stackpanel').isVisible(), 'Escape closes the stack');
    await page.keyboard.press('ArrowDown');
    assert.ok(await page.locator('.stackpanel li').count() > 0, 'arrow keys choose an event and show its stack');
    const first = await text(page, '.threads .readout');
    assert.equal(await text(page, '.stackpanel b'), first);
    await page.keyboard.press('ArrowDown');
    assert.notEqual((await text(page, '.threads .readout')).split(' · ')[0], first.split(' · ')[0], 'the next thread');
    await page.keyboard.press('Tab');
    assert.equal(await focused(page), 'Close the stack');
    await page.keyboard.press('Enter');
    assert.match(await focused(page), /^\d+ threads/, 'the lanes have the focus again');
    assert.ok(requests.includes('/api/events') && !requests.includes('/api/flamegraph'), `no flame graph is shown: ${requests}`);
    await page.click('text=zoom out');
    await page.waitForTimeout(300);
    await page.click('[data-view=flame]');
    await shown(page);
    await page.context().close();
  },

  async 'two versions: the function to blame is two clicks from a fresh page'({open}) {
    const page = await open();
    await page.route('**/api/attributes?*', async (route) => {
      await page.waitForTimeout(1000); // the clicks are faster than the collector
      await route.continue().catch(() => {}); // the page may have aborted it
    });
    const begun = performance.now();
    await page.locator('.overview a', {hasText: /^deployed$/}).click();
    await page.locator('[data-view=diff]').click();
    await page.waitForSelector('.table.compared .row');
    assert.equal(await page.locator('.table .row .name').first().textContent(), 'main.discounted');
    assert.match(await page.locator('.table .row .change span').first().textContent(), /^\+30\.\d pp$/); // 0.35 of 0.55 after 0.1 of 0.3
    measured.culprit = Math.round(performance.now() - begun);
    await page.unroute('**/api/attributes?*');
    const versions = async () => {
      const {'attr.service.version': shownVersion, 'base.attr.service.version': baseVersion} = await state(page);
      return [baseVersion, shownVersion];
    };
    assert.deepEqual(await versions(), ['1.0', '1.1']);
    await page.waitForSelector('.legend .chip >> text=1.0');
    await shot(page, 'diff-versions');
    await page.waitForSelector('#notices >> text=each by its share');
    await page.selectOption('select[aria-label="How to compare"]', 'rate');
    await page.waitForSelector('#notices p:has-text("Two versions"):not(:has-text("share"))');
    await page.goBack();
    await page.goBack();
    assert.deepEqual(await state(page), {service: 'deployed'}, 'one step back leaves the comparison');
    await page.goForward();
    await shown(page);
    await page.locator('[aria-label="base: service.version"] button', {hasText: '1.1'}).click();
    await shown(page);
    assert.deepEqual(await versions(), ['1.1', '1.0'], 'one click, and no dead end');
    await page.locator('.legend button', {hasText: '1.1'}).click();
    await shown(page);
    assert.deepEqual(await versions(), ['1.0', '1.1']);

    await page.locator('#notices button', {hasText: 'compare two times'}).click();
    await page.waitForSelector('#notices >> text=paused');
    assert.deepEqual(await versions(), [undefined, undefined]);
    await page.locator('[aria-label="shown: service.version"] button', {hasText: '1.1'}).click();
    await shown(page);
    assert.deepEqual(await versions(), ['1.0', '1.1'], 'also after two halves of the time');
    await page.waitForSelector('.table.compared .change.more');

    await page.goto(`${address}#service=deployed&attr.service.version=1.1`);
    await shown(page);
    await page.keyboard.press('5');
    await page.waitForSelector('.table.compared .change.more');
    assert.deepEqual(await versions(), ['1.0', '1.1'], 'what is filtered is compared with another');
    await page.goto(`${address}#service=deployed&group_by=service.version`);
    await page.waitForSelector('.legend .chip >> text=1.0');
    await page.keyboard.press('5');
    await page.waitForSelector('.table.compared .change.more');
    assert.deepEqual(await versions(), ['1.0', '1.1'], 'so are the groups');

    await page.goto(`${address}#service=deployed`);
    await page.waitForSelector('#findings >> text=1 finding');
    await page.locator('#findings summary').click();
    await shot(page, 'findings');
    await page.locator('#findings a', {hasText: /^main.discounted takes 6\d\.\d % of the processor time in version 1.1, and took 33.3 % in 1.0.$/}).click();
    await page.waitForSelector('.table.compared .change.more');
    assert.deepEqual(await versions(), ['1.0', '1.1'], 'a finding leads to what shows it');
    await page.goto(`${address}#service=deployed`);
    await page.waitForSelector('.mark >> text=1.1');
    await page.locator('.mark', {hasText: '1.1'}).click();
    await page.waitForSelector('.table.compared .change.more');
    const times = await state(page);
    assert.equal(times.from, times['base.until']);
    assert.equal(times.until - times.from, times['base.until'] - times['base.from']);
    assert.equal(await text(page, '#base .sum'), '0.30 cores → 0.55 cores');
    assert.equal(await page.locator('.table .row .change span').first().textContent(), '+0.25', 'by rate');
    const render = page.locator('.table .row', {hasText: 'main.render'});
    assert.equal(await render.locator('.change span').first().textContent(), '0', 'what has not changed is not green');
    await page.locator('.table .row', {hasText: 'main.discounted'}).click();
    assert.match(await text(page, '#details'), /in allself 0\.10 cores → 0\.35 cores, total.*exactself [\d,]+ → [\d,]+, total/, 'both sides of a function');
    const heads = () => page.locator('.table .head').textContent();
    assert.match(await heads(), /^FunctionBase cores/);
    await page.selectOption('select[aria-label="How to compare"]', 'share');
    assert.match(await heads(), /^FunctionBaseShown/, 'the heads have the unit of the cells');
    await shot(page, 'diff-since-version');
    await page.context().close();
  },

  async 'services, profile types and attributes are picked by typing'({open}) {
    const page = await open();
    await shown(page);
    await page.keyboard.press('s');
    await page.keyboard.type(expect.service);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash.includes('service=')); // the collector searches
    await shown(page);
    assert.equal((await state(page)).service, expect.service);
    await page.keyboard.press('p');
    await page.keyboard.type('cpu nanoseconds');
    await page.keyboard.press('Enter');
    await page.locator('select[aria-label="Time range"]').selectOption('all');
    await shown(page);
    assert.equal((await state(page)).type, 'cpu/nanoseconds');
    assert.equal(await text(page, '#sum'), total.all);

    await page.keyboard.press('f');
    await page.keyboard.type('region us');
    await page.keyboard.press('Enter');
    await shown(page);
    assert.equal((await state(page))['attr.region'], 'us');
    assert.equal(await text(page, '#sum'), total.us);
    await page.locator('#selection .chip button[aria-label^=Remove]').click();
    await page.keyboard.press('g');
    await page.keyboard.type('region');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.legend .chip >> text=eu');
    await shown(page);
    await shot(page, 'groups');
    await page.locator('.legend .chip', {hasText: 'eu'}).click();
    await page.waitForFunction((sum) => document.querySelector('#sum').textContent === sum, total.eu);
    await shown(page);
    assert.equal((await state(page))['attr.region'], 'eu');
    await click(page, 1);
    assert.equal(await text(page, '#details b'), 'region=eu');
    assert.doesNotMatch(await text(page, '#details'), /exact|sandwich/, 'a group is no function');
    await page.context().close();
  },

  async 'zoom, breadcrumbs, search, focus, hide'({open}) {
    const page = await open(of(expect.service, 'attr.region=eu'));
    await shown(page);
    assert.ok(await page.evaluate(() => {
      const canvas = document.querySelector('main canvas');
      const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, Math.min(300, canvas.height));
      return new Set(new Uint32Array(data.buffer)).size;
    }) > 20, 'something is painted');
    await click(page, 3);
    assert.match((await state(page)).zoom, /^[0-9a-f]{16}$/);
    assert.ok(await page.locator('.crumbs button').count() >= 3);
    assert.ok(await page.locator('#details').isVisible());
    await page.locator('.crumbs button').first().click();
    assert.equal((await state(page)).zoom, undefined);
    await page.goBack();
    assert.match((await state(page)).zoom, /^[0-9a-f]{16}$/);
    await page.keyboard.press('0');

    await page.keyboard.press('/');
    await page.keyboard.type(expect.search.query);
    assert.equal(await text(page, '#sum'), searchSum);
    await shot(page, 'search');
    await page.keyboard.press('Escape');
    assert.equal(await text(page, '#sum'), total.eu, 'Escape clears the search');

    await page.locator('#details button', {hasText: 'focus'}).click();
    await page.waitForSelector('#path .chip >> text=focus');
    await page.locator('#details button', {hasText: 'hide'}).click();
    assert.equal(await page.locator('#path .chip').count(), 2);
    for (let i = 0; i < 2; i++) await page.locator('#path .chip button').first().click();
    assert.equal(await text(page, '#sum'), total.eu);
    const box = await page.locator('main .flamegraph').boundingBox();
    await page.mouse.move(box.x + 100, box.y + 30);
    assert.match(await text(page, '.tooltip'), /self.*%.*total.*%/s);
    await click(page, 2, 0.05, {button: 'right'});
    assert.equal(await page.locator('[role="menu"] button').count(), 7);
    await page.keyboard.press('Escape');
    await page.locator('main canvas[role]').focus();
    await page.keyboard.press('ArrowDown');
    const before = await text(page, '#details b');
    await page.keyboard.press('ArrowDown');
    assert.notEqual(await text(page, '#details b'), before, 'arrow keys select frames');
    await page.keyboard.press('i');
    await page.keyboard.press('c');
    assert.deepEqual([(await state(page)).direction, (await state(page)).color], ['flame', 'module']);
    await shot(page, 'flame-upwards');
    await page.context().close();
  },

  async 'by keyboard alone'({open}) {
    const page = await open(of(expect.service, 'attr.region=eu&view=both'));
    await shown(page);
    for (const key of ['d', 'u', 's', 'f', '?']) {
      await page.locator('main canvas[role]').focus();
      await page.keyboard.press(key);
      assert.ok(await page.evaluate(() => Boolean(document.activeElement.closest('dialog'))), `${key}: what opens has the focus`);
      await page.keyboard.press('Escape');
      await page.waitForFunction(() => !document.querySelector('dialog'));
      assert.match(await focused(page), /^Flame graph/, `${key}: the focus comes back`);
    }
    await page.keyboard.press('/');
    await page.keyboard.type(expect.search.query);
    await page.keyboard.press('Escape');
    assert.match(await focused(page), /^Flame graph/, 'the search gives the focus back');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Shift+F10');
    assert.equal(await focused(page), 'zoomEnter');
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(page), 'focusShift F');
    await page.keyboard.press('Escape');

    const total = page.locator('[role="columnheader"] button', {hasText: 'Total'});
    await total.focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('[role="columnheader"][aria-sort="descending"]').textContent(), 'Total ↓');
    await page.keyboard.press('Space');
    assert.equal(await page.locator('[role="columnheader"][aria-sort="ascending"]').textContent(), 'Total ↑');
    assert.equal(await focused(page), 'Total ↑', 'sorting leaves the focus where it was');

    await page.locator('main canvas[role]').focus();
    await page.keyboard.press('Enter');
    await page.locator('.crumbs button').first().focus();
    await page.keyboard.press('Enter');
    assert.equal((await state(page)).zoom, undefined);
    assert.equal(await focused(page), 'total', 'so does a step of the path');

    assert.equal(await page.locator('#timeline canvas').getAttribute('role'), 'application');
    await page.locator('#timeline canvas').focus();
    const seen = await page.locator('#timeline canvas').getAttribute('aria-label');
    await page.keyboard.press('Shift+ArrowLeft');
    const {until} = await state(page);
    await page.keyboard.press('Shift+ArrowLeft');
    assert.ok(Number((await state(page)).until) < Number(until), 'arrow keys choose a time, however fast they follow each other');
    assert.notEqual(await page.locator('#timeline canvas').getAttribute('aria-label'), seen);
    const {from: start, until: end} = await state(page);
    await page.keyboard.press('b');
    const compared = await state(page);
    assert.deepEqual([compared.view, compared['base.from'], compared['base.until']], ['diff', start, end], 'a key chooses what to compare with');
    await page.context().close();
  },

  async 'the table is the graph as text, and both are linked'({open}) {
    const page = await open(of(expect.service, 'attr.region=eu&view=both'));
    await shown(page);
    const rows = page.locator('[role="grid"] .row');
    assert.equal(Number(await page.locator('[role="grid"]').getAttribute('aria-rowcount')), expect.functions + 1);
    assert.equal(await rows.first().locator('.number span').first().textContent(), formatValue(expect.topSelf, 'nanoseconds'));
    assert.ok(await rows.count() < 80, 'only rows in view are in the document');
    await page.keyboard.press('2');
    await page.waitForSelector('main.table');
    assert.ok(await rows.count() < 80, 'also of the table alone');
    await page.keyboard.press('3');
    await page.locator('[role="columnheader"] button', {hasText: 'Total'}).click();
    assert.equal(await page.locator('[role="columnheader"][aria-sort="descending"]').textContent(), 'Total ↓');
    await rows.nth(2).click();
    assert.equal(await rows.nth(2).getAttribute('aria-selected'), 'true');
    assert.equal(await text(page, '#details b'), await rows.nth(2).locator('.name').textContent());
    await page.locator('[role="grid"]').focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await rows.nth(3).getAttribute('aria-selected'), 'true', 'arrow keys select rows');
    assert.equal(await page.locator('[role="grid"]').getAttribute('aria-activedescendant'), await rows.nth(3).getAttribute('id'));
    await click(page, 6, 0.03);
    assert.equal(await page.locator('[role="row"][aria-selected="true"] .name').textContent(), await text(page, '#details b'));
    await shot(page, 'both');
    await page.keyboard.press('t');
    await shot(page, 'both-dark');
    await page.keyboard.press('4');
    await page.waitForSelector('.stack .middle');
    assert.match(await text(page, '.stack .middle'), /self .* total /);
    await shot(page, 'sandwich');
    const callers = await page.locator('.stack .flamegraph').first().boundingBox();
    await page.mouse.move(callers.x + 20, callers.y + callers.height - 28);
    assert.match(await text(page, '.tooltip'), /^(?!.*self).*total.*%/s, 'callers have no values of their own');
    const centre = await text(page, '.middle b');
    const callees = await page.locator('.stack .flamegraph').last().boundingBox();
    await page.mouse.click(callees.x + 20, callees.y + 28);
    assert.notEqual(await text(page, '.middle b'), centre, 'a click goes on to the function clicked');
    await page.context().close();
  },

  async 'comparisons: attribute values, services, times'({open}) {
    const page = await open(of(expect.service, 'attr.region=eu&view=diff&base.attr.region=us'));
    await shown(page);
    const both = [expect.totals.us, expect.totals.eu].map((value) => formatValue(value, 'nanoseconds', Math.max(expect.totals.us, expect.totals.eu)));
    assert.equal(await text(page, '#base .sum'), both.join(' → '));
    await page.waitForSelector('.table.compared .change.more');
    await page.waitForSelector('.table.compared .change.less');
    assert.match(await text(page, '.table .change.more span'), /^\+/);
    assert.match(await text(page, '.table .change.less span'), /^−/);
    await shot(page, 'diff');
    await page.locator('#base button', {hasText: 'swap'}).click();
    await shown(page);
    assert.equal(await text(page, '#base .sum'), [...both].reverse().join(' → '));
    await page.locator('#base .picker').first().click();
    await page.keyboard.type(expect.other);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash.includes('base.service='));
    await shown(page);
    assert.equal((await state(page))['base.service'], expect.other);
    await page.route('**/api/diff?*', async (route) => {
      await page.waitForTimeout(1500);
      await route.continue().catch(() => {}); // the page may have aborted it
    });
    await Promise.all([page.waitForRequest('**/api/diff?*'), page.locator('#base .chip button').click()]); // another base
    await page.keyboard.press('1');
    await page.waitForTimeout(2500);
    await page.keyboard.press('i');
    assert.ok(!(await text(page, '#path .key')).includes('less'), 'a late comparison does not replace what is shown');
    await page.context().close();

    const halves = await open(of(expect.service));
    await shown(halves);
    await halves.keyboard.press('5');
    await halves.waitForSelector('#notices >> text=the later half of the time, compared with the earlier half');
    assert.equal(await text(halves, '.live'), '❚❚ paused');
    await shown(halves);
    await shot(halves, 'diff-halves');
    await halves.locator('#notices button', {hasText: 'back to the whole time'}).click();
    await shown(halves);
    assert.equal(await text(halves, '.live'), '● live');
    const {seconds, view, from, ...others} = await state(halves);
    assert.deepEqual([seconds, view, from, others['base.from']], ['all', undefined, undefined, undefined]);
    await halves.selectOption('select[aria-label="Time range"]', '3600');
    await shown(halves);
    await halves.locator('button', {hasText: 'Diff'}).click();
    await halves.locator('#notices button', {hasText: 'compare with a day earlier'}).click();
    await shown(halves);
    const days = await state(halves);
    assert.equal(days.until - days.from, 3600e3, 'the whole hour');
    assert.deepEqual(['from', 'until'].map((end) => days[end] - days[`base.${end}`]), [86400e3, 86400e3]);
    await halves.context().close();

    const times = await open(of(expect.service), {timezoneId: 'Asia/Kolkata'});
    await shown(times);
    assert.equal(await text(times, '.zone'), 'UTC+05:30');
    assert.match(await times.locator('.zone').getAttribute('title'), /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    const line = await times.locator('#timeline canvas').boundingBox();
    await times.mouse.move(line.x + line.width / 2, line.y + 30);
    assert.match(await text(times, '#timeline .readout'), /^[\d: -]+ \(\d\d:\d\d:\d\d UTC\)/);
    await drag(times, 0.5, 0.999);
    const chosen = await state(times);
    assert.ok(Number(chosen.until) > Number(chosen.from));
    await drag(times, 0.02, 0.49, true);
    const compared = await state(times);
    assert.equal(compared.view, 'diff');
    assert.ok(Number(compared['base.until']) <= Number(compared.from));
    await times.waitForSelector('#notices >> text=it compares two fixed times');
    await shot(times, 'diff-times');
    await times.context().close();
  },

  async 'a shared URL shows the same again'({open}) {
    const page = await open(of(expect.service, 'attr.region=eu&view=both&sort=-total&theme=dark'));
    await shown(page);
    await click(page, 4);
    await page.keyboard.press('/');
    await page.keyboard.type(expect.search.query);
    await page.keyboard.press('Tab');
    await page.keyboard.press('u');
    const link = await page.locator('.copyfield input').first().inputValue();
    const again = await open(link.slice(link.indexOf('#') + 1));
    await shown(again);
    for (const selector of ['#sum', '#details b', '.crumbs', '[role="grid"] .row .name']) assert.equal(await text(again, selector), await text(page, selector), selector);
    assert.equal(await again.evaluate(() => document.documentElement.dataset.theme), 'dark');
    const [one, other] = [await state(page), await state(again)];
    const kept = ({from, until, seconds, ...others}) => others;
    assert.deepEqual(kept(other), kept(one));
    assert.deepEqual(await again.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]), ['', 0, 0]);
    await page.context().close();
    await again.context().close();
  },

  async 'downloads, and the command for go tool pprof'({open}) {
    const page = await open(of(expect.service, 'attr.region=eu'));
    await shown(page);
    await page.keyboard.press('d');
    for (const [label, name] of [['pprof', 'download.pb.gz'], ['collapsed', 'download.collapsed'], ['speedscope', 'download.speedscope.json']]) {
      const [download] = await Promise.all([page.waitForEvent('download'), page.locator('.sheet a', {hasText: label}).click()]);
      await download.saveAs(join(out, name));
    }
    measured.command = await page.locator('.copyfield input').first().inputValue();
    assert.match(measured.command, /^go tool pprof .*http/);
    await shot(page, 'downloads');
    await page.context().close();
  },

  async 'hostile names are text'({open}) {
    const page = await open(of('hostile', 'view=both&sort=name'));
    await shown(page);
    const names = await page.locator('[role="grid"] .row .name').allTextContents();
    assert.ok(names.some((name) => name.startsWith('<img src=x')), names.join('\n'));
    assert.ok(names.some((name) => name.includes('\\x00') && name.includes('\\u202e')), names.join('\n'));
    assert.equal(await page.locator('main img, main script, main h1').count(), 0);
    assert.equal(await page.evaluate(() => globalThis.owned), undefined);
    await page.locator('[role="grid"] .row', {hasText: 'NNNNNNNN'}).first().click();
    await page.locator('#details summary').click();
    const longest = await page.evaluate(async (query) => Math.max(...(await (await fetch(`api/flamegraph?${query}`)).json()).frames.name.map((name) => name.length)), of('hostile').replace('&seconds=all', ''));
    assert.ok(longest > 1000);
    assert.equal((await text(page, '#details pre')).length, longest, 'the details have all of a name that the answer has');
    await page.locator('#details button', {hasText: 'focus'}).click();
    await page.waitForSelector('#path .chip >> text=focus');
    assert.ok(page.url().length < 5000, 'a long name does not make a long URL');
    await page.locator('#search').fill('<img');
    assert.match(await text(page, '.table .note'), /^(1 function|0 functions) found\.$/);
    await shot(page, 'hostile');
    await page.context().close();

    const unit = await open(of('hostile-unit', 'type=__proto__/constructor&view=both'));
    await shown(unit);
    await unit.waitForSelector('main .flamegraph');
    assert.match(await text(unit, '#sum'), /^55 G constructor$/);
    await unit.context().close();
  },

  async 'keys, help, a phone, the dark'({open}) {
    const page = await open(of(expect.service), {viewport: {width: 400, height: 800}, colorScheme: 'dark'});
    await shown(page);
    for (const view of ['flame', 'table', 'both', 'sandwich', 'diff']) {
      await page.keyboard.press(String(['flame', 'table', 'both', 'sandwich', 'diff'].indexOf(view) + 1));
      await shown(page);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 400, `${view} is not wider than the screen`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollHeight) <= 2000, `${view} is not as high as all of its rows`);
      await shot(page, `phone-${view}`);
    }
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    const zoomed = await open(of(expect.service, 'view=both'), {viewport: {width: 720, height: 450}}); // 200 %
    await shown(zoomed);
    for (const part of ['main .flamegraph', 'main .scroller']) assert.ok((await zoomed.locator(part).boundingBox()).height > 150, part);
    await zoomed.goto(`${address}#${of(expect.service, 'view=sandwich&fn=main.main')}`);
    await zoomed.waitForSelector('.stack .middle');
    assert.ok(await zoomed.evaluate(() => document.documentElement.scrollHeight) <= 1000, 'callees scroll in their graph');
    await zoomed.context().close();
    await page.keyboard.press('?');
    assert.ok(await page.locator('dialog').isVisible());
    await shot(page, 'phone-help');
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('dialog').count(), 0);
    for (const view of ['heat', 'threads']) {
      const small = await open(`service=stalls&profile=off_cpu&type=off_cpu/nanoseconds&seconds=all&view=${view}`, {viewport: {width: 400, height: 800}, colorScheme: 'dark'});
      await small.waitForSelector('main canvas[aria-label]');
      assert.ok(await small.evaluate(() => document.documentElement.scrollWidth) <= 400, `${view} is not wider than the screen`);
      await small.locator('main canvas[role]').first().focus();
      await small.keyboard.press('ArrowDown');
      await shot(small, `phone-${view}`);
      await small.context().close();
    }
    const unnamed = await page.evaluate(() => [...document.querySelectorAll('button, input, select, canvas')]
      .filter((e) => !e.closest('[aria-hidden=true]') && !(e.textContent.trim() || e.getAttribute('aria-label') || e.title)).map((e) => e.outerHTML));
    assert.deepEqual(unnamed, [], 'all controls have names');
    await page.context().close();
  },

  async 'matches, values, pictures, deep stacks, and a tooltip that stays'({open}) {
    const page = await open(`service=deployed&profile=process_cpu&type=cpu/nanoseconds&q=main`);
    await shown(page);
    assert.equal(await text(page, '#found'), '3');
    const titles = [];
    await page.locator('#search').focus();
    for (let i = 0; i < 4; i++) {
      await page.keyboard.press('Enter');
      titles.push(await text(page, '#details b'));
    }
    assert.equal(titles[0], 'main.main', 'the largest first');
    assert.equal(new Set(titles).size, 3);
    assert.equal(titles[3], titles[0], 'the first follows the last');
    assert.equal(await text(page, '#found'), '1 of 3');
    await page.keyboard.press('Shift+Enter');
    assert.equal(await text(page, '#found'), '3 of 3');
    await page.keyboard.press('Escape');

    const box = await page.locator('main .flamegraph').boundingBox();
    await page.mouse.move(box.x + 60, box.y + 19 + 9);
    assert.match(await text(page, '.tooltip'), /^main\.main/);
    for (let i = 0; i < 2; i++) await page.waitForResponse((response) => response.url().includes('/api/flamegraph'));
    await page.waitForTimeout(300);
    assert.ok(await page.locator('.tooltip').isVisible(), 'it stays while the pointer rests');

    await page.locator('main canvas[role]').first().focus();
    await page.keyboard.press('d');
    for (const [label, name] of [['SVG', 'picture.svg'], ['PNG', 'picture.png']]) {
      const [download] = await Promise.all([page.waitForEvent('download'), page.locator('.sheet button', {hasText: label}).click()]);
      await download.saveAs(join(out, name));
    }
    const svg = readFileSync(join(out, 'picture.svg'), 'utf8');
    assert.match(svg, />main\.discounted<\/text>/);
    assert.match(svg, />[\d.]+ min · 100 %<\/text>/, 'values are beside the names');
    assert.equal(readFileSync(join(out, 'picture.png')).subarray(1, 4).toString(), 'PNG');
    await page.keyboard.press('Escape');

    await page.goto(`${address}#service=deployed&fn=main.discounted`);
    await page.locator('#details button', {hasText: 'lines'}).click();
    await page.waitForSelector('.lines td >> text=f.go:7');
    await shot(page, 'lines');
    await page.keyboard.press('Escape');
    await page.goto(`${address}#service=deployed&fn=main.main&focus=main.render`);
    await page.waitForSelector('#path .chip >> text=focus');
    await page.locator('#details button', {hasText: 'lines'}).click();
    assert.match(await text(page, '.lines td:last-child'), / (99\.\d|100) %$/, 'lines are of all samples, and so are their shares');
    await page.keyboard.press('Escape');

    const fixed = `${address}#service=deployed&from=${Date.now() - 900e3}&until=${Date.now()}`;
    await Promise.all([page.waitForResponse((response) => /flamegraph\?.*from=/.test(response.url())), page.goto(fixed)]);
    await shown(page);
    await page.route('**/api/page?*', () => {}); // it is not answered
    await page.goto(`${fixed}&fn=main.discounted`);
    await page.waitForSelector('#details b >> text=main.discounted');
    assert.equal(await page.locator('#main').getAttribute('aria-busy'), 'false', 'another function of the same answer loads nothing');
    await page.goto(`${address}#service=stalls&fn=main.discounted`);
    await page.locator('#details button', {hasText: 'lines'}).click();
    await page.waitForSelector('.lines td >> text=f.go:7'); // of the service that is still shown
    await page.unroute('**/api/page?*');
    await page.keyboard.press('Escape');

    await page.goto(`${address}#service=deep`);
    await page.waitForSelector('#notices >> text=3,002 frames deep');
    const scroller = page.locator('main .flamegraph');
    const map = await page.locator('.minimap').boundingBox();
    await page.mouse.click(map.x + 20, map.y + map.height - 2);
    await page.waitForFunction(() => document.querySelector('main .flamegraph').scrollTop > 50_000);
    await shot(page, 'deep');
    await page.locator('#notices button', {hasText: 'collapse recursion'}).click();
    await page.waitForSelector('#path .chip >> text=recursion collapsed');
    assert.ok(await scroller.evaluate((element) => element.scrollHeight - element.clientHeight) < 5, 'five rows are left');
    assert.ok(!await page.locator('.minimap').isVisible());
    await page.keyboard.press('r');
    await page.waitForSelector('#notices >> text=3,002 frames deep');
    await page.context().close();
  },
};

// They depend on times, so nothing runs beside them.
const timed = {
  async 'regular expressions, and one that nobody can wait for'({open}) {
    const page = await open(of(expect.service, 'attr.region=eu&q=/MALLOC[g]c/'));
    await page.waitForFunction((sum) => document.querySelector('#sum').textContent === sum, searchSum);
    await page.locator('#search').fill('/(/');
    await page.waitForFunction(() => document.querySelector('#sum').textContent === 'not a regular expression');
    await page.context().close();

    const hostile = await open(of('hostile', 'q=/(N%2B)%2Bb/'));
    await hostile.waitForFunction(() => document.querySelector('#sum').textContent === 'this expression takes too long');
    await hostile.keyboard.press('2');
    await hostile.waitForSelector('[role="grid"] .row'); // the page still does what it is told
    await hostile.locator('#search').fill('NNN');
    assert.match(await text(hostile, '#sum'), /% of/);
    await hostile.context().close();
  },

  async 'large profiles: the first paint and zooming'({open}) {
    for (const service of expect.large) measured[service] = await measure(open, service);
  },
};

// measure returns times in milliseconds, medians of three pages. Processor time of the page's thread: until the page has opened,
// for each zoom including all frames of its animation, and for one paint of the canvas. Time by the clock: from the parsed answer
// to the first paint, and between frames while the page zooms.
async function measure(open, service) {
  const runs = [];
  for (let run = 0; run < 3; run++) {
    const page = await open();
    await shown(page);
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', {timeDomain: 'threadTicks'});
    const busy = async () => 1000 * (await session.send('Performance.getMetrics')).metrics.find(({name}) => name === 'TaskDuration').value;
    await page.goto('about:blank');
    const idle = await busy();
    await page.goto(`${address}#${of(service)}`);
    await shown(page);
    // A busy collector may have refused the first queries: the page then shows that, and asks again.
    const painted = await page.waitForFunction(() => performance.getEntriesByName('page-paint')[0]?.toJSON());
    const firstPaint = (await painted.jsonValue()).duration;
    const opened = (await busy()) - idle;
    await page.keyboard.press('l');
    await shown(page);
    await page.evaluate(() => {
      globalThis.frames_ = [];
      let last = performance.now();
      const frame = (now) => {
        globalThis.frames_.push(now - last);
        last = now;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    const before = await busy();
    for (const row of [2, 4, 6, 8]) await click(page, row, 0.01);
    const zoom = ((await busy()) - before) / 4;
    const between = (await page.evaluate(() => globalThis.frames_)).sort((a, b) => a - b);
    if (run === 0) await shot(page, service);
    const {nodes, paint} = await paintAlone(page, service);
    runs.push({nodes, opened, zoom, paint, firstPaint, zoomFrame: between[between.length >> 1]});
    await page.context().close();
  }
  const median = (key) => Number(runs.map((r) => r[key]).sort((a, b) => a - b)[1].toFixed(1));
  return Object.fromEntries(Object.keys(runs[0]).map((key) => [key, median(key)]));
}

// paintAlone returns the number of nodes in a service's graph, and the cost of one paint of a canvas, the best of nine views.
function paintAlone(page, service) {
  return page.evaluate(async (query) => {
    const base = document.baseURI.replace(/#.*/, '');
    const [{Frames, readTree}, {layout}, {paint}, {themes, colorer}] = await Promise.all(['tree', 'layout', 'paint', 'colors'].map((name) => import(`${base}static/${name}.js`)));
    const answer = await (await fetch(`api/flamegraph?${query}`)).json();
    const tree = readTree(new Frames(answer.frames), answer.nodes);
    const at = layout(tree);
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [1360, 640];
    const context = canvas.getContext('2d', {alpha: false});
    const fill = colorer(tree.frames, 'package', themes.light);
    const times = [];
    for (let i = 0; i < 9; i++) {
      const begun = performance.now();
      paint(context, {at, view: {from: 0, until: at.width * 0.7 ** i}, rows: at.rows, upwards: false, width: 1360, height: 640, top: 0, theme: themes.light,
        fill: (node) => fill(tree.frame[node]), hatched: () => false, label: (node) => tree.label(node), matched: () => null, selected: -1, hovered: -1, zoomed: 0});
      context.getImageData(0, 0, 1, 1); // waits for the canvas
      times.push(performance.now() - begun);
    }
    return {nodes: tree.count, paint: Math.min(...times)};
  }, of(service).replace('&seconds=all', ''));
}

// perform performs a step, and once more if it fails: two browsers on a busy machine can be too slow for what a person would wait for.
// What failed at first is printed, with a picture of it.
let failed = 0;
let failures = 0;
async function perform(name, step, isLast = false) {
  const begun = performance.now();
  const visit = newVisit();
  try {
    await step(visit);
    assert.deepEqual(visit.faults, []);
    console.log(`ok   ${name} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (error) {
    const failure = ++failures;
    failed += isLast;
    console.log(`FAIL ${name}${isLast ? '' : ', which is tried once more'}\n${error.stack}\n${visit.faults.join('\n')}`);
    for (const [i, context] of visit.contexts.entries()) {
      for (const page of context.pages()) await shot(page, `failed-${failure}-${i}`).catch(() => {});
      await context.close();
    }
    if (!isLast) await perform(name, step, true);
  }
}

// performAll performs the steps of a list, so many at a time. Most steps wait most of the time.
async function performAll(list, atOnce) {
  const left = Object.entries(list).filter(([name]) => !process.env.STEP || process.env.STEP.split('|').some((part) => name.includes(part)));
  const worker = async () => {
    while (left.length > 0) await perform(...left.shift());
  };
  await Promise.all(Array.from({length: atOnce}, worker));
}

await performAll(steps, 2);
await performAll(timed, 1);
await browser.close();
console.log(JSON.stringify({measured}));
process.exit(failed ? 1 : 0);
