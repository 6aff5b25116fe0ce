/* The report's script: figures are drawn by uPlot from the CSV that stands beside them, the very
 * text that the download hands out. uPlot brings axes, cursor, selection and resizing; the curves
 * are drawn here, because a figure may hold bands, paths, cells and arrows that are no function of
 * x. Colours are read from the style sheet, so that light and dark need nothing more. */
'use strict';
(() => {
  const root = document.documentElement;
  root.classList.add('script');
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  /* ---- theme: that of the system until the button is used */
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try { chosen = localStorage.getItem('finetti-theme'); } catch (e) { /* a file may have none */ }
  const plots = [];
  const setTheme = () => {
    root.dataset.theme = chosen || (dark.matches ? 'dark' : 'light');
    for (const plot of plots) plot.redraw(false, true);
  };
  setTheme();
  dark.addEventListener('change', setTheme);
  document.getElementById('theme').addEventListener('click', () => {
    chosen = root.dataset.theme === 'dark' ? 'light' : 'dark';
    try { localStorage.setItem('finetti-theme', chosen); } catch (e) { /* not kept */ }
    setTheme();
  });
  const ink = name => getComputedStyle(root).getPropertyValue('--' + name).trim();
  const colourOf = curve => ink(curve.colour < 0 ? 'ink' : 'c' + curve.colour);

  /* ---- the table of claims */
  const filters = document.querySelector('.filters');
  if (filters) {
    const rows = all('.claims tbody tr');
    const buttons = all('button', filters), select = filters.querySelector('select');
    select.append(new Option('all', ''));
    for (const name of new Set(rows.map(row => row.dataset.study))) select.append(new Option(name, name));
    let verdict = '';
    const apply = () => {
      let shown = 0;
      for (const row of rows) {
        row.hidden = (verdict && row.dataset.verdict !== verdict) ||
                     (select.value && row.dataset.study !== select.value);
        shown += !row.hidden;
      }
      for (const button of buttons) button.setAttribute('aria-pressed', button.dataset.verdict === verdict);
      document.querySelector('#claims .none').hidden = shown > 0;
    };
    for (const button of buttons) button.addEventListener('click', () => { verdict = button.dataset.verdict; apply(); });
    select.addEventListener('change', apply);
  }

  /* ---- CSV: the inverse of what the writer did to "<" and "\", then RFC 4180 */
  const csvText = figure => figure.querySelector('script[type="text/csv"]').textContent
    .replace(/\\(x3c|\\)/g, (_, c) => c === 'x3c' ? '<' : '\\');
  function parseCsv(text) {
    const rows = [];
    let row = [], at = 0;
    while (at < text.length) {
      let field = '';
      if (text[at] === '"') {
        for (at++; at < text.length; at++) {
          if (text[at] !== '"') field += text[at];
          else if (text[at + 1] === '"') { field += '"'; at++; }
          else break;
        }
        at++;
      } else {
        const from = at;
        while (at < text.length && text[at] !== ',' && text[at] !== '\n') at++;
        field = text.slice(from, at);
      }
      row.push(field);
      if (text[at] !== ',') { rows.push(row); row = []; }
      at++;
    }
    return rows;
  }
  const numberOf = text => text === '' || text === undefined || text === 'nan' ? NaN
    : text === 'inf' ? Infinity : text === '-inf' ? -Infinity : Number(text);
  const placeOf = (text, scale) => scale.categories ? scale.categories.indexOf(text) : numberOf(text);

  /* Gives every curve of the layout its rows, in order. */
  function readFigure(figure) {
    const layout = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const rows = parseCsv(csvText(figure)), names = rows[0];
    const column = name => names.indexOf(name);
    let at = 1;
    for (const panel of layout.panels)
      for (const curve of panel.curves) {
        const part = rows.slice(at, at += curve.count);
        const take = name => column(name) < 0 ? [] : part.map(r => numberOf(r[column(name)]));
        curve.x = part.map(r => placeOf(r[2], panel.x));
        curve.y = part.map(r => placeOf(r[3], panel.y));
        for (const name of ['low', 'high', 'value', 'dx', 'dy']) curve[name] = take(name);
        curve.band = part.length > 0 && part[0][4] !== '';
        curve.show = true;
      }
    return layout;
  }

  /* ---- numbers on axes and in tips */
  const above = n => String(n).replace(/[-0-9]/g, c => c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]);
  function short(v, digits) {
    if (!isFinite(v)) return String(v);
    if (v === 0) return '0';
    const power = Math.floor(Math.log10(Math.abs(v)));
    if (power < -4 || power > 5) {
      const [m, e] = v.toExponential(digits - 1).split('e');
      const front = String(Number(m));
      return (front === '1' ? '' : front.replace('-', '−') + '×') + '10' + above(Number(e));
    }
    return String(Number(v.toPrecision(digits))).replace('-', '−');
  }
  const say = (v, scale) => scale.categories ? scale.categories[v] : short(v, 5);

  /* Ticks as the SVG has them: [places, texts]. */
  function linearTicks(low, high, wanted) {
    const rough = (high - low) / Math.max(wanted, 1), power = Math.floor(Math.log10(rough));
    const part = rough / 10 ** power, unit = part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10;
    const step = unit * 10 ** power, places = [], texts = [];
    const decimals = Math.max(0, -(unit === 10 ? power + 1 : power));
    for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9) && places.length < 50; k++) {
      places.push(k * step);
      texts.push(decimals > 4 || Math.max(Math.abs(low), Math.abs(high)) >= 1e6 ? short(k * step, 6)
        : (k * step).toFixed(decimals).replace('-', '−'));
    }
    return [places, texts];
  }
  function logTicks(low, high, wanted) {
    const first = Math.floor(Math.log10(low) + 1e-9), last = Math.ceil(Math.log10(high) - 1e-9);
    const inside = at => at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9);
    let decades = 0;
    for (let p = first; p <= last; p++) decades += inside(10 ** p);
    const every = Math.max(1, Math.floor((decades + wanted) / (wanted + 1)));
    const fine = decades < 3, small = last - first <= 12, places = [], texts = [];
    for (let p = first; p <= last; p++)
      for (let m = 1; m <= (small ? 9 : 1); m++) {
        const at = m * 10 ** p;
        if (!inside(at)) continue;
        places.push(at);
        const said = m === 1 ? p % every === 0 : fine && (m === 2 || m === 5);
        texts.push(!said ? '' : fine && p >= -3 && p <= 3 ? String(Number(at.toPrecision(4)))
          : (m === 1 ? '' : m + '×') + '10' + above(p));
      }
    if (texts.filter(t => t).length >= 2) return [places, texts];
    const [p, t] = linearTicks(low, high, wanted), keep = p.map(v => v > 0);
    return [p.filter((_, i) => keep[i]), t.filter((_, i) => keep[i])];
  }
  function ticks(scale, low, high, pixels, room) {
    if (scale.categories) {
      const places = scale.categories.map((_, i) => i).filter(i => i >= low && i <= high);
      return [places, places.map(i => scale.categories[i])];
    }
    const wanted = Math.max(2, Math.floor(pixels / room));
    return scale.log ? logTicks(low, high, wanted) : linearTicks(low, high, wanted);
  }

  /* ---- colours of cells: the palette of the SVG */
  const stops = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128],
    [94, 201, 98], [173, 220, 48], [253, 231, 37]];
  function heat(place) {
    const at = Math.min(Math.max(place, 0), 1) * 8, k = Math.min(Math.floor(at), 7), part = at - k;
    return 'rgb(' + stops[k].map((c, i) => Math.round(c + part * (stops[k + 1][i] - c))).join(',') + ')';
  }
  const through = (scale, v) => scale.log ? Math.log10(v) : v;
  const share = (scale, v) => (through(scale, v) - through(scale, scale.low)) /
    (through(scale, scale.high) - through(scale, scale.low));
  const shows = (scale, v) => scale.log ? v >= 1e-300 && v <= 1e300 : Math.abs(v) <= 1e300;
  function edge(scale, middles, step, n, k) {
    const at = i => through(scale, middles[i * step]), back = v => scale.log ? 10 ** v : v;
    if (n === 1) {
      const half = scale.log || scale.categories ? 0.5 : Math.max(Math.abs(at(0)) * 0.1, 0.5);
      return back(at(0) + (k ? half : -half));
    }
    const a = k === 0 ? 0 : k === n ? n - 2 : k - 1, left = at(a), right = at(a + 1);
    return back(k === 0 ? left - (right - left) / 2 : k === n ? right + (right - left) / 2 : (left + right) / 2);
  }

  /* ---- drawing on the canvas; g: context, X and Y: numbers to pixels, s: pixels per point */
  function shapePath(g, shape, x, y, r) {
    if (shape === 1) g.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r);
    else if (shape === 2) { g.moveTo(x, y - 1.15 * r); g.lineTo(x + r, y + 0.75 * r); g.lineTo(x - r, y + 0.75 * r); g.closePath(); }
    else if (shape === 3) { g.moveTo(x, y - 1.25 * r); g.lineTo(x + 1.1 * r, y); g.lineTo(x, y + 1.25 * r); g.lineTo(x - 1.1 * r, y); g.closePath(); }
    else if (shape === 4) { g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x - r, y + r); g.lineTo(x + r, y - r); }
    else { g.moveTo(x + r, y); g.arc(x, y, r, 0, 2 * Math.PI); }
  }
  const dash = { dashed: [7, 4], dotted: [1.5, 3.5] };
  const isLine = curve => curve.mark === 'solid' || curve.mark === 'dashed' || curve.mark === 'dotted';
  const visible = (panel, c, i) => shows(panel.x, c.x[i]) && shows(panel.y, c.y[i]);

  function drawBand(g, panel, c, X, Y) {
    const floor = v => panel.y.log && !(v > 0) ? Y(panel.y.low) + 1e5 : Y(v);
    for (let from = 0; from < c.x.length;) {
      let to = from;
      while (to < c.x.length && visible(panel, c, to) && !isNaN(c.low[to]) && !isNaN(c.high[to])) to++;
      g.beginPath();
      for (let i = from; i < to; i++) g.lineTo(X(c.x[i]), floor(c.high[i]));
      for (let i = to - 1; i >= from; i--) g.lineTo(X(c.x[i]), floor(c.low[i]));
      g.closePath();
      g.globalAlpha = 0.2; g.fillStyle = colourOf(c); g.fill(); g.globalAlpha = 1;
      from = Math.max(to, from + 1);
    }
  }
  function drawLine(g, panel, c, X, Y, s) {
    let pen = false;
    g.beginPath();
    for (let i = 0; i < c.x.length; i++) {
      const seen = visible(panel, c, i);
      if (seen && pen) g.lineTo(X(c.x[i]), Y(c.y[i]));
      else if (seen) g.moveTo(X(c.x[i]), Y(c.y[i]));
      pen = seen;
    }
    g.strokeStyle = colourOf(c); g.lineWidth = (c.thin ? 1.2 : 2) * s;
    g.setLineDash((dash[c.mark] || []).map(v => v * s)); g.stroke(); g.setLineDash([]);
  }
  function drawPoints(g, panel, c, X, Y, s) {
    const n = c.x.length, r = (c.mark !== 'points' ? 3 : n > 400 ? 1.8 : n > 100 ? 2.7 : 4) * s;
    g.strokeStyle = g.fillStyle = colourOf(c); g.lineWidth = 1.3 * s;
    if (c.band && c.mark === 'points') {
      g.beginPath();
      for (let i = 0; i < n; i++)
        if (visible(panel, c, i) && !isNaN(c.low[i])) {
          g.moveTo(X(c.x[i]), panel.y.log && !(c.low[i] > 0) ? 1e5 : Y(c.low[i])); g.lineTo(X(c.x[i]), Y(c.high[i]));
        }
      g.stroke();
    }
    g.beginPath();
    for (let i = 0; i < n; i++) if (visible(panel, c, i)) shapePath(g, c.shape, X(c.x[i]), Y(c.y[i]), r);
    if (c.shape === 4) { g.lineWidth = 2 * s; g.stroke(); return; }
    g.fill();
    if (n > 60) return; /* so many would only hide each other */
    g.strokeStyle = panel.value ? '#fff' : ink('card'); g.lineWidth = 0.9 * s; g.stroke();
  }
  function drawBars(g, panel, c, X, Y) {
    for (let i = 0; i < c.x.length; i++) {
      if (isNaN(c.low[i])) continue;
      g.fillStyle = colourOf(c); g.strokeStyle = ink('card');
      g.beginPath();
      g.rect(X(c.x[i] - 0.35), Y(c.high[i]), X(c.x[i] + 0.35) - X(c.x[i] - 0.35), Y(c.low[i]) - Y(c.high[i]));
      g.fill(); g.stroke();
    }
  }
  function drawCells(g, panel, c, X, Y) {
    for (let i = 0; i < c.columns; i++) {
      const left = Math.floor(X(edge(panel.x, c.x, c.rows, c.columns, i)));
      const right = Math.ceil(X(edge(panel.x, c.x, c.rows, c.columns, i + 1)));
      for (let j = 0; j < c.rows; j++) {
        const v = c.value[i * c.rows + j];
        if (!shows(panel.value, v)) continue;
        const low = Math.ceil(Y(edge(panel.y, c.y, 1, c.rows, j))), high = Math.floor(Y(edge(panel.y, c.y, 1, c.rows, j + 1)));
        g.fillStyle = heat(share(panel.value, v));
        g.fillRect(left, high, right - left, low - high);
      }
    }
  }
  function drawArrows(g, panel, c, X, Y, s, box) {
    const reach = 0.42 * Math.min(box.width, box.height) / Math.sqrt(c.x.length + 1), head = 0.35;
    g.beginPath();
    for (let i = 0; i < c.x.length; i++) {
      if (!(Math.hypot(c.dx[i], c.dy[i]) > 0)) continue;
      const x = X(c.x[i]), y = Y(c.y[i]), u = c.dx[i] * reach, v = -c.dy[i] * reach;
      g.moveTo(x - u, y - v); g.lineTo(x + u, y + v);
      g.moveTo(x + u - head * (2 * u - v), y + v - head * (2 * v + u)); g.lineTo(x + u, y + v);
      g.lineTo(x + u - head * (2 * u + v), y + v - head * (2 * v - u));
    }
    g.strokeStyle = 'rgba(255,255,255,.75)'; g.lineWidth = 1 * s; g.stroke();
  }
  function drawReference(g, panel, r, X, Y, s, box) {
    g.beginPath();
    if (r.where === 'diagonal') {
      const low = Math.max(panel.x.low, panel.y.low), high = Math.min(panel.x.high, panel.y.high);
      g.moveTo(X(low), Y(low)); g.lineTo(X(high), Y(high));
    } else if (r.where === 'y') { g.moveTo(box.left, Y(r.at)); g.lineTo(box.left + box.width, Y(r.at)); }
    else { g.moveTo(X(r.at), box.top); g.lineTo(X(r.at), box.top + box.height); }
    g.strokeStyle = ink('soft'); g.lineWidth = 1 * s; g.setLineDash([3 * s, 3 * s]); g.stroke(); g.setLineDash([]);
  }
  function drawReferenceLabel(g, panel, r, X, Y, s, box) {
    if (!r.label) return;
    g.font = 11 * s + 'px ' + ink('sans'); g.fillStyle = ink('soft');
    g.strokeStyle = ink('card'); g.lineWidth = 3 * s; g.lineJoin = 'round';
    let x = box.left + 0.84 * box.width, y = box.top + 0.16 * box.height - 7 * s;
    g.textAlign = 'right';
    if (r.where === 'y') x = box.left + box.width - 6 * s;
    if (r.where === 'y') y = Y(r.at) - box.top > 18 * s ? Y(r.at) - 5 * s : Y(r.at) + 13 * s;
    if (r.where === 'x') {
      y = box.top + 12 * s;
      const flip = X(r.at) > box.left + 0.8 * box.width;
      g.textAlign = flip ? 'right' : 'left';
      x = X(r.at) + (flip ? -5 : 5) * s;
    }
    g.strokeText(r.label, x, y); g.fillText(r.label, x, y);
  }

  function drawPanel(u, panel) {
    const g = u.ctx, s = uPlot.pxRatio, box = u.bbox;
    const X = v => u.valToPos(v, 'x', true), Y = v => u.valToPos(v, 'y', true);
    g.save();
    g.beginPath(); g.rect(box.left, box.top, box.width, box.height); g.clip();
    g.lineJoin = 'round';
    const shown = panel.curves.filter(c => c.show);
    for (const c of shown) if (c.mark === 'cells') drawCells(g, panel, c, X, Y);
    for (const c of shown) if (c.band && isLine(c)) drawBand(g, panel, c, X, Y);
    for (const r of panel.references) drawReference(g, panel, r, X, Y, s, box);
    for (const c of shown) {
      if (c.mark === 'bars') drawBars(g, panel, c, X, Y);
      if (c.mark === 'arrows') drawArrows(g, panel, c, X, Y, s, box);
      if (isLine(c)) drawLine(g, panel, c, X, Y, s);
      if (c.shape >= 0) drawPoints(g, panel, c, X, Y, s);
    }
    for (const r of panel.references) drawReferenceLabel(g, panel, r, X, Y, s, box);
    g.restore();
    if (panel.value) drawColourBar(u, panel, g, s, box);
  }
  function drawColourBar(u, panel, g, s, box) {
    const x = box.left + box.width + 12 * s, n = 64;
    g.save();
    for (let i = 0; i < n; i++) {
      g.fillStyle = heat((i + 0.5) / n);
      g.fillRect(x, box.top + box.height * (1 - (i + 1) / n), 11 * s, box.height / n + 1);
    }
    g.font = 11 * s + 'px ' + ink('sans'); g.fillStyle = ink('soft'); g.textAlign = 'left'; g.textBaseline = 'middle';
    const [places, texts] = ticks(panel.value, panel.value.low, panel.value.high, box.height / s, 40);
    places.forEach((v, i) => g.fillText(texts[i], x + 16 * s, box.top + box.height * (1 - share(panel.value, v))));
    g.textBaseline = 'bottom'; g.textAlign = 'right';
    g.fillText(panel.value.label, u.ctx.canvas.width - 2 * s, box.top - 5 * s);
    g.restore();
  }

  /* ---- the nearest point to the cursor, and what it says */
  function nearest(u, panel, left, top) {
    let best = null, least = 30 * 30;
    for (const c of panel.curves) {
      if (!c.show || c.mark === 'arrows') continue;
      for (let i = 0; i < c.x.length; i++) {
        if (!visible(panel, c, i)) continue;
        const x = u.valToPos(c.x[i], 'x'), y = u.valToPos(c.mark === 'bars' ? (c.low[i] + c.high[i]) / 2 : c.y[i], 'y');
        const d = (x - left) ** 2 + (y - top) ** 2 + (c.mark === 'cells' ? 40 : 0);
        if (d < least) { least = d; best = { c, i, x, y }; }
      }
    }
    return best;
  }
  function tipFor(panel, { c, i }) {
    const lines = [c.label, (panel.x.label || 'x') + ' = ' + say(c.x[i], panel.x)];
    lines.push((c.mark === 'bars' || !panel.y.label || panel.y.label.length > 24 ? 'y' : panel.y.label) + ' = ' + say(c.y[i], panel.y));
    if (c.mark === 'cells') lines.push((panel.value.label || 'value') + ' = ' + short(c.value[i], 5));
    else if (c.band && c.mark !== 'bars') lines.push('[' + short(c.low[i], 4) + ', ' + short(c.high[i], 4) + ']');
    return lines;
  }

  /* ---- legend */
  const svgNode = (name, attributes) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  function sample(curve) {
    const colour = curve.colour < 0 ? 'var(--ink)' : 'var(--c' + curve.colour + ')';
    const svg = svgNode('svg', { width: 26, height: 14, 'aria-hidden': 'true' });
    if (curve.mark === 'bars') svg.append(svgNode('rect', { x: 7, y: 1, width: 12, height: 12, fill: colour }));
    if (curve.band && isLine(curve)) svg.append(svgNode('rect', { width: 26, height: 14, fill: colour, opacity: curve.inner ? 0.45 : 0.2 }));
    if (isLine(curve))
      svg.append(svgNode('path', { d: 'M0 7H26', stroke: colour, 'stroke-width': curve.thin ? 1.2 : 2, 'stroke-dasharray': (dash[curve.mark] || []).join(' ') }));
    const shapes = ['M13 7m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0', 'M9.5 3.5h7v7h-7z', 'M13 2.5l4 7.5h-8z', 'M13 2l4.5 5-4.5 5-4.5-5z', 'M9.5 3.5l7 7M9.5 10.5l7-7'];
    if (curve.shape >= 0)
      svg.append(svgNode('path', { d: shapes[curve.shape], fill: curve.shape === 4 ? 'none' : colour, stroke: curve.shape === 4 ? colour : 'none', 'stroke-width': 2 }));
    return svg;
  }
  function legendFor(panel, plot) {
    const legend = make('div', { class: 'legend', role: 'group', 'aria-label': 'Legend: show or hide' });
    for (const curve of panel.curves) {
      if (curve.quiet || !curve.label) continue;
      const button = make('button', { type: 'button', 'aria-pressed': 'true' }, sample(curve), curve.label);
      button.addEventListener('click', () => {
        curve.show = !curve.show;
        for (const other of panel.curves) /* those without a button go with the one they belong to */
          if (other.quiet && other.label === curve.label) other.show = curve.show;
        button.setAttribute('aria-pressed', curve.show);
        plot.redraw(false, false);
      });
      legend.append(button);
    }
    return legend.childElementCount ? legend : null;
  }

  /* ---- one panel */
  function axisFor(panel, name, room) {
    const scale = panel[name];
    let texts = [];
    const soft = () => ink('soft'), grid = () => ink('grid');
    return {
      scale: name, label: scale.label, stroke: soft, labelSize: scale.label ? 22 : 0, labelGap: 2,
      font: '12px ' + ink('sans'), labelFont: '13px ' + ink('sans'), gap: 5,
      ticks: { size: 5, stroke: soft, width: 1 }, border: { show: true, stroke: soft, width: 1 },
      grid: { show: !panel.value && !scale.categories, stroke: grid, width: 1, filter: (u, places) => places.map((v, i) => texts[i] ? v : null) },
      splits: (u, _, low, high) => {
        const [places, t] = ticks(scale, low, high, (name === 'x' ? u.bbox.width : u.bbox.height) / uPlot.pxRatio, room);
        texts = t;
        return places;
      },
      filter: (u, places) => places.map((v, i) => texts[i] ? v : null),
      values: (u, places) => places.map((v, i) => v === null ? '' : texts[i]),
      size: (u, values) => name === 'x' ? 30
        : Math.min(110, 16 + Math.max(10, ...(values || []).map(v => 7 * String(v).length))),
    };
  }
  const heightFor = (panel, width) => Math.round(panel.square || panel.value ? Math.min(440, Math.max(280, width * 0.72)) : Math.min(380, Math.max(250, width * 0.5)));

  function drawFigurePanel(panel, holder, title) {
    const canvas = make('div', { class: panel.square || panel.value ? 'canvas square' : 'canvas', role: 'img', 'aria-label': title });
    holder.append(canvas);
    const view = { x: [panel.x.low, panel.x.high], y: [panel.y.low, panel.y.high] };
    const dot = make('div', { class: 'dot' }), tip = make('div', { class: 'tip' });
    dot.hidden = tip.hidden = true;
    const width = () => Math.max(200, canvas.clientWidth);
    const show = u => u.batch(() => {
      u.setScale('x', { min: view.x[0], max: view.x[1] });
      u.setScale('y', { min: view.y[0], max: view.y[1] });
    });
    const scale = name => ({ time: false, auto: false, distr: panel[name].log ? 3 : 1, range: () => view[name] });
    const plot = new uPlot({
      width: width(), height: heightFor(panel, width()), legend: { show: false }, pxAlign: 0,
      padding: [panel.value ? 22 : 10, panel.value ? 76 : 14, 0, 0],
      scales: { x: scale('x'), y: scale('y') },
      axes: [axisFor(panel, 'x', 78), axisFor(panel, 'y', 44)],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      cursor: {
        drag: { x: true, y: true, uni: 24, dist: 6, setScale: false }, points: { show: false },
        bind: { dblclick: u => () => { reset(u); return null; } },
      },
      hooks: {
        draw: [u => drawPanel(u, panel)],
        setSelect: [u => {
          const { left, top, width: w, height: h } = u.select;
          if (w < 6 && h < 6) return;
          const across = w >= 6, up = h >= 6;
          if (across) view.x = [u.posToVal(left, 'x'), u.posToVal(left + w, 'x')];
          if (up) view.y = [u.posToVal(top + h, 'y'), u.posToVal(top, 'y')];
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          show(u);
        }],
        setCursor: [u => {
          const { left, top } = u.cursor, found = left >= 0 ? nearest(u, panel, left, top) : null;
          dot.hidden = tip.hidden = !found;
          if (!found) return;
          dot.style.left = found.x + 'px'; dot.style.top = found.y + 'px';
          tip.replaceChildren(...tipFor(panel, found).flatMap((line, i) => i ? [make('br'), line] : [make('b', {}, line)]));
          const right = found.x > u.over.clientWidth / 2;
          tip.style.left = right ? '' : found.x + 12 + 'px';
          tip.style.right = right ? u.over.clientWidth - found.x + 12 + 'px' : '';
          tip.style.top = Math.max(0, found.y - 20) + 'px';
        }],
      },
    }, [[panel.x.low, panel.x.high], [null, null]], canvas);
    function reset(u) {
      view.x = [panel.x.low, panel.x.high];
      view.y = [panel.y.low, panel.y.high];
      show(u);
    }
    plot.over.append(dot, tip);
    show(plot);
    plots.push(plot);
    plot.finetti = { view, reset: () => reset(plot), panel };
    new ResizeObserver(() => {
      if (canvas.clientWidth > 0 && Math.abs(width() - plot.width) > 1)
        plot.setSize({ width: width(), height: heightFor(panel, width()) });
    }).observe(canvas);
    const legend = legendFor(panel, plot);
    if (legend) holder.append(legend);
    return plot;
  }

  /* ---- figures */
  function save(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = make('a', { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
  function buildFigure(figure) {
    const title = figure.querySelector('h4').textContent, name = figure.dataset.name;
    const still = figure.querySelector('.static');
    const live = make('div', { class: 'live' });
    const layout = readFigure(figure), own = [];
    still.after(live);
    for (const panel of layout.panels) {
      const holder = make('div', { class: 'panel' });
      if (panel.title) holder.append(make('h5', {}, panel.title));
      live.append(holder);
      if (panel.curves.length) own.push(drawFigurePanel(panel, holder, panel.title ? title + ': ' + panel.title : title));
      else holder.append(make('p', { class: 'note' }, 'There is nothing to draw yet.'));
    }
    const button = (text, run) => {
      const node = make('button', { type: 'button' }, text);
      node.addEventListener('click', run);
      return node;
    };
    const actions = make('div', { class: 'actions' },
      button('Download CSV', () => save(name + '.csv', 'text/csv;charset=utf-8', csvText(figure))),
      button('Download SVG', () => save(name + '.svg', 'image/svg+xml', new XMLSerializer().serializeToString(still.querySelector('svg')))),
      button('Reset zoom', () => own.forEach(plot => plot.finetti.reset())),
      make('span', {}, 'Drag to zoom, double click to reset'));
    figure.append(actions);
    figure.classList.add('drawn');
    figure.finetti = own;
  }
  /* A figure is drawn when it comes near the window, so that a long report opens at once. */
  const watcher = new IntersectionObserver(entries => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: '800px' });
  function draw(figure) {
    watcher.unobserve(figure);
    if (figure.finetti) return;
    figure.finetti = [];
    buildFigure(figure);
  }
  const drawable = all('figure').filter(figure => figure.querySelector('script[type="text/csv"]'));
  for (const figure of drawable) watcher.observe(figure);
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) {
      /* All figures up to it, because one that is drawn later would push it out of sight. */
      for (const figure of drawable)
        if (figure.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING || figure === target) draw(figure);
      if (target.tagName === 'FIGURE') target.focus({ preventScroll: true });
      target.scrollIntoView();
    }
  };
  window.addEventListener('hashchange', follow);
  follow();
})();
