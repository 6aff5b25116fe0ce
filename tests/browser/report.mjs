// Opens a report in headless Chromium, as a file, and uses it as a reader would.
//
//     node report.mjs REPORT.html SCREENSHOTS CSV_FOLDER [shipped]
//
// CSV_FOLDER has STUDY-FIGURE.csv as `finetti plot` writes it, for every figure; "shipped": figures have words below their axes. Any message on the
// console, any error on the page and any request but the file itself is a failure.
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import path from 'node:path';

const [report, out, csvFolder, shipped] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(out, 'package.json'))('playwright-core');
const executablePath = execFileSync('sh', ['-c', 'command -v chromium'], {
  encoding: 'utf8',
}).trim();
const url = 'file://' + path.resolve(report);

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const troubles = [];
async function open(options, hash = '') {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.on('console', m => troubles.push('console: ' + m.text()));
  page.on('pageerror', e => troubles.push('error: ' + e.message));
  page.on('request', r => {
    if (!r.url().startsWith(url) && !/^(data|blob):/.test(r.url()))
      troubles.push('request: ' + r.url());
  });
  await page.goto(url + hash);
  return page;
}

// ---- claims: counts, filters, links into what is folded
const page = await open({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' });
const rows = await page.locator('.claims tbody tr').count();
assert.ok(rows > 0, 'no claims');
const said = await page.locator('.summary').first().textContent();
const held = await page.locator('.claims tbody tr[data-verdict=holds]').count();
const counts = [...said.matchAll(/(\d+) of (\d+) hold/g)].map(m => [Number(m[1]), Number(m[2])]);
assert.deepEqual(
  counts.reduce((a, b) => [a[0] + b[0], a[1] + b[1]]),
  [held, rows],
  'the counts of the summary',
);
const visible = () => page.locator('.claims tbody tr:visible').count();
await page.click('.filters button[data-verdict=holds]');
assert.equal(await visible(), held, 'the filter by verdict');
assert.equal(
  await page.getAttribute('.filters button[data-verdict=holds]', 'aria-pressed'),
  'true',
);
await page.click('.filters button[data-verdict=""]');
assert.equal(await visible(), rows);
const study = await page.locator('.claims tbody tr').last().getAttribute('data-study');
await page.selectOption('.filters select', study);
assert.equal(
  await visible(),
  await page.locator(`.claims tbody tr[data-study="${study}"]`).count(),
  'the filter by study',
);
await page.selectOption('.filters select', '');
const link = page.locator('.claims a.to-figure').last();
const target = (await link.getAttribute('href')).slice(1);
await link.click();
const figure = page.locator(`figure[id="${target}"]`);
await figure.locator('.actions').waitFor();
const box = await figure.boundingBox();
assert.ok(box.y < 900 && box.y + box.height > 0, 'the link does not lead to the figure');
for (const to of await page
  .locator('a[href^="#"]')
  .evaluateAll(links => links.map(a => a.getAttribute('href').slice(1))))
  assert.equal(
    await page.locator(`[id="${to}"]`).count(),
    1,
    `a link to ${to}, which is not there`,
  );
for (const to of await page
  .locator('a:not([href^="#"])')
  .evaluateAll(links => links.map(a => a.getAttribute('href'))))
  assert.match(to, /^(https:\/\/arxiv\.org\/abs\/\d{4}\.\d{4,5}|explore\.html(#[a-z-]+)?)$/);
const unfold = view => view.evaluate(() => document.querySelectorAll('details').forEach(d => (d.open = true)));
await unfold(page);

// Chromium silently drops every download after ten within one second (kBurstDownloadLimit in its local_frame.cc), which a
// script reaches and a reader does not. So the first are downloaded, and of all others it is asked what would be.
async function downloadBy(button) {
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}
const wouldDownload = id =>
  page.evaluate(async figure => {
    const { createObjectURL } = URL, { click } = HTMLAnchorElement.prototype;
    let blob, name;
    URL.createObjectURL = b => createObjectURL.call(URL, (blob = b));
    HTMLAnchorElement.prototype.click = function () { name = this.download; };
    const buttons = Array.from(document.getElementById(figure).querySelectorAll('.actions button'));
    buttons.find(b => b.textContent === 'Download CSV').click();
    URL.createObjectURL = createObjectURL;
    HTMLAnchorElement.prototype.click = click;
    return { name, text: await blob.text() };
  }, id);

// ---- every figure: drawn, words below its axes, a command to copy, and its CSV is that of `finetti plot`, byte for byte
const figures = await page
  .locator('figure')
  .evaluateAll(all => all.map(f => [f.id, f.dataset.name]));
assert.ok(figures.length > 0, 'no figures');
/** Figures come alive when they are near: all of them, one after the other. */
const visitAll = view =>
  view.evaluate(async () => {
    for (const figure of document.querySelectorAll('figure')) {
      figure.scrollIntoView();
      for (let frames = 0; !figure.querySelector('.actions'); frames++) {
        if (frames > 600) throw new Error(`${figure.id} does not come alive`);
        await new Promise(requestAnimationFrame);
      }
    }
  });
await visitAll(page);
for (const [id, name] of figures) {
  const expected = path.join(csvFolder, name + '.csv');
  assert.ok(existsSync(expected), `${expected} is missing`);
  const got = await wouldDownload(id);
  assert.equal(got.name, name + '.csv');
  assert.ok(Buffer.from(got.text).equals(readFileSync(expected)), `${name}.csv differs from that of the command line`);
}
const told = await page.locator('figure').evaluateAll(all =>
  all.map(f => ({
    id: f.id,
    panels: f.querySelectorAll('svg').length,
    words: f.querySelector('figcaption > p:not(.note):not(.command)')?.textContent ?? '',
    command: f.querySelector('.command code').textContent,
    buttons: Array.from(f.querySelectorAll('.actions button'), b => b.textContent),
  })),
);
for (const { id, panels, words, command, buttons } of told) {
  assert.ok(panels > 0, `${id} is not drawn`);
  assert.match(command, new RegExp(`^finetti .*--figure ${id.split('.').pop()}( |$)`), id);
  for (const b of ['Copy the command', 'Download CSV', 'Download SVG']) assert.ok(buttons.includes(b), `${id} has no button ${b}`);
  if (shipped) assert.match(words, /^\S+( \S+){2,}.*\.$/s, `${id} has no sentence below its axes`);
}
// Labels are whole, and none covers another.
if (shipped)
  assert.deepEqual(
    await page.evaluate(() => {
      const out = [];
      for (const svg of document.querySelectorAll('.panel > svg')) {
        const id = svg.closest('figure').id, frame = svg.getBoundingClientRect();
        const texts = Array.from(svg.querySelectorAll('text'), e => [e.textContent, e.getBoundingClientRect()]);
        texts.forEach(([text, a], i) => {
          if (a.right > frame.right + 1 || a.left < frame.left - 1) out.push(`${id}: '${text}' is cut off`);
          for (const [other, b] of texts.slice(i + 1))
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
              out.push(`${id}: '${text}' covers '${other}'`);
        });
      }
      return out;
    }),
    [],
  );
const first = page.locator('figure').first();
const csv = await downloadBy(first.getByRole('button', { name: 'Download CSV' }));
assert.equal(csv.name, figures[0][1] + '.csv');
assert.ok(csv.bytes.equals(readFileSync(path.join(csvFolder, csv.name))));
assert.match((await downloadBy(first.getByRole('button', { name: 'Download SVG' }))).bytes.toString(), /^<svg [^]*<\/svg>\s*$/);

const command = page.locator('figure').first();
await command.getByRole('button', { name: 'Copy the command' }).click();
await command.getByRole('button', { name: /Copied|Selected/ }).waitFor();

// ---- a legend entry hides its curve and brings it back, by mouse and by keyboard
const lines = page.locator('figure:has(.item)').first();
await lines.scrollIntoViewIfNeeded();
await lines.locator('.actions').waitFor();
const entry = lines.locator('.item').first();
const curve = lines.locator(`.marks g[data-k="${await entry.getAttribute('data-k')}"]`).first();
await entry.click();
assert.equal(await entry.getAttribute('aria-pressed'), 'false');
assert.equal(await curve.evaluate(g => g.style.display), 'none');
await entry.focus();
await page.keyboard.press('Enter');
assert.equal(await curve.evaluate(g => g.style.display), '');

// ---- drag to zoom in both directions, double click to go back to the same bytes, and what the cursor says
const panel = lines.locator('.panel').first();
await panel.evaluate(p => p.scrollIntoView({ block: 'center' }));
const state = () => panel.locator('svg').first().evaluate(svg => svg.innerHTML);
const view = () => lines.evaluate(f => f.finetti[0].view());
const whole = await state();
const over = await panel.locator('.marks').first().evaluate(m => {
  const svg = m.ownerSVGElement,
    s = svg.getBoundingClientRect(),
    k = s.width / svg.viewBox.baseVal.width;
  const at = name => Number(m.getAttribute(name)) * k;
  return { x: s.x + at('x'), y: s.y + at('y'), width: at('width'), height: at('height') };
});
await page.mouse.move(over.x + over.width * 0.3, over.y + over.height * 0.3);
await page.mouse.down();
await page.mouse.move(over.x + over.width * 0.7, over.y + over.height * 0.7, { steps: 5 });
await page.mouse.up();
for (const [end, at] of Object.entries({ left: 0.3, right: 0.7, top: 0.3, bottom: 0.7 }))
  assert.ok(Math.abs((await view())[end] - at) < 0.02, `zoom: ${end} is ${(await view())[end]}`);
assert.notEqual(await state(), whole);
await page.mouse.dblclick(over.x + over.width / 2, over.y + over.height / 2);
assert.deepEqual(await view(), { left: 0, right: 1, top: 0, bottom: 1 });
const numbers = text => text.match(/-?\d+(\.\d+)?/g).map(Number);
const [before, after] = [numbers(whole), numbers(await state())];
assert.equal(before.length, after.length, 'double click brings everything back');
assert.ok(
  before.every((v, i) => Math.abs(v - after[i]) < 0.06),
  'double click resets',
);
const tip = panel.locator('.tip');
let tips = 0;
for (let k = 0; k <= 20 && !tips; k++) {
  for (let j = 1; j < 10 && !tips; j++) {
    await page.mouse.move(over.x + (over.width * k) / 20, over.y + (over.height * j) / 10);
    tips += await tip.isVisible();
  }
}
assert.ok(tips > 0, 'the cursor never says anything');
await page.mouse.move(5, 5);
await panel.focus();
await page.keyboard.press('ArrowRight');
assert.ok(await tip.isVisible(), 'nor do the arrow keys');

// ---- dark, narrow, print, no script
const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await paper();
await page.click('#theme');
assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
assert.notEqual(await paper(), light);
await page.click('#theme');
assert.equal(await paper(), light);
await page.emulateMedia({ media: 'print' });
assert.ok(await page.locator('figure svg').first().isVisible());
assert.equal(await page.locator('.actions:visible').count(), 0);
const still = await open({ javaScriptEnabled: false, viewport: { width: 1280, height: 900 } });
assert.ok(await still.locator('figure svg').first().isVisible());
assert.equal(await still.locator('.filters:visible').count(), 0);

// ---- pictures for a person to look at
for (const [width, name] of [
  [1280, 'wide'],
  [390, 'phone'],
])
  for (const colorScheme of ['light', 'dark']) {
    const view = await open({
      viewport: { width, height: 900 },
      colorScheme,
      deviceScaleFactor: 1,
    });
    assert.equal(await view.getAttribute('html', 'data-theme'), colorScheme);
    const overflow = await view.evaluate(
      () => document.documentElement.scrollWidth - window.innerWidth,
    );
    assert.ok(overflow <= 0, `${name}: the page is ${overflow} pixels too wide`);
    await unfold(view);
    await visitAll(view);
    await view.evaluate(() => {
      for (const part of document.querySelectorAll('details')) part.open = false; /* all of it is too long for one picture */
      window.scrollTo(0, 0);
    });
    await view.screenshot({ path: path.join(out, `${name}-${colorScheme}.png`), fullPage: true });
    await view.context().close();
  }
await browser.close();
assert.deepEqual(troubles, []);
console.log(`${rows} claims, ${figures.length} figures`);
