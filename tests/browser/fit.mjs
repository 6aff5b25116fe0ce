// Opens pages of `finetti fit --report` and `finetti explain` in headless Chromium, as files.
//
//     node fit.mjs SCREENSHOTS PAGE.html ...
//
// Any message on the console, any error on the page and any request but the file itself is a failure.
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import assert from 'node:assert/strict';
import path from 'node:path';

const [out, ...pages] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(out, 'package.json'))('playwright-core');
const executablePath = execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const troubles = [];
for (const file of pages) {
  const url = 'file://' + path.resolve(file);
  for (const [name, options] of [
    ['light', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
    ['dark', { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' }],
    ['phone', { viewport: { width: 360, height: 740 }, colorScheme: 'light' }],
    ['noscript', { viewport: { width: 1280, height: 900 }, javaScriptEnabled: false }],
  ]) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on('console', m => troubles.push(`${file} ${name}: console: ${m.text()}`));
    page.on('pageerror', e => troubles.push(`${file} ${name}: error: ${e.message}`));
    page.on('request', r => {
      if (!r.url().startsWith(url) && !/^(data|blob):/.test(r.url()))
        troubles.push(`${file} ${name}: request: ${r.url()}`);
    });
    await page.goto(url);
    assert.ok((await page.locator('figure').count()) > 0, 'no figures');
    assert.ok((await page.locator('.bag').count()) > 0, 'no bags');
    await page.screenshot({ path: path.join(out, `${path.basename(file, '.html')}-${name}.png`), fullPage: true });
    // A sentence is there as it was written; the strongest colour is that of the word that decides.
    const words = page.locator('.words');
    assert.equal((await words.count()) > 0, /texts/.test(file), `${file}: texts`);
    for (const sentence of await words.all()) {
      const [strongest, ...others] = await sentence.locator('span').evaluateAll(spans =>
        spans.map(s => [s.textContent, +s.className.slice(1), getComputedStyle(s).backgroundColor]).sort((a, b) => b[1] - a[1]));
      assert.match(strongest[0], /^(BAD|great)$/);
      assert.ok(strongest[1] >= 4 && others.every(o => o[1] <= 2), JSON.stringify([strongest, others]));
      assert.ok(others.every(o => o[2] !== strongest[2]), 'one colour for all words');
      assert.match(await sentence.textContent(), /^\[CLS\] The \w+ film was (BAD|great) \w+\. \[SEP\]$/);
    }
    if (name === 'noscript') continue;
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${file} ${name}: ${wide} pixels wider than the window`);
    if (name !== 'light') continue;
    // Every button is reached by Tab, and Enter presses the one that has the focus.
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    const before = await theme();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'theme');
    await page.keyboard.press('Enter');
    assert.notEqual(await theme(), before, 'Enter on the button of the theme');
  }
}
await browser.close();
assert.deepEqual(troubles, []);
