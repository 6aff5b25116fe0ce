/* What is inside the axes of a figure: reading its CSV, ticks, and the curves on the canvas. It
 * knows nothing of the page but the colours in its style sheet; report.js does the rest. */
const finettiDraw = (() => {
  'use strict';
  const root = document.documentElement;
  const ink = name =>
    getComputedStyle(root)
      .getPropertyValue('--' + name)
      .trim();
  const colourOf = curve => ink(curve.colour < 0 ? 'ink' : 'c' + curve.colour);

  /* ---- CSV: the inverse of what the writer did to "<" and "\", then RFC 4180 */
  const csvText = figure =>
    figure
      .querySelector('script[type="text/csv"]')
      .textContent.replace(/\\(x3c|\\)/g, (_, c) => (c === 'x3c' ? '<' : '\\'));
  function parseCsv(text) {
    const rows = [];
    let row = [],
      at = 0;
    while (at < text.length) {
      let field = '';
      if (text[at] === '"') {
        for (at++; at < text.length; at++) {
          if (text[at] !== '"') field += text[at];
          else if (text[at + 1] === '"') {
            field += '"';
            at++;
          } else break;
        }
        at++;
      } else {
        const from = at;
        while (at < text.length && text[at] !== ',' && text[at] !== '\n') at++;
        field = text.slice(from, at);
      }
      row.push(field);
      if (text[at] !== ',') {
        rows.push(row);
        row = [];
      }
      at++;
    }
    return rows;
  }
  const numberOf = text =>
    text === '' || text === undefined || text === 'nan'
      ? NaN
      : text === 'inf'
        ? Infinity
        : text === '-inf'
          ? -Infinity
          : Number(text);
  const placeOf = (text, scale) =>
    scale.categories ? scale.categories.indexOf(text) : numberOf(text);

  /* Gives every curve of the layout its rows, in order. */
  function readFigure(figure) {
    const layout = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const rows = parseCsv(csvText(figure)),
      names = rows[0];
    const column = name => names.indexOf(name);
    let at = 1;
    for (const panel of layout.panels)
      for (const curve of panel.curves) {
        const part = rows.slice(at, (at += curve.count));
        const take = name => (column(name) < 0 ? [] : part.map(r => numberOf(r[column(name)])));
        curve.x = part.map(r => placeOf(r[2], panel.x));
        curve.y = part.map(r => placeOf(r[3], panel.y));
        for (const name of ['low', 'high', 'value', 'dx', 'dy']) curve[name] = take(name);
        curve.band = part.length > 0 && part[0][4] !== '';
        curve.show = true;
      }
    return layout;
  }

  /* ---- numbers on axes and in tips */
  const above = n => String(n).replace(/[-0-9]/g, c => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]));
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
  const say = (v, scale) => (scale.categories ? scale.categories[v] : short(v, 5));

  /* Ticks as the SVG has them: [places, texts]. */
  function linearTicks(low, high, wanted) {
    const rough = (high - low) / Math.max(wanted, 1),
      power = Math.floor(Math.log10(rough));
    const part = rough / 10 ** power,
      unit = part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10;
    const step = unit * 10 ** power,
      places = [],
      texts = [];
    const decimals = Math.max(0, -(unit === 10 ? power + 1 : power));
    for (
      let k = Math.ceil(low / step - 1e-9);
      k <= Math.floor(high / step + 1e-9) && places.length < 50;
      k++
    ) {
      places.push(k * step);
      texts.push(
        decimals > 4 || Math.max(Math.abs(low), Math.abs(high)) >= 1e6
          ? short(k * step, 6)
          : (k * step).toFixed(decimals).replace('-', '−'),
      );
    }
    return [places, texts];
  }
  function logTicks(low, high, wanted) {
    const first = Math.floor(Math.log10(low) + 1e-9),
      last = Math.ceil(Math.log10(high) - 1e-9);
    const inside = at => at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9);
    let decades = 0;
    for (let p = first; p <= last; p++) decades += inside(10 ** p);
    const every = Math.max(1, Math.floor((decades + wanted) / (wanted + 1)));
    const fine = decades < 3,
      small = last - first <= 12,
      places = [],
      texts = [];
    for (let p = first; p <= last; p++)
      for (let m = 1; m <= (small ? 9 : 1); m++) {
        const at = m * 10 ** p;
        if (!inside(at)) continue;
        places.push(at);
        const said = m === 1 ? p % every === 0 : fine && (m === 2 || m === 5);
        texts.push(
          !said
            ? ''
            : fine && p >= -3 && p <= 3
              ? String(Number(at.toPrecision(4)))
              : (m === 1 ? '' : m + '×') + '10' + above(p),
        );
      }
    if (texts.filter(t => t).length >= 2) return [places, texts];
    const [p, t] = linearTicks(low, high, wanted),
      keep = p.map(v => v > 0);
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
  const stops = [
    [68, 1, 84],
    [71, 45, 123],
    [59, 82, 139],
    [44, 114, 142],
    [33, 145, 140],
    [40, 174, 128],
    [94, 201, 98],
    [173, 220, 48],
    [253, 231, 37],
  ];
  function heat(place) {
    const at = Math.min(Math.max(place, 0), 1) * 8,
      k = Math.min(Math.floor(at), 7),
      part = at - k;
    return (
      'rgb(' + stops[k].map((c, i) => Math.round(c + part * (stops[k + 1][i] - c))).join(',') + ')'
    );
  }
  const through = (scale, v) => (scale.log ? Math.log10(v) : v);
  const share = (scale, v) =>
    (through(scale, v) - through(scale, scale.low)) /
    (through(scale, scale.high) - through(scale, scale.low));
  const shows = (scale, v) => (scale.log ? v >= 1e-300 && v <= 1e300 : Math.abs(v) <= 1e300);
  function edge(scale, middles, step, n, k) {
    const at = i => through(scale, middles[i * step]),
      back = v => (scale.log ? 10 ** v : v);
    if (n === 1) {
      const half = scale.log || scale.categories ? 0.5 : Math.max(Math.abs(at(0)) * 0.1, 0.5);
      return back(at(0) + (k ? half : -half));
    }
    const a = k === 0 ? 0 : k === n ? n - 2 : k - 1,
      left = at(a),
      right = at(a + 1);
    return back(
      k === 0
        ? left - (right - left) / 2
        : k === n
          ? right + (right - left) / 2
          : (left + right) / 2,
    );
  }

  /* ---- drawing on the canvas; g: context, X and Y: numbers to pixels, s: pixels per point */
  function shapePath(g, shape, x, y, r) {
    if (shape === 1) g.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r);
    else if (shape === 2) {
      g.moveTo(x, y - 1.15 * r);
      g.lineTo(x + r, y + 0.75 * r);
      g.lineTo(x - r, y + 0.75 * r);
      g.closePath();
    } else if (shape === 3) {
      g.moveTo(x, y - 1.25 * r);
      g.lineTo(x + 1.1 * r, y);
      g.lineTo(x, y + 1.25 * r);
      g.lineTo(x - 1.1 * r, y);
      g.closePath();
    } else if (shape === 4) {
      g.moveTo(x - r, y - r);
      g.lineTo(x + r, y + r);
      g.moveTo(x - r, y + r);
      g.lineTo(x + r, y - r);
    } else {
      g.moveTo(x + r, y);
      g.arc(x, y, r, 0, 2 * Math.PI);
    }
  }
  const dash = { dashed: [7, 4], dotted: [1.5, 3.5] };
  const isLine = curve =>
    curve.mark === 'solid' || curve.mark === 'dashed' || curve.mark === 'dotted';
  const visible = (panel, c, i) => shows(panel.x, c.x[i]) && shows(panel.y, c.y[i]);

  function drawBand(g, panel, c, X, Y) {
    const floor = v => (panel.y.log && !(v > 0) ? Y(panel.y.low) + 1e5 : Y(v));
    for (let from = 0; from < c.x.length;) {
      let to = from;
      while (to < c.x.length && visible(panel, c, to) && !isNaN(c.low[to]) && !isNaN(c.high[to]))
        to++;
      g.beginPath();
      for (let i = from; i < to; i++) g.lineTo(X(c.x[i]), floor(c.high[i]));
      for (let i = to - 1; i >= from; i--) g.lineTo(X(c.x[i]), floor(c.low[i]));
      g.closePath();
      g.globalAlpha = 0.2;
      g.fillStyle = colourOf(c);
      g.fill();
      g.globalAlpha = 1;
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
    g.strokeStyle = colourOf(c);
    g.lineWidth = (c.thin ? 1.2 : 2) * s;
    g.setLineDash((dash[c.mark] || []).map(v => v * s));
    g.stroke();
    g.setLineDash([]);
  }
  function drawPoints(g, panel, c, X, Y, s) {
    const n = c.x.length,
      r = (c.mark !== 'points' ? 3 : n > 400 ? 1.8 : n > 100 ? 2.7 : 4) * s;
    g.strokeStyle = g.fillStyle = colourOf(c);
    g.lineWidth = 1.3 * s;
    if (c.band && c.mark === 'points') {
      g.beginPath();
      for (let i = 0; i < n; i++)
        if (visible(panel, c, i) && !isNaN(c.low[i])) {
          g.moveTo(X(c.x[i]), panel.y.log && !(c.low[i] > 0) ? 1e5 : Y(c.low[i]));
          g.lineTo(X(c.x[i]), Y(c.high[i]));
        }
      g.stroke();
    }
    g.beginPath();
    for (let i = 0; i < n; i++)
      if (visible(panel, c, i)) shapePath(g, c.shape, X(c.x[i]), Y(c.y[i]), r);
    if (c.shape === 4) {
      g.lineWidth = 2 * s;
      g.stroke();
      return;
    }
    g.fill();
    if (n > 60) return; /* so many would only hide each other */
    g.strokeStyle = panel.value ? '#fff' : ink('card');
    g.lineWidth = 0.9 * s;
    g.stroke();
  }
  function drawBars(g, panel, c, X, Y) {
    for (let i = 0; i < c.x.length; i++) {
      if (isNaN(c.low[i])) continue;
      g.fillStyle = colourOf(c);
      g.strokeStyle = ink('card');
      g.beginPath();
      g.rect(
        X(c.x[i] - 0.35),
        Y(c.high[i]),
        X(c.x[i] + 0.35) - X(c.x[i] - 0.35),
        Y(c.low[i]) - Y(c.high[i]),
      );
      g.fill();
      g.stroke();
    }
  }
  function drawCells(g, panel, c, X, Y) {
    for (let i = 0; i < c.columns; i++) {
      const left = Math.floor(X(edge(panel.x, c.x, c.rows, c.columns, i)));
      const right = Math.ceil(X(edge(panel.x, c.x, c.rows, c.columns, i + 1)));
      for (let j = 0; j < c.rows; j++) {
        const v = c.value[i * c.rows + j];
        if (!shows(panel.value, v)) continue;
        const low = Math.ceil(Y(edge(panel.y, c.y, 1, c.rows, j))),
          high = Math.floor(Y(edge(panel.y, c.y, 1, c.rows, j + 1)));
        g.fillStyle = heat(share(panel.value, v));
        g.fillRect(left, high, right - left, low - high);
      }
    }
  }
  function drawArrows(g, panel, c, X, Y, s, box) {
    const reach = (0.42 * Math.min(box.width, box.height)) / Math.sqrt(c.x.length + 1),
      head = 0.35;
    g.beginPath();
    for (let i = 0; i < c.x.length; i++) {
      if (!(Math.hypot(c.dx[i], c.dy[i]) > 0)) continue;
      const x = X(c.x[i]),
        y = Y(c.y[i]),
        u = c.dx[i] * reach,
        v = -c.dy[i] * reach;
      g.moveTo(x - u, y - v);
      g.lineTo(x + u, y + v);
      g.moveTo(x + u - head * (2 * u - v), y + v - head * (2 * v + u));
      g.lineTo(x + u, y + v);
      g.lineTo(x + u - head * (2 * u + v), y + v - head * (2 * v - u));
    }
    g.strokeStyle = 'rgba(255,255,255,.75)';
    g.lineWidth = 1 * s;
    g.stroke();
  }
  function drawReference(g, panel, r, X, Y, s, box) {
    g.beginPath();
    if (r.where === 'diagonal') {
      const low = Math.max(panel.x.low, panel.y.low),
        high = Math.min(panel.x.high, panel.y.high);
      g.moveTo(X(low), Y(low));
      g.lineTo(X(high), Y(high));
    } else if (r.where === 'y') {
      g.moveTo(box.left, Y(r.at));
      g.lineTo(box.left + box.width, Y(r.at));
    } else {
      g.moveTo(X(r.at), box.top);
      g.lineTo(X(r.at), box.top + box.height);
    }
    g.strokeStyle = ink('soft');
    g.lineWidth = 1 * s;
    g.setLineDash([3 * s, 3 * s]);
    g.stroke();
    g.setLineDash([]);
  }
  function drawReferenceLabel(g, panel, r, X, Y, s, box) {
    if (!r.label) return;
    g.font = 11 * s + 'px ' + ink('sans');
    g.fillStyle = ink('soft');
    g.strokeStyle = ink('card');
    g.lineWidth = 3 * s;
    g.lineJoin = 'round';
    let x = box.left + 0.84 * box.width,
      y = box.top + 0.16 * box.height - 7 * s;
    g.textAlign = 'right';
    if (r.where === 'y') x = box.left + box.width - 6 * s;
    if (r.where === 'y') y = Y(r.at) - box.top > 18 * s ? Y(r.at) - 5 * s : Y(r.at) + 13 * s;
    if (r.where === 'x') {
      y = box.top + 12 * s;
      const flip = X(r.at) > box.left + 0.8 * box.width;
      g.textAlign = flip ? 'right' : 'left';
      x = X(r.at) + (flip ? -5 : 5) * s;
    }
    g.strokeText(r.label, x, y);
    g.fillText(r.label, x, y);
  }

  function drawPanel(u, panel) {
    const g = u.ctx,
      s = uPlot.pxRatio,
      box = u.bbox;
    const X = v => u.valToPos(v, 'x', true),
      Y = v => u.valToPos(v, 'y', true);
    g.save();
    g.beginPath();
    g.rect(box.left, box.top, box.width, box.height);
    g.clip();
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
    const x = box.left + box.width + 12 * s,
      n = 64;
    g.save();
    for (let i = 0; i < n; i++) {
      g.fillStyle = heat((i + 0.5) / n);
      g.fillRect(x, box.top + box.height * (1 - (i + 1) / n), 11 * s, box.height / n + 1);
    }
    g.font = 11 * s + 'px ' + ink('sans');
    g.fillStyle = ink('soft');
    g.textAlign = 'left';
    g.textBaseline = 'middle';
    const [places, texts] = ticks(
      panel.value,
      panel.value.low,
      panel.value.high,
      box.height / s,
      40,
    );
    places.forEach((v, i) =>
      g.fillText(texts[i], x + 16 * s, box.top + box.height * (1 - share(panel.value, v))),
    );
    g.textBaseline = 'bottom';
    g.textAlign = 'right';
    g.fillText(panel.value.label, u.ctx.canvas.width - 2 * s, box.top - 5 * s);
    g.restore();
  }

  return { ink, csvText, readFigure, short, say, ticks, dash, isLine, visible, drawPanel };
})();
