'use strict';
// Panel 1: which token?
builders.push([
  'which-token',
  p => {
    const forms = ['erf', 'softmax', 'linear'];
    const snr = p.slider('snr', { label: 'signal to noise, snr', min: 0.25, max: 32, value: 4, log: true });
    const lam = p.slider('lam', { label: 'scale of the scores, λ', min: 0, max: 8, value: 0.5, step: 0.05 });
    const L = p.slider('L', { label: 'tokens, L', min: 2, max: 30, value: 8, whole: true });
    const form = p.choice('form', { label: 'weights', value: 'softmax', options: [['softmax', 'softmax'], ['linear', 'linear: 1 + λχ'], ['erf', 'erf(λχ)']] });
    const reveal = p.check('reveal', 'reveal the relevant token J');
    const draw = p.values('draw', [0], v => (v.length === 1 && v[0] >= 0 && v[0] < 1e6 && v[0] === Math.round(v[0]) ? v : null));
    const moved = p.values('tokens', [], v => (v.length % 2 ? null : v)); // where they are, if one was moved
    p.button('New draw', () => {
      draw.value = [(draw.value[0] + 1) % 1e6];
      moved.value = [];
    });
    p.button('λ = √snr', () => lam.set(Math.sqrt(snr.value)));

    const plane = new Plot(p, { label: 'Tokens in the plane: score X.k* and value X.v*', height: 210, x: [-4, 8], y: [-4, 4], xlabel: 'score  χ = X·k*', ylabel: 'value  z = X·v*' });
    const bars = new Plot(p, { label: 'Weight and posterior of every token', height: 130, x: [0, 1], y: [0, 1], ylabel: 'weight (filled), posterior (outlined)' });
    const curve = new Curves(p, {
      label: 'Risk against lambda',
      height: 190,
      x: 'scale of the scores, λ',
      y: 'risk',
      series: [
        { label: 'risk of these weights', colour: 'blue' },
        { label: 'Bayes risk, the least there is', colour: 'black', dash: [6, 4] },
        { label: 'best linear attention', colour: 'green', dash: [2, 3] },
        { label: 'you are here', colour: 'orange', points: true },
      ],
    });

    function tokens() {
      const n = L.value,
        drawn = here.call('tokens', [snr.value, n, 1, draw.value[0]], 2 * n + 1),
        J = drawn[0];
      let chi = Array.from(drawn.slice(1, 1 + n)),
        z = Array.from(drawn.slice(1 + n));
      if (moved.value.length === 2 * n) {
        chi = moved.value.slice(0, n);
        z = moved.value.slice(n);
      }
      return { J, chi, z };
    }

    // ---- the curve: 41 points, kept until snr, L or the form changes. At first Bayes and the excess over it in 2000 draws,
    // the same for every λ, so that nothing of their noise is left where the weights are right; then by quadrature.
    const grid = Array.from({ length: 41 }, (_, i) => i / 5);
    const order = [0, 40, 20, 10, 30, 5, 15, 25, 35, ...Array.from({ length: 41 }, (_, i) => i)];
    const DRAWS = 2000;
    let curveOf = '',
      risks = [],
      exact = [],
      bayes = [NaN, NaN, NaN],
      at = [NaN, NaN, 0];
    const compute = p.latest(async still => {
      const f = forms.indexOf(form.value),
        key = [f, snr.value, L.value].join();
      if (curveOf !== key) {
        curveOf = key;
        at = [NaN, NaN, 0];
        exact = grid.map(() => false);
        bayes = Array.from(await p.later('bayes', [snr.value, L.value]));
        const excess = await p.later('excess', [f, snr.value, L.value, DRAWS, 1, ...grid]);
        risks = grid.map((_, i) => bayes[0] + excess[2 * i]);
      }
      p.redraw();
      if (!still()) return;
      at = Array.from(await p.later('risks', [f, snr.value, L.value, lam.value]));
      p.redraw();
      for (const i of order) {
        if (!still()) return;
        if (exact[i]) continue;
        risks[i] = (await p.later('risks', [f, snr.value, L.value, grid[i]]))[0];
        exact[i] = true;
        if (i % 8 === 0) p.redraw();
      }
      p.redraw();
    });

    let last = '';
    p.redraw = () => {
      const top = 2 * bayes[2] || 1,
        x = lam.value;
      const rows = grid.map((g, i) => [g, risks[i]]).concat([[x, at[0]]]);
      rows.sort((a, b) => a[0] - b[0]);
      const clip = v => (v <= 3 * Math.max(1, top) ? v : null);
      curve.set([
        rows.map(r => r[0]),
        rows.map(r => clip(r[1])),
        rows.map(() => bayes[0]),
        rows.map(() => bayes[2]),
        rows.map(r => (r[0] === x ? clip(at[0]) : null)),
      ]);
      const how = ['', 'closed form', 'quadrature', 'simulated'][at[2]] || 'being computed';
      p.number('risk', 'risk at this λ', at[0], how, at[1] > 0 ? ` ± ${show(at[1], 1)}` : '');
      p.number('bayes', 'Bayes risk', bayes[0], Number.isNaN(bayes[0]) ? 'being computed' : 'quadrature', Number.isNaN(bayes[0]) ? '' : ` ± ${show(bayes[1], 1)}`);
      p.number('attention', 'best linear attention', bayes[2], Number.isNaN(bayes[2]) ? 'being computed' : 'closed form');
    };

    p.draw = () => {
      const { J, chi, z } = tokens(),
        n = chi.length,
        f = forms.indexOf(form.value);
      const w = here.call('weights', [f, lam.value, snr.value, ...chi, ...z], 2 * n + 2);
      const c = plane.size();
      plane.x = [Math.min(-3.5, Math.floor(Math.min(...chi))), Math.max(4, Math.ceil(Math.max(Math.sqrt(snr.value) + 3, ...chi)))];
      plane.axes(c);
      chi.forEach((x, l) => {
        plane.handle('token' + l, {
          label: `Token ${l + 1}${reveal.value && l === J ? ', the relevant one' : ''}: score and value`,
          text: `score ${show(x, 3)}, value ${show(z[l], 3)}, weight ${show(w[l], 3)}, posterior ${show(w[n + l], 3)}`,
          at: [x, z[l]],
          sign: reveal.value && l === J ? 'J' : String(l + 1),
          className: reveal.value && l === J ? 'numbered relevant' : 'numbered',
          moved: (a, b) => {
            chi[l] = a;
            z[l] = b;
            moved.value = [...chi, ...z].map(round3);
          },
        });
      });
      plane.keep(new Set(chi.map((_, l) => 'token' + l)));
      drawBars(bars, w, n, reveal.value ? J : -1);
      p.number('prediction', 'f(X), these weights', w[2 * n], 'exact, for this draw');
      p.number('posterior', 'E[Y | X], the posterior', w[2 * n + 1], 'exact, for this draw');
      p.number('weight', 'posterior of J', w[n + J], 'exact, for this draw');
      let apart = 0;
      for (let l = 0; l < n; l++) apart = Math.max(apart, Math.abs(w[l] - w[n + l]));
      p.note(
        form.value === 'softmax' && apart < 0.01
          ? 'The bars agree: softmax at λ = √snr is the posterior, and the curve touches the Bayes line.'
          : 'Find the λ at which filled and outlined bars agree. What does the risk do there?',
      );
      p.redraw();
      const said = { task: 'spiked', form: form.value, snr: snr.value, L: L.value, lam: lam.value, show: 'risk,linear,bayes' };
      p.command(`finetti risk${words(said)} --json`, `import finetti\nr = finetti.run("risk", ${keywords(said)})\nprint(r.risk, r.bayes, r.attention)`);
      const key = [f, snr.value, L.value, lam.value].join();
      if (key !== last) compute();
      last = key;
    };
  },
]);

/** Pairs of bars: filled the weight, outlined the posterior. @param {Plot} plot @param {Float64Array} w @param {number} n @param {number} J */
function drawBars(plot, w, n, J) {
  const c = plot.size();
  let low = 0,
    high = 0.05;
  for (let l = 0; l < 2 * n; l++) {
    low = Math.min(low, w[l]);
    high = Math.max(high, w[l]);
  }
  plot.x = [0, n];
  plot.y = [low, high * 1.15];
  c.strokeStyle = colour('grid');
  c.fillStyle = colour('soft');
  c.textAlign = 'right';
  c.textBaseline = 'middle';
  for (const t of ticks(plot.y, 3)) {
    line(c, plot.px(0), plot.py(t), plot.px(n), plot.py(t));
    c.fillText(show(t), MARGIN.left - 5, plot.py(t));
  }
  const wide = (plot.px(1) - plot.px(0)) * 0.36;
  for (let l = 0; l < n; l++) {
    const x = plot.px(l + 0.5),
      zero = plot.py(0);
    c.fillStyle = colour('blue');
    c.fillRect(x - wide, plot.py(Math.max(0, w[l])), wide, Math.abs(plot.py(w[l]) - zero));
    c.strokeStyle = colour('orange');
    c.lineWidth = 2;
    c.strokeRect(x + 1, plot.py(w[n + l]), wide - 1, zero - plot.py(w[n + l]));
    c.fillStyle = colour(l === J ? 'red' : 'soft');
    c.textAlign = 'center';
    c.textBaseline = 'top';
    c.fillText(l === J ? 'J' : String(l + 1), x, plot.h - MARGIN.bottom + 6);
  }
  plot.labels(c);
}
