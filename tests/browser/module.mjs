// The WebAssembly modules beside the native library: the same calls (web/web.h) with the same random settings.
//
//     node module.mjs SOURCE NATIVE_PROGRAM SCALAR.wasm SIMD.wasm [COUNT] [SEED]
//
// The one with vector instructions is left out where this Node.js has them not, which is said. Both modules train with
// the same bits, as they have the same fused multiply-adds as the processor.
// Random draws, which use + - * / sqrt, fma and the library's own functions only, have the same bits. Elsewhere exp, erf
// and log of musl and of glibc, and the order of sums in OpenBLAS, leave a difference: below 1e-12 of the largest answer.
// A search for the maximum of a flat function ends where rounding says: of `tune` what it maximised is compared, to 1e-10.
// So do those for the minimum of every bag of `erm`: 1e-8.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const [source, program, scalar, simd, count = '1000', seed = '1'] = process.argv.slice(2);
const [finettiOf, roundsOnce] = new Function(readFileSync(source + '/web/module.js', 'utf8') + '; return [finettiOf, roundsOnce];')();
const header = readFileSync(source + '/web/web.h', 'utf8');
const listed = Array.from(header.matchAll(/^    C\((\w+),/gm), m => m[1]);
function open(file) {
  const module = new WebAssembly.Module(readFileSync(file));
  assert.deepEqual(WebAssembly.Module.imports(module), [], 'the module imports nothing');
  const exported = WebAssembly.Module.exports(module).map(e => e.name).filter(n => n.startsWith('web_')).map(n => n.slice(4));
  assert.deepEqual(exported.filter(n => !['message', 'take', 'give_back'].includes(n)).sort(), [...listed].sort());
  const finetti = finettiOf(new WebAssembly.Instance(module));
  assert.ok(roundsOnce(finetti), `${file} rounds a fused multiply-add twice`);
  return finetti;
}
const modules = { scalar: open(scalar) };
if (WebAssembly.validate(readFileSync(simd))) modules.simd = open(simd);
else console.log('SKIPPED: the module with vector instructions: this Node.js does not have them');

// ---- random settings: xorshift, so that a seed is a test
let state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n;
function uniform() {
  state ^= (state << 13n) & 0xffffffffffffffffn;
  state ^= state >> 7n;
  state ^= (state << 17n) & 0xffffffffffffffffn;
  return Number(state >> 11n & 0x1fffffffffffffn) / 2 ** 53;
}
const between = (a, b) => a + (b - a) * uniform();
const log = (a, b) => a * (b / a) ** uniform();
const whole = (a, b) => Math.floor(between(a, b + 1));
const many = (n, f) => Array.from({ length: n }, f);
const overlap = () => between(-0.7, 0.7) / 2; // any five of these are overlaps of unit vectors
const overlaps = () => many(5, overlap);
const slr = () => [whole(10, 5000), whole(2, 60), log(0.01, 1), between(0.1, 1.4), between(0, 1)];
function context() {
  const L = whole(2, 40),
    m = whole(1, 10);
  return [whole(0, 2), whole(3, 5), log(0.1, 3), log(0.1, 10), log(0.05, 1), between(0, 1), log(0.2, 5), L, m, ...many(L, () => between(-2, 2)), ...many(L, () => between(-2, 2)), ...many(m, () => between(-2, 2))];
}
/** Products and sums that nearly cancel, tie, overflow or vanish. */
function triple() {
  const size = [2, 30, 70, 130, 500, 1020][whole(0, 5)];
  const one = () => (uniform() < 0.5 ? -1 : 1) * (1 + whole(0, 2 ** 20) / 2 ** whole(20, 52)) * 2 ** whole(-size, size);
  const a = one(),
    b = one();
  return [a, b, [one(), -a * b, -a * b * (1 + 2 ** -whole(1, 60)), a * b * 2 ** whole(-60, 60)][whole(0, 3)]];
}
const circle = () => [whole(0, 1), whole(0, 1), between(0, 3), log(0.5, 20), between(0, 1), log(0.01, 1), between(0, 1), between(0.1, 1), between(0.1, 1), between(0, 0.3)];
const L2 = () => whole(2, 200);

/** name: how often, the settings, the largest difference relative to the largest answer (0: the same bits), and the first
 * answer that is compared. */
const calls = {
  tokens: [100, () => [log(0.25, 32), whole(2, 30), whole(0, 1000), whole(0, 1000)], 0],
  weights: [100, () => { const L = whole(1, 30); return [whole(0, 2), between(0, 8), log(0.25, 32), ...many(2 * L, () => between(-4, 8))]; }, 1e-12],
  risks: [25, () => [whole(0, 2), log(0.25, 32), whole(2, 30), between(0, 8), between(0, 2)], 1e-12],
  excess: [30, () => [whole(0, 2), log(0.25, 32), whole(2, 30), whole(2, 60), whole(0, 1000), between(0, 8), between(0, 2)], 1e-12],
  bayes: [25, () => [log(0.25, 32), whole(2, 30)], 1e-12],
  plane: [60, () => [...slr(), whole(2, 20)], 1e-12],
  risk: [120, () => [...slr(), ...overlaps()], 1e-12],
  stationary: [30, slr, 1e-12],
  curvature: [120, () => [...slr(), ...overlaps()], 1e-12],
  train: [40, () => { const steps = whole(1, 60); return [whole(20, 2000), whole(2, 20), log(0.05, 1), 0.7, 0, whole(0, 1), whole(0, 2), log(1e-4, 1e-3), log(1e-6, 1e-3), whole(1, 5), steps, whole(1, 4), whole(0, 1000), whole(1, 20), ...overlaps(), whole(0, steps)]; }, 1e-12],
  further: [40, () => [], 1e-12],
  context: [100, context, 1e-12],
  attend: [80, context, 1e-12],
  tune: [10, () => { const L = whole(5, 12); return [0, 3, 7, L, ...many(L, () => between(-2, 2)), ...many(L, () => between(-2, 2))]; }, 1e-10, 5],
  predicted: [60, () => [...circle(), ...many(4, L2)], 1e-12],
  rate: [30, () => [...circle(), whole(2, 60), 2, 4, whole(0, 1000)], 1e-12],
  circle: [50, () => [...circle(), whole(2, 100), whole(0, 1000), whole(1, 40)], 1e-12],
  fused: [60, () => many(100, triple).flat(), 0],
  erm: [10, () => [log(0.5, 10), whole(2, 6), between(0.2, 1), log(0.5, 20), log(0.3, 5), whole(1000, 3000), whole(0, 1000)], 1e-8],
  curve: [10, () => [log(0.5, 10), whole(2, 12), between(0.2, 1), log(0.5, 20)], 1e-12],
};
assert.deepEqual(Object.keys(calls).sort(), [...listed].sort(), 'every call is tried');

const total = Object.values(calls).reduce((sum, c) => sum + c[0], 0);
const asked = [];
for (const [name, [often, settings]] of Object.entries(calls)) {
  if (name === 'further') continue;
  for (let i = 0; i < Math.ceil((often * count) / total); i++) {
    const numbers = settings();
    asked.push([name, numbers]);
    if (name === 'train') asked.push(['further', [numbers[10]]]); // to the last step
  }
}

// ---- ask both
const ROOM = 20000;
const cell = new DataView(new ArrayBuffer(8));
function bits(x) {
  cell.setFloat64(0, x);
  return cell.getBigUint64(0).toString(16).padStart(16, '0');
}
function number(text) {
  cell.setBigUint64(0, BigInt('0x' + text));
  return cell.getFloat64(0);
}
const input = asked.map(([name, numbers]) => `${name} ${ROOM} ${numbers.length} ${numbers.map(bits).join(' ')}`).join('\n') + '\n';
const native = spawnSync(program, { input, encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, FINETTI_KERNEL: 'ref' } });
assert.equal(native.status, 0, native.stderr);
const lines = native.stdout.split('\n');

let failures = 0;
/** @type {Record<string, Map<number, Float64Array>>} */
const trained = {};
for (const [which, finetti] of Object.entries(modules)) compare(which, finetti);
for (const [i, numbers] of trained.simd ?? []) assert.deepEqual(numbers, trained.scalar.get(i), `the modules train differently: ${asked[i][1]}`);
console.log(`${asked.length} settings of ${listed.length} calls, ${Object.keys(modules).join(' and ')}`);
assert.equal(failures, 0, 'differences');

function compare(which, finetti) {
  const seen = {};
  trained[which] = new Map();
  asked.forEach(([name, numbers], i) => {
    const of = (seen[name] ||= { asked: 0, same: 0, refused: 0, largest: 0 });
    of.asked++;
    let mine;
    try {
      mine = finetti.call(name, numbers, ROOM);
    } catch (error) {
      assert.ok(!(error instanceof WebAssembly.RuntimeError), `${name} ${numbers}: ${error.stack}`);
      of.refused++;
      assert.equal(lines[i], 'refused ' + error.message, name);
      return;
    }
    if (name === 'train' || name === 'further') trained[which].set(i, mine);
    const theirs = lines[i].trim().split(' ').map(number);
    assert.equal(mine.length, theirs.length, `${name} ${numbers}: ${lines[i].slice(0, 200)}`);
    let size = 0,
      off = 0;
    for (const x of theirs.slice(calls[name][3] ?? 0)) if (Number.isFinite(x)) size = Math.max(size, Math.abs(x));
    mine.forEach((x, k) => {
      if (k < (calls[name][3] ?? 0) || Object.is(x, theirs[k]) || (Number.isNaN(x) && Number.isNaN(theirs[k]))) return;
      off = Math.max(off, Math.abs(x - theirs[k]) / (size || 1));
      if (!Number.isFinite(x) || !Number.isFinite(theirs[k])) off = Infinity;
    });
    of.same += off === 0;
    of.largest = Math.max(of.largest, off);
    if (off > calls[name][2]) {
      failures++;
      if (failures < 20) console.error(`${which} ${name}: off by ${off} at ${numbers.slice(0, 24)}`);
    }
  });
  for (const [name, s] of Object.entries(seen)) console.log(`${which} ${name.padEnd(12)} ${s.asked} asked, ${s.same} with the same bits, ${s.refused} refused alike, largest difference ${s.largest.toExponential(1)}`);
  for (const [name, s] of Object.entries(seen)) assert.ok(s.refused * 2 < s.asked, `${name} is mostly refused`);
}
