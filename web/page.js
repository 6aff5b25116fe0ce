'use strict';
/* The machinery of the page: state in the address, controls, numbers, plots, and calls into the module. Panels are in
 * files of their own; each calls panel(...) once. */

/** @type {Finetti} */
let here;
/** @type {WebAssembly.Module} */
let compiled;

// ---- calls -----------------------------------------------------------------------------------

/** A worker with the module, and its calls one after the other. `drop` gives up what it has not answered yet.
 * @returns {((name: string, numbers: number[], room?: number) => Promise<Float64Array>) & {drop: () => void}} */
function helper() {
  const source = document.getElementById('worker').textContent;
  /** @type {Worker | undefined} */
  let worker;
  /** @type {Map<number, {done: (a: Float64Array) => void, failed: (e: Error) => void}>} */
  const waiting = new Map();
  let calls = 0;
  const start = () => {
    worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
    worker.onmessage = ({ data }) => {
      const { done, failed } = waiting.get(data.id);
      waiting.delete(data.id);
      if (data.error) failed(new Error(data.error));
      else done(data.answers);
    };
    worker.postMessage({ module: compiled });
  };
  /** @param {string} name @param {number[]} numbers */
  const call = (name, numbers, room = 4096) =>
    new Promise((done, failed) => {
      if (!worker) start();
      waiting.set(++calls, { done, failed });
      worker.postMessage({ id: calls, name, numbers, room });
    });
  const drop = () => {
    if (!waiting.size) return;
    worker.terminate();
    worker = undefined;
    for (const { failed } of waiting.values()) failed(new Error('given up'));
    waiting.clear();
  };
  return Object.assign(call, { drop });
}

/** The work of a panel in the worker: a new piece waits until the one at work has looked up, and makes it void.
 * @param {(still: () => boolean) => Promise<void>} work @param {(e: Error) => void} failed */
function latest(work, failed) {
  let wanted = 0,
    busy = false;
  const run = async () => {
    const mine = ++wanted;
    document.documentElement.dataset.busy = String(+(document.documentElement.dataset.busy || 0) + 1);
    while (busy && mine === wanted) await new Promise(r => setTimeout(r, 4));
    if (mine === wanted) {
      busy = true;
      try {
        await work(() => mine === wanted);
      } catch (error) {
        if (mine === wanted) failed(error);
      }
      busy = false;
    }
    document.documentElement.dataset.busy = String(+document.documentElement.dataset.busy - 1);
  };
  return run;
}

// ---- state: what the address says ------------------------------------------------------------

/** @type {Map<string, Panel>} */
const panels = new Map();
let current = '';
/** Values of the address that no control has taken yet. @type {Map<string, string>} */
const given = new Map();

function readAddress() {
  const [anchor, rest = ''] = decodeURIComponent(location.hash.slice(1)).split('?');
  current = anchor;
  given.clear();
  for (const part of rest.split('&')) {
    const at = part.indexOf('=');
    if (at > 0) given.set(part.slice(0, at).includes('.') ? part.slice(0, at) : anchor + '.' + part.slice(0, at), part.slice(at + 1));
  }
}

let writing = 0;
function writeAddress() {
  clearTimeout(writing);
  writing = setTimeout(writeNow, 150);
}
function writeNow() {
  writing = 0;
  const parts = [];
  for (const [id, p] of panels)
    for (const [name, c] of p.controls)
      if (c.text() !== c.usual) parts.push((id === current ? name : id + '.' + name) + '=' + c.text());
  try {
    history.replaceState(null, '', '#' + current + (parts.length ? '?' + parts.join('&') : ''));
  } catch {
    /* an address that may not be changed: the page works all the same */
  }
}

// ---- numbers as text -------------------------------------------------------------------------

/** @param {number} x @param {number} [digits] */
function show(x, digits = 4) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? '–' : x > 0 ? '∞' : '−∞';
  const size = Math.abs(x);
  const rounded = +x.toPrecision(Number.isInteger(x) && size < 1e7 ? 7 : digits);
  const text = size !== 0 && (size < 1e-3 || size >= 1e7 || (size >= 1e5 && !Number.isInteger(x))) ? rounded.toExponential() : String(rounded);
  return text.replaceAll('-', '−');
}
/** @param {number} x */
const round3 = x => +x.toPrecision(3);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// ---- elements --------------------------------------------------------------------------------

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string)} inside @returns {any} */
function el(tag, attributes = {}, ...inside) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes))
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? '' : v);
  e.append(...inside);
  return e;
}

/** @typedef {{value: any, usual: string, text: () => string, take: (text: string) => void}} Control */

/** A panel: controls, a plot, numbers, the command.
 * @param {string} id @param {(p: Panel) => void} build */
function panel(id, build) {
  const root = document.getElementById(id);
  const p = new Panel(id, root);
  panels.set(id, p);
  build(p);
  for (const [name, c] of p.controls)
    if (given.has(id + '.' + name)) c.take(given.get(id + '.' + name));
  p.change();
}

class Panel {
  constructor(id, root) {
    this.id = id;
    this.root = root;
    /** @type {Map<string, Control>} */
    this.controls = new Map();
    this.plots = root.querySelector('.plots');
    this.side = root.querySelector('.controls');
    this.note('');
    this.numbers = el('dl', { class: 'numbers', 'aria-live': 'polite' });
    this.commands = el('div', { class: 'commands' });
    this.lines = {};
    root.querySelector('.beside').append(this.numbers, this.commands);
    /** All of it, when a control was changed; and what stands there already, with what a worker has found. */
    this.draw = () => {};
    this.redraw = () => {};
    /** @type {ReturnType<typeof helper> | undefined} */
    this.helper = undefined;
    this.frame = 0;
    this.seen = false;
    /** Milliseconds that frames took. @type {number[]} */
    this.times = [];
    new IntersectionObserver(
      (entries, observer) => {
        if (!entries.some(e => e.isIntersecting)) return;
        observer.disconnect();
        this.seen = true;
        this.change();
      },
      { rootMargin: '300px' },
    ).observe(root);
  }
  /** Calls the module in this panel's worker. @param {string} name @param {number[]} numbers @param {number} [room] */
  later(name, numbers, room) {
    this.helper ||= helper();
    return this.helper(name, numbers, room);
  }
  /** Work for the worker: a new one makes the one before it void. @param {(still: () => boolean) => Promise<void>} work */
  latest(work) {
    return latest(work, error => this.refuse(error));
  }
  /** @param {Error} error */
  refuse(error) {
    this.note(error.message);
    this.root.classList.add('refused');
  }
  /** Something was changed: draw in the next frame, and write the address. */
  change() {
    if (this.frame || !this.seen) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const start = performance.now();
      try {
        this.root.classList.remove('refused');
        this.draw();
      } catch (error) {
        this.refuse(error);
      }
      this.times.push(performance.now() - start);
    });
  }
  touched() {
    current = this.id;
    this.change();
    writeAddress();
  }
  /** @param {string} text */
  note(text) {
    this.say || (this.say = this.root.querySelector('.say'));
    if (this.say.textContent !== text) this.say.textContent = text;
  }
  add(name, control, ...nodes) {
    this.controls.set(name, control);
    this.side.append(...nodes);
    return control;
  }
  /** @param {string} name @param {{label: string, min: number, max: number, value: number, log?: boolean, whole?: boolean, step?: number, zero?: boolean, changed?: () => void}} o */
  slider(name, o) {
    // evenly: a tick is a step, so that an arrow key is one
    const ticks = o.log ? 300 : Math.round((o.max - o.min) / (o.whole ? 1 : o.step));
    const of = t => {
      if (o.zero && t === 0) return 0;
      if (!o.log) return +(o.min + ((o.max - o.min) * t) / ticks).toPrecision(6);
      const x = o.min * (o.max / o.min) ** (t / ticks);
      return Math.min(o.max, Math.max(o.min, o.whole && x < 1000 ? Math.round(x) : round3(x)));
    };
    const at = x =>
      o.zero && x === 0 ? 0 : Math.round(ticks * (o.log ? Math.log(x / o.min) / Math.log(o.max / o.min) : (x - o.min) / (o.max - o.min)));
    const input = el('input', { type: 'range', min: 0, max: ticks, step: 1, id: `${this.id}-${name}`, 'data-name': name });
    const shown = el('output', { for: `${this.id}-${name}` });
    const control = {
      value: o.value,
      usual: String(o.value),
      text: () => String(control.value),
      take: text => control.set(+text),
      set: x => {
        if (!Number.isFinite(x) || (x < o.min && !(o.zero && x === 0)) || x > o.max || (o.whole && x !== Math.round(x))) return;
        control.value = x;
        input.value = at(x);
        shown.textContent = show(x);
        input.setAttribute('aria-valuetext', show(x));
      },
    };
    input.addEventListener('input', () => {
      // a step of a key must change a whole number
      let x = of(+input.value);
      if (x === control.value && +input.value !== at(x)) x = o.whole ? x + Math.sign(+input.value - at(x)) : x;
      const t = input.value;
      control.set(Math.min(o.max, Math.max(o.zero ? 0 : o.min, x)));
      if (!o.whole) input.value = t;
      o.changed?.();
      this.touched();
    });
    control.set(o.value);
    return this.add(name, control, el('div', { class: 'slider' }, el('label', { for: input.id }, o.label), shown, input));
  }
  /** @param {string} name @param {{label: string, options: [string, string][], value: string, changed?: () => void}} o */
  choice(name, o) {
    const select = el('select', { id: `${this.id}-${name}`, 'data-name': name }, ...o.options.map(([v, t]) => el('option', { value: v }, t)));
    const control = {
      value: o.value,
      usual: o.value,
      text: () => control.value,
      take: text => {
        if (!o.options.some(([v]) => v === text)) return;
        control.value = select.value = text;
      },
    };
    select.addEventListener('change', () => {
      control.value = select.value;
      o.changed?.();
      this.touched();
    });
    control.take(o.value);
    return this.add(name, control, el('div', { class: 'choice' }, el('label', { for: select.id }, o.label), select));
  }
  /** @param {string} name @param {string} label */
  check(name, label) {
    const input = el('input', { type: 'checkbox', id: `${this.id}-${name}`, 'data-name': name });
    const control = {
      value: false,
      usual: 'no',
      text: () => (control.value ? 'yes' : 'no'),
      take: text => {
        control.value = input.checked = text === 'yes';
      },
    };
    input.addEventListener('change', () => {
      control.value = input.checked;
      this.touched();
    });
    return this.add(name, control, el('div', { class: 'check' }, input, el('label', { for: input.id }, label)));
  }
  /** @param {string} label @param {() => void} act */
  button(label, act) {
    const b = el('button', { type: 'button', onclick: () => { act(); this.touched(); } }, label);
    this.side.append(b);
    return b;
  }
  /** A value without a control of its own: where handles are. @param {string} name @param {number[]} value @param {(v: number[]) => number[] | null} [tidy] */
  values(name, value, tidy = v => v) {
    const control = {
      value,
      usual: value.join(','),
      text: () => control.value.join(','),
      take: text => {
        const v = text === '' ? [] : text.split(',').map(Number);
        const good = v.every(Number.isFinite) && tidy(v);
        if (good) control.value = good;
      },
    };
    this.controls.set(name, control);
    return control;
  }
  /** A number with its name, and how it was obtained. @param {string} name @param {string} label @param {number} value @param {string} how @param {string} [extra] */
  number(name, label, value, how, extra = '') {
    let dd = this.lines[name];
    if (!dd) {
      dd = el('dd', { 'data-name': name }, el('b'), el('span'), el('i'));
      this.lines[name] = dd;
      this.numbers.append(el('div', {}, el('dt', {}, label), dd));
      dd.previous = dd.previousSibling;
    }
    if (dd.previousSibling.textContent !== label) dd.previousSibling.textContent = label;
    dd.dataset.value = String(value);
    dd.children[0].textContent = Number.isNaN(value) && how === 'being computed' ? '…' : show(value);
    dd.children[1].textContent = extra;
    dd.children[2].textContent = how;
  }
  /** The lines to copy. @param {string} shell @param {string} python */
  command(shell, python) {
    for (const [name, text] of [['shell', shell], ['python', python]]) {
      let code = this.commands.querySelector(`code.${name}`);
      if (!code) {
        code = el('code', { class: name, tabindex: 0 });
        const copy = el('button', { type: 'button', class: 'copy', 'data-copies': name, onclick: () => copyText(code, copy) }, 'Copy');
        this.commands.append(el('div', { class: 'line' }, el('span', {}, name === 'shell' ? 'Command line' : 'Python'), copy, el('pre', {}, code)));
      }
      if (code.textContent !== text) code.textContent = text;
    }
  }
}

async function copyText(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand('copy');
  }
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy'), 1200);
}

/** Words of a command: --name value, without those that are as usual. */
const words = settings => Object.entries(settings).map(([k, v]) => ` --${k.replaceAll('_', '-')} ${v}`).join('');
const keywords = settings =>
  Object.entries(settings)
    .map(([k, v]) => `, ${k}=${typeof v === 'number' ? v : JSON.stringify(v)}`)
    .join('')
    .slice(2);

// ---- a plot on a canvas, with handles over it ------------------------------------------------

const MARGIN = { left: 46, right: 10, top: 10, bottom: 34 };

class Plot {
  /** @param {Panel} p @param {{label: string, height: number, x: [number, number], y: [number, number], xlabel?: string, ylabel?: string, square?: boolean}} o */
  constructor(p, o) {
    this.panel = p;
    this.o = o;
    this.x = o.x;
    this.y = o.y;
    this.canvas = el('canvas', { role: 'img', 'aria-label': o.label });
    this.box = el('div', { class: 'plot' }, this.canvas);
    p.plots.append(this.box);
    this.box.style.height = o.height + 'px';
    this.handles = new Map();
    new ResizeObserver(() => {
      // handles at once, beside a plot that is stretched until the next frame
      this.w = this.box.clientWidth;
      this.h = this.box.clientHeight;
      for (const e of this.handles.values()) this.place(e);
      p.change();
    }).observe(this.box);
  }
  size() {
    const w = this.box.clientWidth,
      h = this.box.clientHeight,
      scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(w * scale) || this.canvas.height !== Math.round(h * scale)) {
      this.canvas.width = Math.round(w * scale);
      this.canvas.height = Math.round(h * scale);
    }
    this.w = w;
    this.h = h;
    const c = this.canvas.getContext('2d');
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, w, h);
    c.font = '12px system-ui, sans-serif';
    return c;
  }
  px(x) {
    return MARGIN.left + ((x - this.x[0]) / (this.x[1] - this.x[0])) * (this.w - MARGIN.left - MARGIN.right);
  }
  py(y) {
    return this.h - MARGIN.bottom - ((y - this.y[0]) / (this.y[1] - this.y[0])) * (this.h - MARGIN.top - MARGIN.bottom);
  }
  atX(px) {
    return this.x[0] + ((px - MARGIN.left) / (this.w - MARGIN.left - MARGIN.right)) * (this.x[1] - this.x[0]);
  }
  atY(py) {
    return this.y[0] + ((this.h - MARGIN.bottom - py) / (this.h - MARGIN.top - MARGIN.bottom)) * (this.y[1] - this.y[0]);
  }
  axes(c) {
    c.strokeStyle = colour('grid');
    c.fillStyle = colour('soft');
    c.lineWidth = 1;
    c.textAlign = 'center';
    c.textBaseline = 'top';
    for (const t of ticks(this.x, Math.max(2, Math.floor(this.w / 90)))) {
      line(c, this.px(t), this.py(this.y[0]), this.px(t), this.py(this.y[1]));
      c.fillText(show(t), this.px(t), this.h - MARGIN.bottom + 4);
    }
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    for (const t of ticks(this.y, Math.max(2, Math.floor(this.h / 45)))) {
      line(c, this.px(this.x[0]), this.py(t), this.px(this.x[1]), this.py(t));
      c.fillText(show(t), MARGIN.left - 5, this.py(t));
    }
    this.labels(c);
  }
  labels(c) {
    c.fillStyle = colour('text');
    c.textAlign = 'right';
    c.textBaseline = 'bottom';
    c.fillText(this.o.xlabel || '', this.w - MARGIN.right, this.h - 1);
    c.textAlign = 'left';
    c.textBaseline = 'top';
    c.fillText(this.o.ylabel || '', MARGIN.left + 14, MARGIN.top + 1); // beside what is drawn at the very edge
  }
  /** A handle: dragged by pointer, moved by arrow keys. @param {string} id @param {{label: string, at: [number, number], moved: (x: number, y: number) => void, text?: string, className?: string, removed?: () => void, sign?: string}} h */
  handle(id, h) {
    let e = this.handles.get(id);
    if (!e) {
      e = el('div', { class: 'handle', tabindex: 0, role: 'slider', 'data-handle': id });
      this.handles.set(id, e);
      this.box.append(e);
      e.addEventListener('pointerdown', event => {
        e.setPointerCapture(event.pointerId);
        e.focus({ preventScroll: true });
        event.preventDefault();
      });
      e.addEventListener('pointermove', event => {
        if (!e.hasPointerCapture(event.pointerId)) return;
        const r = this.box.getBoundingClientRect();
        this.move(e.what, this.atX(event.clientX - r.left), this.atY(event.clientY - r.top));
      });
      e.addEventListener('keydown', event => {
        const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
        if ((event.key === 'Delete' || event.key === 'Backspace') && e.what.removed) {
          event.preventDefault();
          e.what.removed();
          this.panel.touched();
        }
        if (!by) return;
        event.preventDefault();
        const step = event.shiftKey ? 0.1 : 0.02;
        this.move(e.what, e.what.at[0] + by[0] * step * (this.x[1] - this.x[0]), e.what.at[1] + by[1] * step * (this.y[1] - this.y[0]));
      });
    }
    e.what = h;
    e.className = 'handle ' + (h.className || '');
    e.setAttribute('aria-label', h.label);
    e.setAttribute('aria-valuetext', h.text || `${show(h.at[0], 3)}, ${show(h.at[1], 3)}`);
    e.setAttribute('aria-valuenow', String(h.at[0]));
    if (e.textContent !== (h.sign || '')) e.textContent = h.sign || '';
    this.place(e);
  }
  place(e) {
    e.style.transform = `translate(${this.px(e.what.at[0])}px, ${this.py(e.what.at[1])}px)`;
  }
  move(h, x, y) {
    const clip = (t, [a, b]) => Math.min(b, Math.max(a, t));
    h.moved(round3(clip(x, this.x)), round3(clip(y, this.y)));
    this.panel.touched();
  }
  /** Only the handles with these names stay. @param {Set<string>} names */
  keep(names) {
    for (const [id, e] of this.handles)
      if (!names.has(id)) {
        e.remove();
        this.handles.delete(id);
      }
  }
}

function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}
function dot(c, x, y, r) {
  c.beginPath();
  c.arc(x, y, r, 0, 7);
  c.fill();
}
function ticks([from, to], count) {
  const raw = (to - from) / count,
    power = 10 ** Math.floor(Math.log10(raw)),
    step = [1, 2, 5, 10].find(s => s * power >= raw) * power,
    out = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * step; i++) out.push(+(i * step).toPrecision(12));
  return out;
}

// ---- curves, by uPlot ------------------------------------------------------------------------

class Curves {
  /** @param {Panel} p @param {{label: string, height: number, x: string, y: string, logX?: boolean, logY?: boolean, series: {label: string, colour: string, dash?: number[], points?: boolean, gaps?: boolean, width?: number}[], hooks?: any}} o */
  constructor(p, o) {
    this.o = o;
    this.box = el('div', { class: 'curves waiting', role: 'img', 'aria-label': o.label });
    this.legend = el('p', { class: 'legend' });
    p.plots.append(this.box, this.legend);
    for (const s of o.series) this.legend.append(el('span', { class: s.points ? 'key points' : s.dash ? 'key dashed' : 'key', 'data-colour': s.colour }, s.label));
    this.make();
    new ResizeObserver(() => this.plot.setSize({ width: this.box.clientWidth, height: o.height })).observe(this.box);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      const data = this.plot.data;
      this.plot.destroy();
      this.make();
      this.plot.setData(data);
      p.change();
    });
  }
  make() {
    const o = this.o;
    for (const k of this.legend.children) k.style.setProperty('--key', colour(k.dataset.colour));
    const axis = label => ({ label, stroke: colour('text'), grid: { stroke: colour('grid'), width: 1 }, ticks: { stroke: colour('grid') }, labelSize: 18, font: '12px system-ui', labelFont: '12px system-ui' });
    this.plot = new uPlot(
      {
        width: this.box.clientWidth || 400,
        height: o.height,
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, distr: o.logX ? 3 : 1 },
          y: { distr: o.logY ? 3 : 1, range: o.logY ? undefined : (u, lo, hi) => [Math.min(0, lo), hi > 0 ? hi * 1.05 : 1] },
        },
        axes: [{ ...axis(o.x), size: 34 }, { ...axis(o.y), size: 48, values: (u, s) => s.map(v => (v === null ? '' : show(v, 3))) }],
        series: [{}, ...o.series.map(s => ({ stroke: colour(s.colour), width: s.points ? 0 : s.width || 2, dash: s.dash, points: { show: !!s.points, size: 7, fill: colour(s.colour) }, spanGaps: !s.points && !s.gaps, paths: s.points ? () => null : undefined }))],
        hooks: o.hooks,
      },
      [[], ...o.series.map(() => [])],
      this.box,
    );
  }
  /** In a series with `gaps` null breaks the line, undefined does not. @param {(number | null | undefined)[][]} data */
  set(data) {
    this.box.classList.toggle('waiting', !data.slice(1).some(a => a.some(v => Number.isFinite(v))));
    this.plot.setData(data.map(a => Array.from(a, v => (v === undefined || Number.isFinite(v) ? v : null))));
  }
}

// ---- start -----------------------------------------------------------------------------------

/** Takes the module with vector instructions, where this browser has them and they give the same bits, else the other. */
async function load() {
  for (const name of ['simd', 'scalar']) {
    const packed = Uint8Array.from(atob(document.getElementById(name).textContent), c => c.charCodeAt(0));
    const bytes = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
    if (name === 'simd' && !WebAssembly.validate(bytes)) continue;
    compiled = await WebAssembly.compile(bytes);
    here = finettiOf(await WebAssembly.instantiate(compiled));
    document.documentElement.dataset.module = name;
    if (roundsOnce(here)) return;
  }
}

async function start() {
  await load();
  readAddress();
  for (const [id, build] of builders) panel(id, build);
  const at = document.getElementById(current);
  if (at) at.scrollIntoView();
  addEventListener('hashchange', () => {
    readAddress();
    for (const [id, p] of panels) {
      for (const [name, c] of p.controls) c.take(given.get(id + '.' + name) ?? c.usual);
      p.change();
    }
    document.getElementById(current)?.scrollIntoView();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => panels.forEach(p => p.change()));
  document.documentElement.dataset.ready = 'yes';
}

/** Panels, in their order. @type {[string, (p: Panel) => void][]} */
const builders = [];
