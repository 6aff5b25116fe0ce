/* The report's script. Figures are SVG, drawn when the report was written; what is here reads the CSV that stands beside each, the very
 * text that is handed out, says what is under the cursor, hides curves, and zooms by moving the coordinates that are there. */
(() => {
  'use strict';
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
  const setTheme = () => {
    root.dataset.theme = chosen || (dark.matches ? 'dark' : 'light');
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

  /* ---- the tables of claims */
  const filters = document.querySelector('.filters');
  if (filters) {
    const rows = all('.claims tbody tr');
    const buttons = all('button', filters),
      select = filters.querySelector('select');
    for (const name of new Set(rows.map(row => row.dataset.study)))
      select.append(new Option(name, name));
    let verdict = '';
    const apply = () => {
      for (const row of rows)
        row.hidden =
          (verdict && row.dataset.verdict !== verdict) ||
          (select.value && row.dataset.study !== select.value);
      for (const button of buttons)
        button.setAttribute('aria-pressed', button.dataset.verdict === verdict);
      document.querySelector('#claims .none').hidden = rows.some(row => !row.hidden);
      for (const kind of all('#claims details')) kind.open = all('tbody tr', kind).some(row => !row.hidden);
    };
    for (const button of buttons)
      button.addEventListener('click', () => {
        verdict = button.dataset.verdict;
        apply();
      });
    select.addEventListener('change', apply);
  }

  /* ---- the data of a figure */
  const csvText = figure =>
    figure
      .querySelector('script[type="text/csv"]')
      .textContent.replace(/\\(x3c|\\)/g, (_, c) => (c === 'x3c' ? '<' : '\\'));
  function parseCsv(text) {
    const rows = [];
    let row = [];
    for (let at = 0; at < text.length;) {
      let field = '';
      if (text[at] === '"') {
        for (at++; at < text.length && (text[at] !== '"' || text[at + 1] === '"'); at++) {
          if (text[at] === '"') at++;
          field += text[at];
        }
        at++;
      } else {
        const from = at;
        while (at < text.length && text[at] !== ',' && text[at] !== '\n') at++;
        field = text.slice(from, at);
      }
      row.push(field);
      if (text[at++] !== ',') {
        rows.push(row);
        row = [];
      }
    }
    return rows;
  }
  const numberOf = text => (text === '' || text === undefined ? NaN : Number(text.replace('inf', 'Infinity')));

  /* The layout, every curve with its rows. */
  function readFigure(figure) {
    const panels = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const rows = parseCsv(csvText(figure)),
      column = name => rows[0].indexOf(name);
    let at = 1;
    for (const panel of panels)
      for (const curve of panel.curves) {
        const part = rows.slice(at, (at += curve.count));
        const take = k => part.map(row => (k < 0 ? NaN : numberOf(row[k])));
        const place = (k, scale) =>
          scale.categories ? part.map(row => scale.categories.indexOf(row[k])) : take(k);
        curve.x = place(2, panel.x);
        curve.y = place(3, panel.y);
        curve.low = take(4);
        curve.high = take(5);
        curve.value = take(column('value'));
      }
    return panels;
  }

  /* ---- numbers */
  const above = n => String(n).replace(/[-0-9]/g, c => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]));
  function short(v, digits) {
    if (!isFinite(v)) return String(v);
    if (v === 0) return '0';
    const power = Math.floor(Math.log10(Math.abs(v)));
    if (power < -4 || power > 5) {
      const [m, e] = v.toExponential(digits - 1).split('e');
      return String(Number(m)).replace('-', '−') + '×10' + above(Number(e));
    }
    return String(Number(v.toPrecision(digits))).replace('-', '−');
  }
  const say = (v, scale) => (scale.categories ? scale.categories[v] : short(v, 5));
  const share = (scale, v) => {
    const f = scale.log ? Math.log10 : n => n;
    return (f(v) - f(scale.low)) / (f(scale.high) - f(scale.low));
  };

  /* ---- one panel: cursor and zoom. Places are those of the SVG; view = the part of the box that is seen, in parts of it. */
  function liven(panel, svg, holder) {
    const marks = svg.querySelector('.marks');
    if (!marks) return null;
    const box = {};
    for (const name of ['x', 'y', 'width', 'height']) box[name] = Number(marks.getAttribute(name));
    const whole = { left: 0, right: 1, top: 0, bottom: 1 };
    let view = whole;
    const X = v => ((v / box.width - view.left) / (view.right - view.left)) * box.width,
      Y = v => ((v / box.height - view.top) / (view.bottom - view.top)) * box.height;
    const hidden = new Set();

    /* Every coordinate that is given in full is moved; what follows it in relative steps (the shape of a point) is not. */
    const originals = new Map();
    function move(node, name, x, y) {
      if (!originals.has(node)) originals.set(node, {});
      const kept = originals.get(node);
      if (!(name in kept)) kept[name] = node.getAttribute(name);
      if (name === 'd')
        node.setAttribute(
          'd',
          kept.d.replace(/([ML])(-?[\d.]+) (-?[\d.]+)|([HV])(-?[\d.]+)/g, (_, ml, a, b, hv, c) =>
            ml
              ? ml + x(Number(a)).toFixed(2) + ' ' + y(Number(b)).toFixed(2)
              : hv + (hv === 'H' ? x : y)(Number(c)).toFixed(2),
          ),
        );
      else node.setAttribute(name, (name === 'x' ? x : y)(Number(kept[name])));
      return kept;
    }
    function show() {
      const same = v => v,
        x = v => X(v - box.x) + box.x,
        y = v => Y(v - box.y) + box.y;
      for (const node of all('path', marks)) move(node, 'd', X, Y);
      for (const node of all('text', marks)) {
        move(node, 'x', X, Y);
        move(node, 'y', X, Y);
      }
      const inside = (v, axis) =>
        v >= box[axis] - 0.5 && v <= box[axis] + (axis === 'x' ? box.width : box.height) + 0.5;
      for (const [axis, fx, fy] of [
        ['x', x, same],
        ['y', same, y],
      ])
        for (const node of svg.querySelector('g.' + axis).children) {
          if (node.tagName === 'text') {
            move(node, axis, fx, fy);
            const at = Number(node.getAttribute(axis)) - (axis === 'y' ? 3.5 : 0);
            node.style.display = inside(at, axis) ? '' : 'none';
          } else {
            move(node, 'd', fx, fy);
            const kept = (node.getAttribute('d').match(/M[^M]+/g) || []).filter(line => {
              const [a, b] = line.slice(1).split(/[ L]/).map(Number);
              return inside(axis === 'x' ? a : b, axis);
            });
            node.setAttribute('d', kept.join(''));
          }
        }
    }

    function seen() {
      const points = [];
      panel.curves.forEach((c, k) => {
        if (hidden.has(k) || c.mark === 'arrows') return;
        for (let i = 0; i < c.x.length; i++) {
          const middle = c.mark === 'bars' ? (c.low[i] + c.high[i]) / 2 : c.y[i];
          const x = X(share(panel.x, c.x[i]) * box.width),
            y = Y((1 - share(panel.y, middle)) * box.height);
          if (x >= -1 && x <= box.width + 1 && y >= -1 && y <= box.height + 1) points.push({ c, i, x, y });
        }
      });
      return points;
    }
    const tip = make('div', { class: 'tip' }),
      dot = make('div', { class: 'dot' });
    tip.hidden = dot.hidden = true;
    holder.append(tip, dot);
    function lines({ c, i }) {
      const text = [c.label, (panel.x.label || 'x') + ' = ' + say(c.x[i], panel.x)];
      text.push((panel.y.label && panel.y.label.length < 25 ? panel.y.label : 'y') + ' = ' + say(c.y[i], panel.y));
      if (c.mark === 'cells') text.push((panel.value.label || 'value') + ' = ' + short(c.value[i], 5));
      else if (!isNaN(c.low[i]) && c.mark !== 'bars')
        text.push('[' + short(c.low[i], 4) + ', ' + short(c.high[i], 4) + ']');
      return text;
    }
    const scale = () => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    function point(found) {
      tip.hidden = dot.hidden = !found;
      if (!found) return;
      const s = scale(),
        x = (box.x + found.x) * s,
        y = (box.y + found.y) * s;
      dot.style.left = x + 'px';
      dot.style.top = y + 'px';
      tip.replaceChildren(
        ...lines(found).flatMap((line, i) => (i ? [make('br'), line] : [make('b', {}, line)])),
      );
      const right = x > holder.clientWidth / 2;
      tip.style.left = right ? '' : x + 12 + 'px';
      tip.style.right = right ? holder.clientWidth - x + 12 + 'px' : '';
      tip.style.top = Math.max(0, y - 20) + 'px';
    }
    const place = event => {
      const rect = svg.getBoundingClientRect(),
        s = scale();
      return [(event.clientX - rect.left) / s - box.x, (event.clientY - rect.top) / s - box.y];
    };
    const frame = make('div', { class: 'select' });
    frame.hidden = true;
    holder.append(frame);
    let from = null;
    holder.addEventListener('pointermove', event => {
      const [x, y] = place(event);
      if (from) {
        const s = scale();
        frame.hidden = false;
        frame.style.left = (box.x + Math.min(x, from[0])) * s + 'px';
        frame.style.top = (box.y + Math.min(y, from[1])) * s + 'px';
        frame.style.width = Math.abs(x - from[0]) * s + 'px';
        frame.style.height = Math.abs(y - from[1]) * s + 'px';
        return;
      }
      let best = null,
        least = 25 * 25;
      for (const p of seen()) {
        const d = (p.x - x) ** 2 + (p.y - y) ** 2 + (p.c.mark === 'cells' ? 40 : 0);
        if (d < least) {
          least = d;
          best = p;
        }
      }
      point(best);
    });
    holder.addEventListener('pointerleave', () => point(null));
    holder.addEventListener('pointerdown', event => {
      const [x, y] = place(event);
      if (event.pointerType !== 'mouse' || event.button || event.target.closest('.item')) return;
      if (x < 0 || y < 0 || x > box.width || y > box.height) return;
      event.preventDefault();
      from = [x, y];
      point(null);
    });
    window.addEventListener('pointerup', event => {
      if (!from) return;
      const to = place(event),
        start = from;
      from = null;
      frame.hidden = true;
      const part = (k, size) => [start[k], to[k]].map(v => Math.min(Math.max(v / size, 0), 1)).sort((a, b) => a - b);
      const [left, right] = part(0, box.width),
        [top, bottom] = part(1, box.height);
      if (right - left < 0.02 && bottom - top < 0.02) return;
      const w = view.right - view.left,
        h = view.bottom - view.top;
      const across = right - left >= 0.02,
        up = bottom - top >= 0.02;
      view = {
        left: across ? view.left + left * w : view.left,
        right: across ? view.left + right * w : view.right,
        top: up ? view.top + top * h : view.top,
        bottom: up ? view.top + bottom * h : view.bottom,
      };
      show();
    });
    const reset = () => {
      view = whole;
      show();
    };
    holder.addEventListener('dblclick', reset);

    /* By keyboard: from point to point. */
    let current = -1;
    holder.addEventListener('keydown', event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || event.target !== holder) return;
      const points = seen();
      current = Math.min(Math.max(current + step, 0), points.length - 1);
      point(points[current] || null);
      event.preventDefault();
    });
    holder.addEventListener('blur', () => point(null));

    /* The legend: curves of one label go together. */
    for (const item of all('.item', svg)) {
      const label = panel.curves[Number(item.dataset.k)].label;
      item.setAttribute('role', 'button');
      item.setAttribute('tabindex', '0');
      item.setAttribute('aria-pressed', 'true');
      const toggle = () => {
        const off = item.getAttribute('aria-pressed') === 'true';
        item.setAttribute('aria-pressed', String(!off));
        panel.curves.forEach((c, k) => {
          if (c.label !== label && !c.label.startsWith(label + ': slope ')) return;
          if (off) hidden.add(k);
          else hidden.delete(k);
          for (const g of all('g[data-k="' + k + '"]', marks)) g.style.display = off ? 'none' : '';
        });
      };
      item.addEventListener('click', toggle);
      item.addEventListener('keydown', event => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        toggle();
      });
    }
    return { reset, view: () => view };
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
  /* How many panels stand side by side, where there is room. */
  const columnsOf = figure =>
    Number(/columns-(\d+)/.exec(figure.querySelector('.panels').className)[1]);
  /* All panels in one image, in the order in which they stand. */
  function wholeSvg(figure) {
    const parts = all('.panel > svg', figure),
      columns = columnsOf(figure);
    if (parts.length === 1) return new XMLSerializer().serializeToString(parts[0]);
    const outer = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    let top = 0,
      width = 0;
    for (let at = 0; at < parts.length; at += columns) {
      let left = 0,
        high = 0;
      for (const part of parts.slice(at, at + columns)) {
        const copy = part.cloneNode(true);
        copy.setAttribute('x', left);
        copy.setAttribute('y', top);
        outer.append(copy);
        left += Number(part.getAttribute('width'));
        high = Math.max(high, Number(part.getAttribute('height')));
      }
      width = Math.max(width, left);
      top += high;
    }
    outer.setAttribute('width', width);
    outer.setAttribute('height', top);
    return new XMLSerializer().serializeToString(outer);
  }
  function build(figure) {
    const name = figure.dataset.name,
      panels = readFigure(figure),
      live = [];
    const drawn = all('.panels > svg', figure),
      turned = figure.querySelector('.turned'), /* each column of panels is a row on the page */
      columns = columnsOf(figure);
    drawn.forEach((svg, i) => {
      const k = turned ? (i % columns) * (drawn.length / columns) + Math.floor(i / columns) : i;
      const holder = make('div', { class: 'panel', tabindex: '0' });
      svg.replaceWith(holder);
      holder.append(svg);
      live.push(liven(panels[k], svg, holder));
    });
    const button = (text, run) => {
      const node = make('button', { type: 'button' }, text);
      node.addEventListener('click', () => run(node));
      return node;
    };
    const command = figure.querySelector('.command code');
    const copy = button('Copy the command', async node => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        node.textContent = 'Copied';
      } catch (e) {
        getSelection().selectAllChildren(command); /* a file may have no clipboard */
        node.textContent = 'Selected';
      }
      setTimeout(() => {
        node.textContent = 'Copy the command';
      }, 1500);
    });
    figure.append(
      make(
        'div',
        { class: 'actions' },
        ...(command ? [copy] : []),
        button('Download CSV', () => save(name + '.csv', 'text/csv;charset=utf-8', csvText(figure))),
        button('Download SVG', () => save(name + '.svg', 'image/svg+xml', wholeSvg(figure))),
        button('Reset zoom', () => live.forEach(one => one && one.reset())),
        make('span', {}, 'Drag to zoom, double click to reset'),
      ),
    );
    figure.finetti = live;
  }
  /* A figure comes to life when it is near the window, so that a long report opens at once. */
  const watcher = new IntersectionObserver(
    entries => {
      for (const entry of entries)
        if (entry.isIntersecting) {
          watcher.unobserve(entry.target);
          build(entry.target);
        }
    },
    { rootMargin: '300px' },
  );
  for (const figure of all('figure'))
    if (figure.querySelector('script[type="text/csv"]')) watcher.observe(figure);

  /* ---- links into what is folded */
  const follow = () => {
    const target =
      location.hash.length > 1 &&
      document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === 'DETAILS') node.open = true;
    if (target.tagName === 'FIGURE') target.focus({ preventScroll: true });
    target.scrollIntoView();
  };
  window.addEventListener('hashchange', follow);
  follow();
})();
