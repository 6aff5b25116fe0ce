"""A study for the tests of studies and stores."""

SMALL = """\
study: small
title: A small study
source: nobody
runs:
  - id: grid
    command: risk
    set: {eps: 0.1, show: "risk,linear"}
    axes:
      L: [2, 10, 100]
      lam: {from: 0.01, to: 1, count: 5, spacing: log}
    full:
      axes: {L: [2, 10]}
  - id: walks
    command: train
    set: {steps: 20, runs: 3, d: 20, log_every: 5}
    axes:
      alpha: [0.001, 0.01]
    seeds: 3
claims:
  - id: linear
    statement: The best linear predictor loses 0.51 - 0.25 / (0.5 + 99) with a hundred tokens.
    where: {L: 100}
    take: linear
    reduce: max
    expect: {equal: 0.5074874371859296, tolerance: 1e-12}
  - id: moves
    statement: Nothing converges in twenty steps.
    from: walks
    take: share
    reduce: max
    expect: {at_most: 0.6}
figures:
  - id: by-lam
    title: Risk
    kind: lines
    from: grid
    x: {take: lam, scale: log}
    y: {label: risk, scale: log}
    lines: [{take: risk, label: risk, split: L}]
"""
