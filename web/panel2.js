'use strict';
// Panel 2: the landscape.
const PALETTE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // viridis
/** @param {number} t in 0..1 */
function viridis(t) {
  const at = Math.min(0.9999, Math.max(0, t)) * (PALETTE.length - 1),
    i = Math.floor(at);
  return PALETTE[i].map((a, k) => Math.round(a + (PALETTE[i + 1][k] - a) * (at - i)));
}

builders.push([
  'landscape',
  p => {
    const SIDE = 61,
      GAMMA = Math.SQRT1_2,
      KINDS = ['minimum', 'saddle', 'maximum', 'degenerate'];
    const lam = p.slider('lam', { label: 'scale of the scores, λ', min: 0.01, max: 1, value: 0.1, log: true });
    const d = p.slider('d', { label: 'dimension, d', min: 10, max: 1e6, value: 400, log: true, whole: true });
    const L = p.slider('L', { label: 'tokens, L', min: 2, max: 100, value: 10, log: true, whole: true });
    const start = p.values('start', [0.3, 0.2], v => (v.length === 2 && v.every(x => Math.abs(x) <= 1) ? v : null));
    const many = p.check('many', '100 random starts on M');
    const seed = p.values('seed', [1], v => (v.length === 1 && v[0] >= 0 && v[0] < 1e6 && v[0] === Math.round(v[0]) ? v : null));
    p.button('New draw', () => {
      seed.value = [seed.value[0] + 1];
      start.value = [round3(2 * Math.random() - 1), round3(2 * Math.random() - 1)];
    });
    const plot = new Plot(p, { label: 'The risk over kappa and nu, with its stationary points and the path of descent', height: 370, x: [-1, 1], y: [-1, 1], xlabel: 'κ = k·k*', ylabel: '' });
    const scale = el('p', { class: 'legend' });
    p.plots.append(scale);
    const along = new Curves(p, { label: 'Risk along the path', height: 140, x: 'step', y: 'risk', series: [{ label: 'risk along the path', colour: 'orange' }] });

    const model = () => [d.value, L.value, lam.value, GAMMA, 0];
    const picture = document.createElement('canvas');
    picture.width = picture.height = SIDE;
    let planeOf = '',
      range = [0, 1],
      risks = /** @type {Float64Array} */ (new Float64Array(0)),
      points = /** @type {Float64Array} */ (new Float64Array(0)),
      path = null,
      ends = null;

    function plane() {
      const key = model().join();
      if (planeOf === key) return;
      planeOf = key;
      risks = here.call('plane', [...model(), SIDE], SIDE * SIDE);
      range = [Math.min(...risks), Math.max(...risks)];
      const c = picture.getContext('2d'),
        image = c.createImageData(SIDE, SIDE);
      for (let i = 0; i < SIDE; i++)
        for (let j = 0; j < SIDE; j++) {
          const rgb = viridis(1 - Math.sqrt((risks[i * SIDE + j] - range[0]) / (range[1] - range[0]))),
            at = 4 * ((SIDE - 1 - j) * SIDE + i);
          image.data.set([...rgb, 255], at);
        }
      c.putImageData(image, 0, 0);
      scale.textContent = `Risk from ${show(range[0], 3)} (bright) to ${show(range[1], 3)} (dark). Lines join equal risks.`;
    }

    /** Lines of equal risk, cell by cell. */
    function contours(c) {
      c.strokeStyle = 'rgba(255,255,255,.45)';
      c.lineWidth = 1;
      c.beginPath();
      for (let level = 1; level < 10; level++) {
        const at = range[0] + (range[1] - range[0]) * (level / 10) ** 2;
        for (let i = 0; i + 1 < SIDE; i++)
          for (let j = 0; j + 1 < SIDE; j++) {
            const corner = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]],
              v = corner.map(([a, b]) => risks[a * SIDE + b] - at),
              cuts = [];
            for (let k = 0; k < 4; k++) {
              const a = v[k],
                b = v[(k + 1) % 4];
              if (a < 0 === b < 0) continue;
              const t = a / (a - b),
                [x0, y0] = corner[k],
                [x1, y1] = corner[(k + 1) % 4];
              cuts.push([x0 + (x1 - x0) * t, y0 + (y1 - y0) * t]);
            }
            for (let k = 0; k + 1 < cuts.length; k += 2) {
              c.moveTo(plot.px((2 * cuts[k][0]) / (SIDE - 1) - 1), plot.py((2 * cuts[k][1]) / (SIDE - 1) - 1));
              c.lineTo(plot.px((2 * cuts[k + 1][0]) / (SIDE - 1) - 1), plot.py((2 * cuts[k + 1][1]) / (SIDE - 1) - 1));
            }
          }
      }
      c.stroke();
    }

    const descent = p.latest(async still => {
      const stationary = await p.later('stationary', model());
      if (!still()) return;
      points = stationary;
      p.redraw();
      const train = (init, steps, runs, every) => [...model(), 0, init, 0.004, 0, 5, steps, runs, seed.value[0], every, ...start.value, 0, 0, 0, steps];
      const one = await p.later('train', train(2, 20000, 1, 100), 4096);
      if (!still()) return;
      path = one;
      p.redraw();
      ends = null;
      if (!many.value) return;
      const all = await p.later('train', train(1, 4000, 100, 4000), 4096);
      if (!still()) return;
      ends = all;
      p.redraw();
    });

    p.redraw = () => {
      const c = plot.size();
      c.imageSmoothingEnabled = true;
      c.drawImage(picture, plot.px(-1), plot.py(1), plot.px(1) - plot.px(-1), plot.py(-1) - plot.py(1));
      contours(c);
      plot.axes(c);
      c.save();
      c.translate(11, plot.h / 2);
      c.rotate(-Math.PI / 2);
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      c.fillText('ν = v·v*', 0, 0);
      c.restore();
      if (ends) {
        const logs = ends[0];
        c.fillStyle = '#fff';
        for (let r = 0; r < 100; r++) {
          const row = 1 + logs + 200 + (r * logs + logs - 1) * 8;
          dot(c, plot.px(ends[row]), plot.py(ends[row + 1]), 2.5);
        }
      }
      if (path) drawPath(c);
      let least = null;
      for (let i = 0; i + 5 < points.length; i += 6) {
        drawKind(c, plot.px(points[i]), plot.py(points[i + 1]), points[i + 3]);
        if (points[i + 3] === 0 && (!least || points[i] > least[0])) least = points.slice(i, i + 6);
      }
      plot.handle('start', { label: 'Start of the descent: kappa and nu', at: /** @type {[number, number]} */ (start.value), className: 'start', moved: (x, y) => (start.value = [x, y]) });
      const none = points.length ? 'none: flat in κ, as far as rounding tells' : 'being computed';
      p.number('least', 'risk of the oracle’s minimum', least ? least[2] : NaN, least ? 'closed form' : none);
      p.number('kappa', 'its κ', least ? least[0] : NaN, least ? 'root of the exact gradient' : none);
      let minima = 0,
        saddles = 0;
      for (let i = 3; i < points.length; i += 6) {
        minima += Number(points[i] === 0);
        saddles += Number(points[i] === 1);
      }
      p.note(
        points.length && !minima
          ? 'Scores are so large here that erf is 1 nearly everywhere, and the risk flat in κ, as far as rounding tells. Lower λ or d.'
          : 'Drag the start. Every one rolls into one of two minima, which are the same predictor: (κ, ν) and (−κ, −ν).',
      );
      p.number('minima', 'minima on M', minima, 'eigenvalues of the exact Hessian');
      p.number('saddles', 'saddles on M', saddles, 'eigenvalues of the exact Hessian');
    };

    function drawPath(c) {
      const logs = path[0],
        first = 1 + logs + 2;
      c.strokeStyle = colour('path');
      c.lineWidth = 3;
      c.beginPath();
      const steps = [],
        risk = [];
      for (let i = 0; i < logs; i++) {
        const row = first + 8 * i;
        c.lineTo(plot.px(path[row]), plot.py(path[row + 1]));
        steps.push(path[1 + i]);
        risk.push(path[row + 6]);
      }
      c.stroke();
      const end = first + 8 * (logs - 1);
      along.set([steps, risk]);
      p.number('risk', 'risk at the end of the path', path[end + 6], 'exact gradient, 20 000 steps');
      p.number('end', 'κ at the end', path[end], 'exact gradient, 20 000 steps', `, ν ${show(path[end + 1])}`);
    }

    let last = '';
    p.draw = () => {
      plane();
      p.redraw();
      const said = { d: d.value, L: L.value, lam: lam.value };
      const begin = { ...said, init: 'overlaps', kappa: start.value[0], nu: start.value[1], runs: 1, steps: 20000, log_every: 100 };
      p.command(
        `finetti landscape${words({ ...said, grid: SIDE, starts: 0 })} --json\nfinetti train${words(begin)} --json`,
        `import finetti\nplane = finetti.run("landscape", ${keywords({ ...said, grid: SIDE })})\nprint(plane.minima, plane.saddles, plane.series["point_risk"])\n` +
          `runs = finetti.train(${keywords({ ...said, init: 'overlaps' })}, start={"kappa": ${start.value[0]}, "nu": ${start.value[1]}},\n                     runs=1, steps=20000, log_every=100)\nprint(runs.final["risk"], runs.final["kappa"])`,
      );
      const key = [...model(), ...start.value, many.value, seed.value].join();
      if (key !== last) descent();
      last = key;
    };

    /** A sign for each kind, told by its shape: disc a minimum, cross a saddle, square a maximum. */
    function drawKind(c, x, y, kind) {
      c.lineWidth = 2;
      c.strokeStyle = '#000';
      c.fillStyle = '#fff';
      c.beginPath();
      if (KINDS[kind] === 'minimum') c.arc(x, y, 6, 0, 7);
      else if (KINDS[kind] === 'saddle') {
        for (const [style, wide] of [['#000', 5], ['#fff', 2.5]]) {
          c.strokeStyle = style;
          c.lineWidth = wide;
          line(c, x - 5, y - 5, x + 5, y + 5);
          line(c, x - 5, y + 5, x + 5, y - 5);
        }
        return;
      } else c.rect(x - 5, y - 5, 10, 10);
      c.fill();
      c.stroke();
    }
  },
]);
