#!/usr/bin/env bash
# Draws docs/images/training.png (the five experiments) and portrait.png (paths on M over the gradient field) from the
# tool's own output. Needs gnuplot and NumPy; run from the project's root after `make`.
set -euo pipefail
finetti=${FINETTI:-build/finetti}
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The paper's five experiments, as in studies/slr_training.yaml.
experiment() {
    "$finetti" train --out "$work/$1.npz" "${@:2}" >/dev/null
}
experiment manifold --init manifold --lam 0.1 --alpha 4e-3 --steps 20000 --log-every 200
experiment sphere_large_lambda --lam 0.9 --alpha 1e-3 --steps 120000 --log-every 300
experiment sphere_small_lambda --lam 0.1 --alpha 4e-3 --steps 20000 --log-every 200
experiment sphere_schedule --lam 1 --decay 1e-4 --alpha 4e-3 --steps 120000 --log-every 300
experiment sgd_schedule --engine reduced --d 80 --eps 0.1 --batch 5 --lam 2 --decay 1e-4 --alpha 1e-3 --steps 200000 --log-every 500
"$finetti" landscape --grid 21 --out "$work/field.csv" >/dev/null
"$finetti" train --init manifold --runs 40 --steps 20000 --log-decade 40 --seed 7 --out "$work/paths.npz" >/dev/null
"$finetti" train --init manifold --d 4 --mu 14.142135623730951 --runs 60 --steps 20000 --log-decade 40 --seed 7 --out "$work/wide.npz" >/dev/null
"$python" - "$work" <<'PYTHON'
import sys, numpy as np
work = sys.argv[1]
for name in "manifold sphere_large_lambda sphere_small_lambda sphere_schedule sgd_schedule".split():
    f = np.load(f"{work}/{name}.npz")
    columns = [f["step"]]
    for values in (np.abs(f["kappa"]), np.abs(f["nu"]), f["excess"], f["distance"]):
        columns += [values.mean(0), np.quantile(values, 0.025, 0), np.quantile(values, 0.975, 0), np.median(values, 0)]
    np.savetxt(f"{work}/{name}.dat", np.column_stack(columns))
    with open(f"{work}/{name}.paths", "w") as out:
        for r in range(min(12, len(f["kappa"]))):
            np.savetxt(out, np.column_stack([f["kappa"][r], f["nu"][r], f["distance"][r], f["step"]]))
            out.write("\n\n")
for name in ("paths", "wide"):
    f = np.load(f"{work}/{name}.npz")
    with open(f"{work}/{name}.dat", "w") as out:
        for r in range(len(f["kappa"])):
            np.savetxt(out, np.column_stack([f["kappa"][r], f["nu"][r]]), delimiter=",")
            out.write("\n\n")
PYTHON
gnuplot <<GNUPLOT
set terminal pngcairo size 1500,1060 font "DejaVu Sans,10"
set output "docs/images/training.png"
set multiplot layout 4,5 margins 0.05,0.985,0.06,0.94 spacing 0.045,0.055
names = "manifold sphere_large_lambda sphere_small_lambda sphere_schedule sgd_schedule"
titles = "'on M, λ = 0.1' 'sphere, λ = 0.9' 'sphere, λ = 0.1' 'sphere, λ = 1/(1+10^{-4}t)' 'SGD, λ = 2/(1+10^{-4}t)'"
set grid lc rgb "#e5e5e5"
set format x "%.0sk"
set xtics format "%.0s%c"
set style fill transparent solid 0.25 noborder
unset key
do for [i=1:5] { file = "$work/".word(names, i).".dat"
  set title word(titles, i)
  set logscale y; set yrange [1e-2:30]; set ytics auto
  if (i == 1) { set ylabel "excess risk" } else { unset ylabel }
  plot file using 1:11:12 with filledcurves lc rgb "#e76f51", "" using 1:10 with lines lw 2 lc rgb "#e76f51" }
unset logscale; unset title
do for [i=1:5] { file = "$work/".word(names, i).".dat"
  set yrange [0:1.02]
  if (i == 1) { set ylabel "|κ| blue, |ν| green" } else { unset ylabel }
  plot file using 1:3:4 with filledcurves lc rgb "#0b3954", "" using 1:2 with lines lw 2 lc rgb "#0b3954", \
       "" using 1:7:8 with filledcurves lc rgb "#2a9d8f", "" using 1:6 with lines lw 2 lc rgb "#2a9d8f" }
do for [i=1:5] { file = "$work/".word(names, i).".dat"
  set yrange [1e-9:10]
  if (i == 1) { set label 1 "0, exactly" at graph 0.35,0.5; set ylabel "distance to M" } else { unset label 1; unset ylabel }
  set logscale y
  set format y "10^{%L}"
  plot file using 1:15:16 with filledcurves lc rgb "#8d6a9f", "" using 1:17 with lines lw 2 lc rgb "#8d6a9f" }
unset logscale; set format y "%g"; set xrange [-1.05:1.05]; set yrange [-1.05:1.05]
set xtics -1,0.5,1 format "%g"
set xlabel "κ"
do for [i=1:5] { file = "$work/".word(names, i).".paths"
  if (i == 1) { set ylabel "ν" } else { unset ylabel }
  plot for [r=0:11] file index r using 1:2 with lines lw 1 lc rgb "#0b3954", for [r=0:11] file index r using 1:2 every ::0::0 with points pt 6 ps 0.6 lc rgb "#e76f51" }
unset multiplot
set terminal pngcairo size 620,620 font "DejaVu Sans,11"
set output "docs/images/portrait.png"
set title "Gradient field and paths on M, d = 400, L = 10, λ = 0.1"
set size square
set ylabel "ν = v·v*"; set xlabel "κ = k·k*"
set datafile separator ","
s(x, y) = 0.07/(sqrt(x*x + y*y) + 0.02)
plot "$work/field.csv" using 1:2:(s(column(6),column(7))*column(6)):(s(column(6),column(7))*column(7)) skip 1 with vectors size 0.02,20 lc rgb "#b0b0b0", \
     for [r=0:59] "$work/wide.dat" index r using 1:2 with lines lw 1 lc rgb "#2a9d8f", \
     for [r=0:39] "$work/paths.dat" index r using 1:2 with lines lw 1 lc rgb "#0b3954", \
     "-" using 1:2 with points pt 7 ps 1.6 lc rgb "#0b3954", "-" using 1:2 with points pt 2 ps 1.6 lw 2 lc rgb "#e76f51"
1,1
-1,-1
e
0,0
1,-1
-1,1
e
GNUPLOT
