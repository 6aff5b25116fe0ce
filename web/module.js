'use strict';
/**
 * The library's own C, compiled to WebAssembly: every function of web/web.h as one of numbers to numbers.
 *
 * @typedef {{call: (name: string, numbers: ArrayLike<number>, room?: number) => Float64Array}} Finetti
 * @param {WebAssembly.Instance} instance
 * @returns {Finetti}
 */
function finettiOf(instance) {
  const c = /** @type {any} */ (instance.exports);
  const blocks = { in: { at: 0, room: 0 }, out: { at: 0, room: 0 } };
  /** @param {'in' | 'out'} name @param {number} room */
  function block(name, room) {
    const b = blocks[name];
    if (b.room < room) {
      if (b.at) c.web_give_back(b.at);
      b.room = Math.max(2 * b.room, room, 64);
      b.at = c.web_take(b.room);
      if (!b.at) throw new Error('out of memory');
    }
    return b.at;
  }
  /** @param {number} at */
  function text(at) {
    const bytes = new Uint8Array(c.memory.buffer);
    let end = at;
    while (bytes[end]) end++;
    return new TextDecoder().decode(bytes.subarray(at, end));
  }
  return {
    call(name, numbers, room = 4096) {
      const from = block('in', numbers.length + 1),
        to = block('out', room);
      new Float64Array(c.memory.buffer, from, numbers.length).set(numbers);
      const answers = c['web_' + name](numbers.length, from, room, to);
      if (answers < 0) throw new Error(text(c.web_message()));
      return new Float64Array(c.memory.buffer, to, answers).slice();
    },
  };
}

/** Is a fused multiply-add of this module rounded once? (1 + e)(1 - e) - 1 = -e^2, of which nothing is left if the product
 * is rounded first. @param {Finetti} finetti */
function roundsOnce(finetti) {
  const e = 2 ** -30,
    f = 2 ** -13; // in float
  const y = finetti.call('fused', [1 + e, 1 - e, -1, 1 + f, 1 - f, -1]);
  return y[0] === -e * e && y[3] === -f * f;
}
