'use strict';
// Panel 4: a context.
builders.push([
  'context',
  p => {
    const FORMS = { cme: 0, softmax: 1 },
      RBF = 3,
      QUERIES = 161;
    const even = v => (v.length % 2 || v.length > 120 || v.some(x => Math.abs(x) > 3) ? null : v);
    const scale = p.slider('scale', { label: 'length scale', min: 0.05, max: 3, value: 0.5, log: true });
    const noise = p.slider('noise', { label: 'noise variance', min: 1e-3, max: 1, value: 0.04, log: true });
    const prior = p.slider('prior', { label: 'prior variance', min: 0.1, max: 10, value: 1, log: true });
    const temperature = p.slider('temperature', { label: 'softmax temperature', min: 0.02, max: 5, value: 0.5, log: true });
    const truth = p.choice('truth', { label: 'truth', value: 'sine', options: [['off', 'off'], ['sine', 'a sine'], ['step', 'a step']], changed: () => fresh() });
    const tokens = p.values('tokens', [], even); // key, value, key, value, ...; none: as drawn
    const query = p.values('query', [0.5], v => (v.length === 1 && Math.abs(v[0]) <= 2 ? v : null));
    const draw = p.values('draw', [0], v => (v.length === 1 && v[0] >= 0 && v[0] < 1e6 && v[0] === Math.round(v[0]) ? v : null));
    const f = x => (truth.value === 'step' ? (x < 0 ? -1 : 1) : Math.sin(2 * x));

    /** Ten tokens: keys and noise of the library's generator (the task's tokens without a signal). */
    function drawn() {
      const n = 10,
        t = here.call('tokens', [0.0, n, 7, draw.value[0]], 2 * n + 1),
        out = [];
      for (let l = 0; l < n; l++) {
        const x = round3(Math.max(-1.9, Math.min(1.9, t[1 + l])));
        out.push(x, round3((truth.value === 'off' ? 0 : f(x)) + 0.2 * t[1 + n + l]));
      }
      return out;
    }
    const now = () => (tokens.value.length ? tokens.value : drawn());
    function fresh() {
      tokens.value = [];
    }
    p.button('New draw', () => {
      draw.value = [(draw.value[0] + 1) % 1e6];
      fresh();
    });
    p.button('Add a token', () => (now().length < 120 ? (tokens.value = [...now(), query.value[0], 0]) : 0));
    p.button('Shuffle', () => {
      const t = now(),
        pairs = [];
      for (let i = 0; i < t.length; i += 2) pairs.push([t[i], t[i + 1]]);
      for (let i = pairs.length - 1; i > 0; i--) {
        const j = Math.floor(Math.random() * (i + 1));
        [pairs[i], pairs[j]] = [pairs[j], pairs[i]];
      }
      tokens.value = pairs.flat();
    });
    p.button('Tune', () => tune());

    const plot = new Plot(p, { label: 'Tokens: key and value; the mean of cme with its band, and softmax', height: 290, x: [-2, 2], y: [-2.2, 2.2], xlabel: 'key', ylabel: 'value' });
    const bars = new Plot(p, { label: 'Weights of the tokens for the query', height: 150, x: [-2, 2], y: [-0.5, 1], xlabel: 'key', ylabel: 'weights for the query' });
    const legend = el('p', { class: 'legend' });
    p.plots.append(legend);
    plot.canvas.addEventListener('click', event => {
      const r = plot.box.getBoundingClientRect(),
        x = round3(plot.atX(event.clientX - r.left)),
        y = round3(plot.atY(event.clientY - r.top));
      if (Math.abs(x) > 2 || Math.abs(y) > 2.2 || now().length >= 120) return;
      tokens.value = [...now(), x, y];
      p.touched();
    });
    plot.canvas.addEventListener('pointermove', event => {
      const x = round3(plot.atX(event.clientX - plot.box.getBoundingClientRect().left));
      if (event.pointerType !== 'mouse' || event.buttons || Math.abs(x) > 2) return;
      query.value = [x];
      p.touched();
    });

    const tune = p.latest(async still => {
      const t = now(),
        keys = t.filter((_, i) => i % 2 === 0),
        values = t.filter((_, i) => i % 2);
      const cme = await p.later('tune', [0, RBF, 7, keys.length, ...keys, ...values]),
        soft = await p.later('tune', [1, RBF, 8, keys.length, ...keys, ...values]);
      if (!still()) return;
      const clip = (c, x, low, high) => c.set(+Math.min(high, Math.max(low, x)).toPrecision(6));
      clip(scale, cme[0], 0.05, 3);
      clip(prior, cme[1], 0.1, 10);
      clip(noise, cme[2], 1e-3, 1);
      clip(temperature, soft[4], 0.02, 5);
      p.touched();
    });

    p.draw = () => {
      const t = now(),
        n = t.length / 2,
        keys = t.filter((_, i) => i % 2 === 0),
        values = t.filter((_, i) => i % 2),
        grid = Array.from({ length: QUERIES }, (_, i) => -2 + (4 * i) / (QUERIES - 1)),
        q = query.value[0];
      const ask = (form, queries) => [FORMS[form], RBF, scale.value, prior.value, noise.value, 0, temperature.value, n, queries.length, ...keys, ...values, ...queries];
      const cme = here.call('context', ask('cme', [...grid, q]), 2 * QUERIES + 2),
        soft = n ? here.call('context', ask('softmax', [...grid, q]), 2 * QUERIES + 2) : null,
        m = QUERIES + 1;
      const c = plot.size();
      plot.axes(c);
      c.fillStyle = colour('blue');
      c.globalAlpha = 0.18;
      c.beginPath();
      // of a new function value: 90 % of a normal law
      grid.forEach((x, i) => c.lineTo(plot.px(x), plot.py(cme[i] + 1.6449 * Math.sqrt(cme[m + i]))));
      grid.map((x, i) => [x, i]).reverse().forEach(([x, i]) => c.lineTo(plot.px(x), plot.py(cme[i] - 1.6449 * Math.sqrt(cme[m + i]))));
      c.fill();
      c.globalAlpha = 1;
      const curve = (y, name, dash) => {
        c.strokeStyle = colour(name);
        c.lineWidth = 2.2;
        c.setLineDash(dash);
        c.beginPath();
        grid.forEach((x, i) => c.lineTo(plot.px(x), plot.py(y(x, i))));
        c.stroke();
        c.setLineDash([]);
      };
      if (truth.value !== 'off') curve(x => f(x), 'grey', [3, 4]);
      if (soft) curve((_, i) => soft[i], 'orange', [8, 4]);
      curve((_, i) => cme[i], 'blue', []);
      c.strokeStyle = colour('soft');
      c.lineWidth = 1;
      line(c, plot.px(q), plot.py(plot.y[0]), plot.px(q), plot.py(plot.y[1]));
      for (let l = 0; l < n; l++)
        plot.handle('token' + l, {
          label: `Token ${l + 1}: key and value`,
          at: [keys[l], values[l]],
          className: 'token',
          moved: (x, y) => {
            const all = [...t];
            all[2 * l] = x;
            all[2 * l + 1] = y;
            tokens.value = all;
          },
          removed: () => {
            if (n > 1) tokens.value = t.filter((_, i) => i >> 1 !== l);
          },
        });
      plot.handle('query', { label: 'The query', at: [q, plot.y[0] + 0.12], className: 'guide', moved: x => (query.value = [x]) });
      plot.keep(new Set(['query', ...keys.map((_, l) => 'token' + l)]));

      const weights = [here.call('attend', ask('cme', [q]), n + 1), n ? here.call('attend', ask('softmax', [q]), n + 1) : new Float64Array(0)];
      drawWeights(bars, keys, weights);
      p.number('mean', 'cme at the query', cme[QUERIES], 'exact posterior mean');
      p.number('sd', 'its standard deviation', Math.sqrt(cme[m + QUERIES]), 'exact');
      p.number('softmax', 'softmax at the query', soft ? soft[QUERIES] : NaN, 'exact');
      p.number('least', 'least weight of cme', Math.min(...weights[0]), 'exact');
      const file = `printf 'x,y\\n${keys.map((x, l) => `${x},${values[l]}\\n`).join('')}'`;
      const one = form => `${file} | finetti attend - --key x --value y --query 'x=${q}'${words(form === 'cme' ? { scale: scale.value, prior: prior.value, noise: noise.value, level: 0 } : { form, temperature: temperature.value })} --top 60 --json`;
      p.command(
        one('cme') + '\n' + one('softmax'),
        `import finetti, numpy as np\nkeys = np.array([${keys.join(', ')}], dtype=float)[:, None]\nvalues = np.array([${values.join(', ')}], dtype=float)\nquery = np.array([[${q}]], dtype=float)\n` +
          `cme = finetti.Context(keys, values, scale=${scale.value}, prior=${prior.value}, noise=${noise.value}, level=0)\n` +
          `mean, variance, weights = cme.predict(query, return_variance=True, return_weights=True)\nprint(mean, variance**0.5, weights.min())\n` +
          `print(finetti.Context(keys, values, form="softmax", temperature=${temperature.value}).predict(query))`,
      );
      p.note('Click to add a token, drag to move it, Delete removes it. Move over the plot to ask a query.');
    };
    for (const [name, text, dashed] of /** @type {[string, string, boolean][]} */ ([['blue', 'cme: posterior mean, 90 % band', false], ['orange', 'softmax', true], ['grey', 'truth', true]])) {
      const key = el('span', { class: dashed ? 'key dashed' : 'key', 'data-colour': name }, text);
      legend.append(key);
      const paint = () => key.style.setProperty('--key', colour(name));
      paint();
      matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
    }
  },
]);

/** Signed weights under their tokens: filled cme, outlined softmax. @param {Plot} plot @param {number[]} keys @param {Float64Array[]} weights */
function drawWeights(plot, keys, weights) {
  const c = plot.size(),
    all = [0, 0.1, ...weights[0], ...weights[1]];
  plot.y = [Math.min(...all) * 1.1, Math.max(...all) * 1.15];
  plot.axes(c);
  c.strokeStyle = colour('text');
  line(c, plot.px(plot.x[0]), plot.py(0), plot.px(plot.x[1]), plot.py(0));
  keys.forEach((x, l) => {
    const left = plot.px(x),
      bar = (w, at, wide, draw) => draw.call(c, left + at, Math.min(plot.py(w), plot.py(0)), wide, Math.abs(plot.py(w) - plot.py(0)));
    c.fillStyle = colour('blue');
    bar(weights[0][l], -5, 5, c.fillRect);
    c.strokeStyle = colour('orange');
    c.lineWidth = 1.5;
    if (weights[1].length) bar(weights[1][l], 1, 4, c.strokeRect);
  });
}
