// Opens the page to play with in headless Chromium, as a file, and uses every panel by mouse, touch and keyboard.
//
//     node explore.mjs PAGE.html FINETTI OUT [PYTHON]
//
// Numbers must move, and be those that the copied command prints, and with a PYTHON that has finetti those of the lines beside it. Any message on the console, error on the page or
// request but the file itself is a failure. Times are printed, never asserted. Pictures go to OUT.
import { createRequire } from 'node:module';
import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { statSync } from 'node:fs';
import assert from 'node:assert/strict';
import path from 'node:path';

const [file, finetti, out, python] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(out, 'package.json'))('playwright-core');
const executablePath = execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
const url = 'file://' + path.resolve(file);
assert.ok(statSync(file).size < 700e3, `the page has ${statSync(file).size} bytes`);

const scalar = (doc, name) => doc.scalars[name].value;
/** For each panel: what is dragged, a slider to move, and three numbers in what the command prints. */
const panels = {
  'which-token': {
    handle: 'token0',
    slider: 'lam',
    moves: 'prediction',
    python: ['risk', 'bayes', 'attention'],
    close: 1e-11,
    read: ([d]) => ({ risk: scalar(d, 'risk'), bayes: scalar(d, 'bayes'), attention: scalar(d, 'attention') }),
  },
  landscape: {
    handle: 'start',
    python: ['minima', 'saddles', 'least', 'risk', 'end'],
    slider: 'lam',
    moves: 'risk',
    close: 1e-9,
    read: ([plane, train]) => ({
      minima: scalar(plane, 'minima'),
      saddles: scalar(plane, 'saddles'),
      least: Math.min(...plane.series.point_risk),
      risk: train.runs[0].final.risk,
      end: train.runs[0].final.kappa,
    }),
  },
  'off-manifold': {
    slider: 'lam',
    moves: 'risk',
    python: ['risk'],
    close: 1e-9,
    read: ([d]) => ({
      risk: d.runs[0].final.risk,
      distance: d.runs[0].final.distance,
      swapped: d.summary.ended.find(e => e.where === 'swapped').runs,
    }),
  },
  context: {
    handle: 'token0',
    slider: 'scale',
    moves: 'mean',
    python: ['mean', 'sd', 'least', 'softmax'],
    close: 1e-10,
    read: ([cme, softmax]) => ({
      mean: cme.answers[0].mean.y,
      sd: cme.answers[0].sd.y,
      least: Math.min(...cme.answers[0].top.map(t => t.weight)),
      softmax: softmax.answers[0].mean.y,
    }),
  },
  'more-tokens': {
    slider: 'p',
    moves: 'softmax_rmse',
    python: ['cme_rmse', 'softmax_rmse'],
    close: 1e-10,
    read: ([cme, softmax]) => ({
      cme_rmse: scalar(cme, 'rmse'),
      cme_predicted: scalar(cme, 'predicted'),
      softmax_rmse: scalar(softmax, 'rmse'),
      softmax_predicted: scalar(softmax, 'predicted'),
    }),
  },
  'how-many-bags': {
    slider: 'alpha',
    moves: 'optimal',
    python: ['optimal', 'known', 'linear', 'q_k', 'erm'],
    close: 1e-8,
    read: ([d]) => ({ optimal: d.points.optimal[0], known: d.points.known[0], linear: d.points.linear[0], q_k: d.points.q_k[0], erm: d.points.erm[0] }),
  },
};

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const troubles = [];
async function open(options, hash = '') {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, colorScheme: 'light', ...options });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  page.on('console', m => troubles.push('console: ' + m.text()));
  page.on('pageerror', e => troubles.push('error: ' + e.message));
  page.on('request', r => {
    if (!r.url().startsWith(url) && !/^(data|blob):/.test(r.url())) troubles.push('request: ' + r.url());
  });
  await page.goto(url + hash);
  await page.locator('html[data-ready]').waitFor();
  return page;
}
/** Nothing is being computed any more, and it is drawn. */
async function settled(page) {
  await page.evaluate(() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))));
  await page.waitForFunction(() => !+(document.documentElement.dataset.busy || 0), null, { timeout: 120000 });
  await page.evaluate(() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))));
}
async function go(page, id) {
  await page.evaluate(i => document.getElementById(i).scrollIntoView(), id);
  await settled(page);
}
const numbers = (page, id) => page.evaluate(i => Object.fromEntries(Array.from(document.querySelectorAll(`#${i} dd[data-name]`), d => [d.dataset.name, +d.dataset.value])), id);
const controls = page => page.evaluate(() => Object.fromEntries(Array.from(globals().panels, ([id, p]) => [id, Object.fromEntries(Array.from(p.controls, ([n, c]) => [n, c.text()]))])));
async function moved(page, id, name, act, how) {
  const before = (await numbers(page, id))[name];
  await act();
  await settled(page);
  const after = (await numbers(page, id))[name];
  assert.ok(Number.isFinite(after), `${id}: ${name} is ${after} after ${how}`);
  assert.notEqual(after, before, `${id}: ${how} leaves ${name} as it was`);
}

async function dragBy(page, locator, dx, dy) {
  await locator.scrollIntoViewIfNeeded();
  const box = await locator.boundingBox(),
    x = box.x + box.width / 2,
    y = box.y + box.height / 2;
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + dx, y + dy, { steps: 12 });
  await page.mouse.up();
}
async function touchBy(page, locator, dx, dy) {
  await locator.scrollIntoViewIfNeeded();
  const session = await page.context().newCDPSession(page),
    box = await locator.boundingBox(),
    x = box.x + box.width / 2,
    y = box.y + box.height / 2;
  await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [{ x, y }] });
  for (let k = 1; k <= 5; k++) await session.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: [{ x: x + (dx * k) / 5, y: y + (dy * k) / 5 }] });
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
}
/** The knob of a range lies where its value is. */
async function drag(page, id, panel, by, dx) {
  if (panel.handle) return by(page, page.locator(`#${id} [data-handle="${panel.handle}"]`), dx, -12);
  const slider = page.locator(`#${id}-${panel.slider}`);
  await slider.scrollIntoViewIfNeeded();
  const box = await slider.boundingBox(),
    at = await slider.evaluate(e => (+e.value - +e.min) / (+e.max - +e.min));
  const knob = { boundingBox: async () => ({ x: box.x + 8 + at * (box.width - 16), y: box.y, width: 0, height: box.height }), scrollIntoViewIfNeeded: async () => {} };
  return by(page, knob, dx, 0);
}

const begun = Date.now();
const page = await open({}),
  again = await open({});
/** Of each panel the lines of Python, and the numbers that they must print. @type {[string, string, Record<string, number>][]} */
const lines = [];
await page.evaluate(() => (globalThis.globals = () => ({ panels })));
const ids = await page.locator('.panel').evaluateAll(all => all.map(e => e.id));
assert.deepEqual(ids, Object.keys(panels));
const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
console.log(`first paint after ${paint?.toFixed(0)} ms, ${statSync(file).size} bytes`);

for (const [id, panel] of Object.entries(panels)) {
  await go(page, id);
  // ---- mouse: a drag; keyboard: arrows; the same control by touch below
  await page.evaluate(i => (globals().panels.get(i).times.length = 0), id);
  await moved(page, id, panel.moves, () => drag(page, id, panel, dragBy, 40), 'dragging');
  const focus = panel.handle ? page.locator(`#${id} [data-handle="${panel.handle}"]`) : page.locator(`#${id}-${panel.slider}`);
  await moved(page, id, panel.moves, async () => { await focus.focus(); await page.keyboard.press('ArrowLeft'); await page.keyboard.press('ArrowLeft'); }, 'an arrow key');
  await page.locator(`#${id}-${panel.slider}`).focus();
  for (let k = 0; k < 4; k++) await page.keyboard.press('ArrowRight');
  await settled(page);
  const times = await page.evaluate(i => globals().panels.get(i).times, id);
  times.sort((a, b) => a - b);
  console.log(`${id}: ${times.length} frames, median ${times[times.length >> 1].toFixed(1)} ms, longest ${times.at(-1).toFixed(1)} ms`);

  // ---- a preset whose settings were changed is no preset any more
  if (id === 'off-manifold') assert.equal((await controls(page))[id].preset, 'own');

  // ---- the copied command prints the numbers of the page
  await page.locator(`#${id} [data-copies=shell]`).click();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(command, await page.locator(`#${id} code.shell`).textContent());
  const docs = command.split('\n').map(one => JSON.parse(execFileSync('sh', ['-c', one], { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, PATH: path.dirname(path.resolve(finetti)) + ':' + process.env.PATH } })));
  const said = await numbers(page, id),
    told = panel.read(docs);
  assert.ok(Object.keys(told).length >= 3);
  for (const [name, value] of Object.entries(told)) assert.ok(Math.abs(said[name] - value) <= panel.close * Math.abs(value), `${id}: ${name} is ${said[name]} on the page, ${value} by\n${command}`);

  await page.locator(`#${id} [data-copies=python]`).click();
  lines.push([id, await page.evaluate(() => navigator.clipboard.readText()), said]);

  // ---- the address brings the same view back
  await page.waitForFunction(() => !writing);
  const hash = await page.evaluate(() => location.hash);
  assert.ok(hash.startsWith(`#${id}?`), hash);
  await again.goto('about:blank');
  await again.goto(url + hash);
  await again.locator('html[data-ready]').waitFor();
  await again.evaluate(() => (globalThis.globals = () => ({ panels })));
  await go(again, id);
  assert.deepEqual(await controls(again), await controls(page), hash);
  assert.deepEqual(await numbers(again, id), said, hash);
}
await again.context().close();

// ---- the copied lines of Python print them too; all in one process, beside what follows
const mark = '---- next panel';
const printing = python && promisify(execFile)(python, ['-W', 'ignore', '-c', lines.map(l => l[1]).join(`\nprint(${JSON.stringify(mark)})\n`)]);

// ---- touch, at the width of a telephone
const phone = await open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
for (const [id, panel] of Object.entries(panels)) {
  await go(phone, id);
  await moved(phone, id, panel.moves, () => drag(phone, id, panel, touchBy, 30), 'touching');
}
await phone.context().close();

// ---- pictures for a person to look at
for (const width of [1100, 390])
  for (const colorScheme of ['light', 'dark']) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `the page is ${overflow} pixels too wide for ${width}`);
    for (const id of ids) {
      await go(page, id);
      await page.locator('#' + id).screenshot({ path: path.join(out, `explore-${id}-${width}-${colorScheme}.png`) });
      if (id === 'landscape' && width > 1000 && colorScheme === 'light') await page.locator('#landscape .stage').screenshot({ path: path.join(out, 'explore.png') });
    }
  }

// ---- a browser without the vector instructions takes the other module, and has the same numbers
const plain = await browser.newContext({ viewport: { width: 1100, height: 900 } });
await plain.addInitScript(() => (WebAssembly.validate = () => false));
const other = await plain.newPage();
other.on('pageerror', e => troubles.push('error: ' + e.message));
await other.goto(url + '#landscape');
await other.locator('html[data-ready]').waitFor();
assert.equal(await page.getAttribute('html', 'data-module'), 'simd');
assert.equal(await other.getAttribute('html', 'data-module'), 'scalar');
await page.goto('about:blank');
await page.goto(url + '#landscape');
await page.locator('html[data-ready]').waitFor();
await go(page, 'landscape');
await go(other, 'landscape');
assert.deepEqual(await numbers(page, 'landscape'), await numbers(other, 'landscape'), 'the two modules');

if (printing) {
  const printed = (await printing).stdout.split(mark);
  assert.equal(printed.length, lines.length);
  lines.forEach(([id, text, said], i) => {
    const found = printed[i].match(/-?[0-9.]+(e[-+]?[0-9]+)?/g).map(Number);
    for (const name of panels[id].python) // NumPy prints eight digits of an array
      assert.ok(found.some(x => Math.abs(x - said[name]) <= 1e-6 * Math.abs(said[name])), `${id}: ${name} = ${said[name]} is not among ${found} of\n${text}`);
  });
}
await browser.close();
assert.deepEqual(troubles, []);
console.log(`${ids.length} panels, ${((Date.now() - begun) / 1000).toFixed(0)} s`);
