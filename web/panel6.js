'use strict';
// Panel 6: how many bags?
builders.push([
  'how-many-bags',
  p => {
    const alpha = p.slider('alpha', { label: 'bags a column, n/d', min: 0.2, max: 50, value: 1, log: true });
    const snr = p.slider('snr', { label: 'signal to noise, snr', min: 0.5, max: 30, value: 5, log: true });
    const L = p.slider('L', { label: 'tokens in a bag, L', min: 2, max: 20, value: 3, whole: true });
    const eps = p.slider('eps', { label: 'noise of the labels, ε', min: 0.05, max: 1, value: 0.5, step: 0.05 });
    const ridge = p.slider('ridge', { label: 'ridge penalty of softmax, r', min: 0.1, max: 10, value: 1, log: true });
    const draw = p.values('draw', [0], v => (v.length === 1 && v[0] >= 0 && v[0] < 1e6 && v[0] === Math.round(v[0]) ? v : null));
    p.button('New bag', () => (draw.value = [(draw.value[0] + 1) % 1e6]));
    const curve = new Curves(p, {
      label: 'Risk against the number of bags',
      height: 250,
      x: 'bags a column, n/d',
      y: 'risk',
      logX: true,
      series: [
        { label: 'the best any learner can do', colour: 'blue' },
        { label: 'k*, v* known', colour: 'black', dash: [6, 4] },
        { label: 'softmax, fitted with the penalty', colour: 'purple', gaps: true },
        { label: 'linear, learnt from the bags', colour: 'green', dash: [2, 3] },
        { label: 'where algorithms may stop', colour: 'red', points: true },
        { label: 'you are here', colour: 'orange', points: true },
      ],
    });
    const bars = new Plot(p, { label: 'Posterior of the location in one bag', height: 150, x: [0, 1], y: [0, 1], ylabel: 'P(location): learnt (filled), k* known (outlined)' });
    const grid = [0.2, 0.35, 0.6, 1, 1.8, 3, 5.5, 10, 18, 50];
    const order = [3, 9, 6, 1, 0, 4, 2, 7, 5, 8];
    let key = '',
      rows = [],
      now = null;

    const compute = p.latest(async still => {
      const mine = [snr.value, L.value, eps.value].join();
      if (mine !== key) {
        key = mine;
        rows = grid.map(() => null);
      }
      now = null;
      const at = await p.later('curve', [snr.value, L.value, eps.value, alpha.value]);
      if (!still()) return;
      now = at;
      p.redraw();
      for (const i of order) {
        if (rows[i]) continue;
        const row = await p.later('curve', [snr.value, L.value, eps.value, grid[i]]);
        if (!still()) return;
        rows[i] = row;
        p.redraw();
      }
    });

    // ---- the fit, in a worker of its own: a point takes a second or, with many tokens, a minute; a control that is moved ends it
    const DRAWS = 10000,
      fewer = [1, 5.5, 18, 50, 0.35, 2.4];
    /** @type {Map<number, Float64Array>} */
    const fits = new Map();
    let fitsOf = '',
      slow;
    const fitted = p.latest(async still => {
      await new Promise(r => setTimeout(r, 150)); // a slider that moves asks in every frame
      if (!still()) return;
      slow ||= helper();
      const mine = [snr.value, L.value, eps.value, ridge.value].join();
      if (mine !== fitsOf) {
        fitsOf = mine;
        fits.clear();
      }
      for (const a of [alpha.value, ...fewer]) {
        if (!still()) return;
        if (fits.has(a)) continue;
        const found = await slow('erm', [snr.value, L.value, eps.value, a, ridge.value, DRAWS, 1]);
        if (mine !== fitsOf) return;
        fits.set(a, found);
        p.redraw();
      }
    });

    p.redraw = () => {
      const all = grid.map((a, i) => [a, rows[i]]);
      if (now) all.push([alpha.value, now]);
      for (const a of fits.keys()) if (!all.some(r => r[0] === a)) all.push([a, null]);
      all.sort((a, b) => a[0] - b[0]);
      const column = k => all.map(([, r]) => (r ? r[k] : null));
      curve.set([
        all.map(r => r[0]),
        column(2),
        all.map(() => (now ? now[4] : null)),
        all.map(([a]) => (fits.has(a) ? fits.get(a)[0] : undefined)),
        column(5),
        all.map(([, r]) => (r && !r[7] ? r[6] : null)),
        all.map(([, r]) => (r && r === now ? r[2] : null)),
      ]);
      const how = now ? 'quadrature, n and d large' : 'being computed',
        of = k => (now ? now[k] : NaN);
      p.number('optimal', 'risk of the best learner', of(2), how, now ? ` ± ${show(now[3], 1)}` : '');
      p.number('known', 'risk with k*, v* known', of(4), now ? 'quadrature' : how);
      p.number('linear', 'risk of the best linear learner', of(5), now ? 'closed form, n and d large' : how);
      const fit = fits.get(alpha.value) ?? [],
        how_ = !fit.length ? 'being computed' : Number.isNaN(fit[0]) ? 'none: such fits have several minima' : `n and d large, ${DRAWS} draws`;
      p.number('erm', 'risk of the fitted softmax', fit[0] ?? NaN, how_, fit[1] > 0 ? ` ± ${show(fit[1], 1)}` : '');
      p.number('cosine', 'what it knows of k*: cos²', (fit[2] ?? NaN) ** 2, how_);
      p.number('q_k', 'what the best knows of k*: cos²', of(0), how);
      p.number('q_v', 'what the best knows of v*: cos²', of(1), how);
      drawBag();
    };

    /* What the bags teach of k is a direction u with cos² = q: in it a token has the score √q χ* + √(1-q) g with g a normal
     * number of its own, the relevant one is shifted by √(snr q), and the posterior is softmax at √(snr q). */
    function drawBag() {
      const n = L.value,
        t = here.call('tokens', [snr.value, n, 5, draw.value[0]], 2 * n + 1),
        other = here.call('tokens', [0, n, 6, draw.value[0]], 2 * n + 1),
        q = now ? now[0] : 0,
        u = [],
        zero = Array(n).fill(0);
      for (let l = 0; l < n; l++) u.push(Math.sqrt(q) * t[1 + l] + Math.sqrt(1 - q) * other[1 + l]);
      const learnt = here.call('weights', [1, Math.sqrt(snr.value * q), snr.value, ...u, ...zero], 2 * n + 2),
        known = here.call('weights', [1, 0, snr.value, ...t.slice(1, 1 + n), ...zero], 2 * n + 2),
        both = new Float64Array(2 * n);
      both.set(learnt.slice(0, n));
      both.set(known.slice(n, 2 * n), n);
      drawBars(bars, both, n, t[0]);
      p.number('location', 'posterior of J in this bag', both[t[0]], now ? 'exact for this draw, given q' : 'being computed', `, with k* known ${show(both[n + t[0]], 3)}`);
    }

    let last = '',
      penalty = NaN;
    p.draw = () => {
      p.redraw();
      const said = { snr: snr.value, L: L.value, eps: eps.value, alpha: alpha.value, form: 'softmax', ridge: `${ridge.value},${ridge.value}`, samples: DRAWS };
      p.command(`finetti curve${words(said)} --json`, `import finetti\nr = finetti.run("curve", ${keywords(said).replace(', form', ',\n                form')})\nprint(r.optimal, r.known, r.linear, r.q_k, r.erm)`);
      p.note('Drag n/d. How many bags does it take until the filled bars look like the outlined ones?');
      const now_ = [snr.value, L.value, eps.value, alpha.value].join();
      if (now_ !== last) compute();
      if (now_ + ridge.value !== last + penalty) {
        fitted();
        slow?.drop();
      }
      last = now_;
      penalty = ridge.value;
    };
  },
]);
