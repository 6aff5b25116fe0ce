'use strict';
// Panel 5: more tokens.
builders.push([
  'more-tokens',
  p => {
    const FORMS = ['cme', 'softmax'],
      CONTEXTS = 4,
      QUERIES = 32,
      NOISE = 0.09,
      MOST = { cme: 512, softmax: 4096 }; // tokens of a simulated context
    const L = p.slider('L', { label: 'tokens, L', min: 16, max: 65536, value: 256, log: true, whole: true });
    const power = p.slider('p', { label: 'exponent p: κ = 2 Lᵖ', min: 0, max: 2, value: 0, step: 0.05 });
    const ridge = p.slider('r', { label: 'ridge exponent r: 0.1 Lʳ', min: 0, max: 1, value: 0, step: 0.05 });
    const keys = p.choice('keys', { label: 'keys', value: 'uniform', options: [['uniform', 'uniform on the circle'], ['skewed', 'skewed (von Mises)']] });
    const seed = p.values('seed', [1], v => (v.length === 1 && v[0] >= 0 && v[0] < 1e6 && v[0] === Math.round(v[0]) ? v : null));
    for (const [text, value] of /** @type {[string, number][]} */ ([['p = 0', 0], ['p = 2/(d+3) = 0.4', 0.4], ['p = 2/(d−1) = 2', 2]])) p.button(text, () => power.set(value));
    p.button('New draw', () => (seed.value = [seed.value[0] + 1]));

    let here_ = null;
    const curve = new Curves(p, {
      label: 'Error against the number of tokens',
      height: 260,
      x: 'tokens, L',
      y: 'root mean squared error',
      logX: true,
      logY: true,
      series: [
        { label: 'cme, predicted', colour: 'blue' },
        { label: 'softmax, predicted', colour: 'orange' },
        { label: 'of it the bias of softmax', colour: 'orange', dash: [4, 4], width: 1 },
        { label: 'cme, simulated', colour: 'blue', points: true },
        { label: 'softmax, simulated', colour: 'orange', points: true },
      ],
      hooks: {
        draw: [
          u => {
            const x = u.valToPos(L.value, 'x', true);
            u.ctx.save();
            u.ctx.strokeStyle = colour('soft');
            u.ctx.beginPath();
            u.ctx.moveTo(x, u.bbox.top);
            u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
            u.ctx.stroke();
            u.ctx.restore();
          },
        ],
      },
    });
    const found = new Curves(p, {
      label: 'The function found at this L over the true one',
      height: 190,
      x: 'angle of the query',
      y: 'value',
      series: [
        { label: 'truth', colour: 'grey', dash: [3, 4] },
        { label: 'cme, one context', colour: 'blue' },
        { label: 'softmax, one context', colour: 'orange' },
        { label: 'what softmax tends to', colour: 'orange', dash: [5, 4], width: 1 },
      ],
    });

    /** The settings that all calls share. @param {string} form */
    const shared = form => [FORMS.indexOf(form), keys.value === 'skewed' ? 1 : 0, 1, 2, power.value, 0.1, form === 'cme' ? ridge.value : 0, 0.5, 0.5, NOISE];
    const grid = Array.from({ length: 25 }, (_, i) => Math.round(2 ** (4 + i / 2)));
    const dots = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
    let lines = {},
      simulated = {},
      now = {},
      shape = {};

    let key = '';
    const compute = p.latest(async still => {
      const mine = [power.value, ridge.value, keys.value, seed.value].join();
      if (mine !== key) {
        key = mine;
        lines = {};
        simulated = { cme: {}, softmax: {} };
      }
      now = {};
      shape = {};
      for (const form of FORMS) {
        if (!lines[form]) lines[form] = await p.later('predicted', [...shared(form), ...grid]);
        const at = await p.later('predicted', [...shared(form), L.value]);
        const rate = L.value <= MOST[form] ? await p.later('rate', [...shared(form), L.value, CONTEXTS, QUERIES, seed.value[0]]) : [NaN, NaN];
        const drawn = await p.later('circle', [...shared(form), Math.min(L.value, MOST[form]), seed.value[0], 121]);
        if (!still()) return;
        now[form] = { at, rate };
        shape[form] = drawn;
        p.redraw();
      }
      for (const l of dots)
        for (const form of FORMS) {
          if (l > MOST[form] || simulated[form][l] !== undefined) continue;
          const rate = await p.later('rate', [...shared(form), l, CONTEXTS, QUERIES, seed.value[0]]);
          if (!still()) return;
          simulated[form][l] = rate[0];
          p.redraw();
        }
    });

    p.redraw = () => {
      const of = (form, k) => grid.map((_, i) => (lines[form] ? (k === 1 ? Math.sqrt(lines[form][3 * i + 1]) : lines[form][3 * i]) : null));
      const dotted = form => grid.map(l => simulated[form]?.[l] ?? null);
      const bias = of('softmax', 1).map(x => (x > 1e-3 ? x : null));
      curve.set([grid, of('cme', 0), of('softmax', 0), bias, dotted('cme'), dotted('softmax')]);
      const angles = Array.from({ length: 121 }, (_, i) => 2 * Math.PI * (i / 121 - 0.5)),
        column = (form, k) => angles.map((_, i) => (shape[form] ? shape[form][3 * i + k] : null));
      found.set([angles, column('cme', 0), column('cme', 1), column('softmax', 1), column('softmax', 2)]);
      // keys that a query sees: L / sqrt(pi kappa)
      const few = L.value / Math.sqrt(2 * Math.PI * L.value ** power.value) < 4;
      for (const form of FORMS) {
        const n = now[form];
        p.number(`${form}_predicted`, `${form}: error predicted`, n ? n.at[0] : NaN, n ? (Number.isNaN(n.at[0]) ? 'no closed form for skewed keys' : few && form === 'softmax' ? 'first order in 1/L, which is too little: a query sees fewer than 4 keys' : 'closed form, first order in 1/L') : 'being computed', n && n.at[0] ? `, bias² ${show(n.at[1], 3)}, variance ${show(n.at[2], 3)}` : '');
        p.number(`${form}_rmse`, `${form}: error simulated`, n ? n.rate[0] : NaN, n ? (Number.isNaN(n.rate[0]) ? `not simulated beyond ${MOST[form]} tokens` : `simulated, ${CONTEXTS} contexts`) : 'being computed', n && n.rate[0] ? ` ± ${show(n.rate[1], 2)}` : '');
      }
    };

    let last = '';
    p.draw = () => {
      p.redraw();
      const said = form => {
        const s = { d: 2, form, kappa: 2, kappa_power: power.value, L: L.value, contexts: CONTEXTS, queries: QUERIES, seed: seed.value[0] };
        if (form === 'cme') s.lam_power = ridge.value;
        if (keys.value === 'skewed') s.keys = 'vmf';
        return s;
      };
      p.command(
        FORMS.map(form => `finetti lab rate${words(said(form))} --json`).join('\n'),
        'import finetti\n' + FORMS.map(form => `${form} = finetti.run("rate", ${keywords(said(form))})\n`).join('') + 'print(cme.rmse, softmax.rmse)',
      );
      p.note('Which p lets the error of softmax fall for ever, and fastest? The shape below shows what it finds instead.');
      const now_ = [power.value, ridge.value, keys.value, seed.value, L.value].join();
      if (now_ !== last) compute();
      last = now_;
    };
  },
]);
