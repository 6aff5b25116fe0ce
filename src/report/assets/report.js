/* The report's script: figures are drawn by uPlot from the CSV that stands beside them, the very
 * text that the download hands out. uPlot brings axes, cursor, selection and resizing; the curves
 * are drawn here, because a figure may hold bands, paths, cells and arrows that are no function of
 * x. Colours are read from the style sheet, so that light and dark need nothing more.
 *
 * uPlot, which stands above in the page, comes under this licence:
 *
 * The MIT License (MIT)
 *
 * Copyright (c) 2022 Leon Sorokin
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy
 * of this software and associated documentation files (the "Software"), to deal
 * in the Software without restriction, including without limitation the rights
 * to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
 * copies of the Software, and to permit persons to whom the Software is
 * furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in
 * all copies or substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 * IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
 * FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
 * AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
 * LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
 * THE SOFTWARE.
 */
(() => {
  'use strict';
  const { ink, csvText, readFigure, short, say, ticks, dash, isLine, visible, drawPanel } =
    finettiDraw;
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
  try {
    chosen = localStorage.getItem('finetti-theme');
  } catch (e) {
    /* a file may have none */
  }
  const plots = [];
  const setTheme = () => {
    root.dataset.theme = chosen || (dark.matches ? 'dark' : 'light');
    for (const plot of plots) plot.redraw(false, true);
  };
  setTheme();
  dark.addEventListener('change', setTheme);
  document.getElementById('theme').addEventListener('click', () => {
    chosen = root.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem('finetti-theme', chosen);
    } catch (e) {
      /* not kept */
    }
    setTheme();
  });

  /* ---- the table of claims */
  const filters = document.querySelector('.filters');
  if (filters) {
    const rows = all('.claims tbody tr');
    const buttons = all('button', filters),
      select = filters.querySelector('select');
    select.append(new Option('all', ''));
    for (const name of new Set(rows.map(row => row.dataset.study)))
      select.append(new Option(name, name));
    let verdict = '';
    const apply = () => {
      let shown = 0;
      for (const row of rows) {
        row.hidden =
          (verdict && row.dataset.verdict !== verdict) ||
          (select.value && row.dataset.study !== select.value);
        shown += !row.hidden;
      }
      for (const button of buttons)
        button.setAttribute('aria-pressed', button.dataset.verdict === verdict);
      document.querySelector('#claims .none').hidden = shown > 0;
      const checks = document.querySelector('#claims .checks');
      if (checks && (verdict || select.value)) checks.open = all('tbody tr', checks).some(row => !row.hidden);
    };
    for (const button of buttons)
      button.addEventListener('click', () => {
        verdict = button.dataset.verdict;
        apply();
      });
    select.addEventListener('change', apply);
  }

  /* ---- the nearest point to the cursor, and what it says */
  function nearest(u, panel, left, top) {
    let best = null,
      least = 30 * 30;
    for (const c of panel.curves) {
      if (!c.show || c.mark === 'arrows') continue;
      for (let i = 0; i < c.x.length; i++) {
        if (!visible(panel, c, i)) continue;
        const x = u.valToPos(c.x[i], 'x'),
          y = u.valToPos(c.mark === 'bars' ? (c.low[i] + c.high[i]) / 2 : c.y[i], 'y');
        const d = (x - left) ** 2 + (y - top) ** 2 + (c.mark === 'cells' ? 40 : 0);
        if (d < least) {
          least = d;
          best = { c, i, x, y };
        }
      }
    }
    return best;
  }
  function tipFor(panel, { c, i }) {
    const lines = [c.label, (panel.x.label || 'x') + ' = ' + say(c.x[i], panel.x)];
    lines.push(
      (c.mark === 'bars' || !panel.y.label || panel.y.label.length > 24 ? 'y' : panel.y.label) +
        ' = ' +
        say(c.y[i], panel.y),
    );
    if (c.mark === 'cells')
      lines.push((panel.value.label || 'value') + ' = ' + short(c.value[i], 5));
    else if (c.band && c.mark !== 'bars')
      lines.push('[' + short(c.low[i], 4) + ', ' + short(c.high[i], 4) + ']');
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
    if (curve.mark === 'bars')
      svg.append(svgNode('rect', { x: 7, y: 1, width: 12, height: 12, fill: colour }));
    if (curve.band && isLine(curve))
      svg.append(
        svgNode('rect', { width: 26, height: 14, fill: colour, opacity: curve.inner ? 0.45 : 0.2 }),
      );
    if (isLine(curve))
      svg.append(
        svgNode('path', {
          d: 'M0 7H26',
          stroke: colour,
          'stroke-width': curve.thin ? 1.2 : 2,
          'stroke-dasharray': (dash[curve.mark] || []).join(' '),
        }),
      );
    const shapes = [
      'M13 7m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0',
      'M9.5 3.5h7v7h-7z',
      'M13 2.5l4 7.5h-8z',
      'M13 2l4.5 5-4.5 5-4.5-5z',
      'M9.5 3.5l7 7M9.5 10.5l7-7',
    ];
    if (curve.shape >= 0)
      svg.append(
        svgNode('path', {
          d: shapes[curve.shape],
          fill: curve.shape === 4 ? 'none' : colour,
          stroke: curve.shape === 4 ? colour : 'none',
          'stroke-width': 2,
        }),
      );
    return svg;
  }
  function legendFor(panel, plot) {
    const legend = make('div', {
      class: 'legend',
      role: 'group',
      'aria-label': 'Legend: show or hide',
    });
    for (const curve of panel.curves) {
      if (curve.quiet || !curve.label) continue;
      const button = make(
        'button',
        { type: 'button', 'aria-pressed': 'true' },
        sample(curve),
        curve.label,
      );
      button.addEventListener('click', () => {
        curve.show = !curve.show;
        for (const other of panel.curves)
          /* those without a button go with the one they belong to */
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
    const soft = () => ink('soft'),
      grid = () => ink('grid');
    return {
      scale: name,
      label: scale.label,
      stroke: soft,
      labelSize: scale.label ? 22 : 0,
      labelGap: 2,
      font: '12px ' + ink('sans'),
      labelFont: '13px ' + ink('sans'),
      gap: 5,
      ticks: { size: 5, stroke: soft, width: 1 },
      border: { show: true, stroke: soft, width: 1 },
      grid: {
        show: !panel.value && !scale.categories,
        stroke: grid,
        width: 1,
        filter: (u, places) => places.map((v, i) => (texts[i] ? v : null)),
      },
      splits: (u, _, low, high) => {
        const [places, t] = ticks(
          scale,
          low,
          high,
          (name === 'x' ? u.bbox.width : u.bbox.height) / uPlot.pxRatio,
          room,
        );
        texts = t;
        return places;
      },
      filter: (u, places) => places.map((v, i) => (texts[i] ? v : null)),
      values: (u, places) => places.map((v, i) => (v === null ? '' : texts[i])),
      size: (u, values) =>
        name === 'x'
          ? 30
          : Math.min(110, 16 + Math.max(10, ...(values || []).map(v => 7 * String(v).length))),
    };
  }
  const heightFor = (panel, width) =>
    Math.round(
      panel.square || panel.value
        ? Math.min(440, Math.max(280, width * 0.72))
        : Math.min(380, Math.max(250, width * 0.5)),
    );

  function drawFigurePanel(panel, holder, title) {
    const canvas = make('div', {
      class: panel.square || panel.value ? 'canvas square' : 'canvas',
      role: 'img',
      'aria-label': title,
    });
    holder.append(canvas);
    const view = { x: [panel.x.low, panel.x.high], y: [panel.y.low, panel.y.high] };
    const dot = make('div', { class: 'dot' }),
      tip = make('div', { class: 'tip' });
    dot.hidden = tip.hidden = true;
    const width = () => Math.max(200, canvas.clientWidth);
    const show = u =>
      u.batch(() => {
        u.setScale('x', { min: view.x[0], max: view.x[1] });
        u.setScale('y', { min: view.y[0], max: view.y[1] });
      });
    const scale = name => ({
      time: false,
      auto: false,
      distr: panel[name].log ? 3 : 1,
      range: () => view[name],
    });
    const plot = new uPlot(
      {
        width: width(),
        height: heightFor(panel, width()),
        legend: { show: false },
        pxAlign: 0,
        padding: [panel.value ? 22 : 10, panel.value ? 76 : 14, 0, 0],
        scales: { x: scale('x'), y: scale('y') },
        axes: [axisFor(panel, 'x', 78), axisFor(panel, 'y', 44)],
        series: [{}, { show: true, paths: () => null, points: { show: false } }],
        cursor: {
          drag: { x: true, y: true, uni: 24, dist: 6, setScale: false },
          points: { show: false },
          bind: {
            dblclick: u => () => {
              reset(u);
              return null;
            },
          },
        },
        hooks: {
          draw: [u => drawPanel(u, panel)],
          setSelect: [
            u => {
              const { left, top, width: w, height: h } = u.select;
              if (w < 6 && h < 6) return;
              const across = w >= 6,
                up = h >= 6;
              if (across) view.x = [u.posToVal(left, 'x'), u.posToVal(left + w, 'x')];
              if (up) view.y = [u.posToVal(top + h, 'y'), u.posToVal(top, 'y')];
              u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              show(u);
            },
          ],
          setCursor: [
            u => {
              const { left, top } = u.cursor,
                found = left >= 0 ? nearest(u, panel, left, top) : null;
              dot.hidden = tip.hidden = !found;
              if (!found) return;
              dot.style.left = found.x + 'px';
              dot.style.top = found.y + 'px';
              tip.replaceChildren(
                ...tipFor(panel, found).flatMap((line, i) =>
                  i ? [make('br'), line] : [make('b', {}, line)],
                ),
              );
              const right = found.x > u.over.clientWidth / 2;
              tip.style.left = right ? '' : found.x + 12 + 'px';
              tip.style.right = right ? u.over.clientWidth - found.x + 12 + 'px' : '';
              tip.style.top = Math.max(0, found.y - 20) + 'px';
            },
          ],
        },
      },
      [
        [panel.x.low, panel.x.high],
        [null, null],
      ],
      canvas,
    );
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
    const title = figure.querySelector('h4').textContent,
      name = figure.dataset.name;
    const still = figure.querySelector('.static');
    const live = make('div', { class: 'live' });
    const layout = readFigure(figure),
      own = [];
    still.after(live);
    for (const panel of layout.panels) {
      const holder = make('div', { class: 'panel' });
      if (panel.title) holder.append(make('h5', {}, panel.title));
      live.append(holder);
      if (panel.curves.length)
        own.push(drawFigurePanel(panel, holder, panel.title ? title + ': ' + panel.title : title));
      else holder.append(make('p', { class: 'note' }, 'There is nothing to draw yet.'));
    }
    const button = (text, run) => {
      const node = make('button', { type: 'button' }, text);
      node.addEventListener('click', run);
      return node;
    };
    const actions = make(
      'div',
      { class: 'actions' },
      button('Download CSV', () => save(name + '.csv', 'text/csv;charset=utf-8', csvText(figure))),
      button('Download SVG', () =>
        save(
          name + '.svg',
          'image/svg+xml',
          new XMLSerializer().serializeToString(still.querySelector('svg')),
        ),
      ),
      button('Reset zoom', () => own.forEach(plot => plot.finetti.reset())),
      make('span', {}, 'Drag to zoom, double click to reset'),
    );
    figure.append(actions);
    figure.classList.add('drawn');
    figure.finetti = own;
  }
  /* A figure is drawn when it comes near the window, so that a long report opens at once. */
  const watcher = new IntersectionObserver(
    entries => {
      for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
    },
    { rootMargin: '800px' },
  );
  function draw(figure) {
    watcher.unobserve(figure);
    if (figure.finetti) return;
    figure.finetti = [];
    buildFigure(figure);
  }
  const drawable = all('figure').filter(figure => figure.querySelector('script[type="text/csv"]'));
  for (const figure of drawable) watcher.observe(figure);
  const follow = () => {
    const target =
      location.hash.length > 1 &&
      document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) {
      /* All figures up to it, because one that is drawn later would push it out of sight. */
      for (const figure of drawable)
        if (
          figure.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING ||
          figure === target
        )
          draw(figure);
      if (target.tagName === 'FIGURE') target.focus({ preventScroll: true });
      target.scrollIntoView();
    }
  };
  window.addEventListener('hashchange', follow);
  follow();
})();
