#!/usr/bin/env bash
# Draws docs/images/risk.png from the tool's own output. Needs gnuplot; run from the project's root after `make`.
set -euo pipefail
finetti=${FINETTI:-build/finetti}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$finetti" risk --sweep kappa=-1:1:81 --sweep nu=-1:1:81 --show risk --out "$work/grid.csv"
for d in 100 400 10000 1000000; do
    "$finetti" risk --d $d --sweep lam=0.0005:3:200log --show risk --out "$work/lam$d.csv"
done
# gnuplot wants a blank line between the rows of a surface.
awk -F, 'NR == 1 { next } $1 != last { if (last != "") print ""; last = $1 } { print $1, $2, $3 }' \
    "$work/grid.csv" > "$work/grid.dat"
gnuplot <<EOF
set terminal pngcairo size 1100,470 font "DejaVu Sans,12"
set output "docs/images/risk.png"
set multiplot layout 1,2
set title "Risk landscape, d = 400, L = 10, λ = 0.1"
set xlabel "κ = k·k*"
set ylabel "ν = v·v*"
set palette defined (0 "#0b3954", 0.35 "#2a9d8f", 0.7 "#e9c46a", 1 "#e76f51")
set size square
set xrange [-1:1]
set yrange [-1:1]
set pm3d map interpolate 2,2
set contour base
set cntrparam levels incremental 0.2,0.2,2
set cntrlabel onecolor
unset key
set colorbox
splot "$work/grid.dat" using 1:2:3 with pm3d, "" using 1:2:3 with lines lc rgb "#ffffff" lw 0.6 nosurface
unset pm3d
unset contour
unset colorbox
set size nosquare
set title "Oracle risk against λ, L = 10"
set xlabel "λ"
set ylabel "E(Y - f(X))^2"
set logscale xy
set xrange [0.0005:3]
set yrange [5e-5:20]
set format x "10^{%L}"
set format y "10^{%L}"
set key bottom right samplen 1.5
set datafile separator ","
set grid lc rgb "#dddddd"
plot 0.47368421 with lines dt 2 lc rgb "#888888" title "best linear", \
     "$work/lam100.csv" using 1:2 skip 1 with lines lw 2 lc rgb "#e76f51" title "d = 100", \
     "$work/lam400.csv" using 1:2 skip 1 with lines lw 2 lc rgb "#e9c46a" title "d = 400", \
     "$work/lam10000.csv" using 1:2 skip 1 with lines lw 2 lc rgb "#2a9d8f" title "d = 10^4", \
     "$work/lam1000000.csv" using 1:2 skip 1 with lines lw 2 lc rgb "#0b3954" title "d = 10^6"
EOF
