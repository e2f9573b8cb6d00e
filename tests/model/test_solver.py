"""The solver on certified problems of NIST's Statistical Reference Datasets (nonlinear regression, public domain)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pfprofile.model.solver import minimise

MISRA1A = """10.07 77.6 14.73 114.9 17.94 141.1 23.93 190.8 29.61 239.9 35.18 289.0 40.02 332.8 44.82 378.4 50.76 434.8
55.05 477.3 61.01 536.8 66.40 593.1 75.47 689.1 81.78 760.0"""
RAT42 = "8.93 9 10.80 14 18.59 21 22.33 28 39.35 42 56.11 57 61.73 63 64.62 70 67.08 79"
MGH09 = """0.1957 4 0.1947 2 0.1735 1 0.16 0.5 0.0844 0.25 0.0627 0.167 0.0456 0.125 0.0342 0.1 0.0323 0.0833
0.0235 0.0714 0.0246 0.0625"""
THURBER = """80.574 -3.067 84.248 -2.981 87.264 -2.921 87.195 -2.912 89.076 -2.840 89.608 -2.797 89.868 -2.702
90.101 -2.699 92.405 -2.633 95.854 -2.481 100.696 -2.363 101.060 -2.322 401.672 -1.501 390.724 -1.460 567.534 -1.274
635.316 -1.212 733.054 -1.100 759.087 -1.046 894.206 -0.915 990.785 -0.714 1090.109 -0.566 1080.914 -0.545
1122.643 -0.400 1178.351 -0.309 1260.531 -0.109 1273.514 -0.103 1288.339 0.010 1327.543 0.119 1353.863 0.377
1414.509 0.790 1425.208 0.963 1421.384 1.006 1442.962 1.115 1464.350 1.572 1468.705 1.841 1447.894 2.047
1457.628 2.200"""

Model = Callable[[np.ndarray, np.ndarray], np.ndarray]
PROBLEMS: dict[str, tuple[str, Model, list[list[float]], list[float], float]] = {
    "Misra1a": (MISRA1A, lambda b, x: b[0] * (1 - np.exp(-b[1] * x)), [[500, 1e-4], [250, 5e-4]],
                [2.3894212918e02, 5.5015643181e-04], 1.2455138894e-01),
    "Rat42": (RAT42, lambda b, x: b[0] / (1 + np.exp(b[1] - b[2] * x)), [[100, 1, 0.1], [75, 2.5, 0.07]],
              [7.2462237576e01, 2.6180768402e00, 6.7359200066e-02], 8.0565229338e00),
    "MGH09": (MGH09, lambda b, x: b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3]),
              [[25, 39, 41.5, 39], [0.25, 0.39, 0.415, 0.39]],
              [1.9280693458e-01, 1.9128232873e-01, 1.2305650693e-01, 1.3606233068e-01], 3.0750560385e-04),
    "Thurber": (THURBER, lambda b, x: (b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3)
                / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3),
                [[1000, 1000, 400, 40, 0.7, 0.3, 0.03], [1300, 1500, 500, 75, 1, 0.4, 0.05]],
                [1.2881396800e03, 1.4910792535e03, 5.8323836877e02, 7.5416644291e01, 9.6629502864e-01,
                 3.9797285797e-01, 4.9727297349e-02], 5.6427082397e03),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_certified_values_are_reached(name):
    text, model, starts, certified, squares = PROBLEMS[name]
    y, x = np.array(text.split(), dtype=float).reshape(-1, 2).T
    answer = np.array(certified)
    # The data are typed right: the certified parameters give the certified residual.
    assert np.sum((model(answer, x) - y) ** 2) == pytest.approx(squares, rel=1e-8)
    # Scaled to the certified residual, as logs are scaled to their noise.
    scale = np.sqrt(squares)

    def residuals(log_b):
        return (model(np.exp(log_b), x) - y) / scale

    def jacobian(log_b):
        step = 1e-6
        columns = [(residuals(log_b + step * e) - residuals(log_b - step * e)) / (2 * step) for e in np.eye(len(log_b))]
        return np.column_stack(columns)

    bounds = (np.full(len(answer), -20.0), np.full(len(answer), 20.0))
    found = minimise(residuals, jacobian, [np.log(s) for s in starts], bounds, robust=False, tolerance=1e-13)
    assert np.exp(found.x) == pytest.approx(answer, rel=1e-5)
    assert 2 * found.cost == pytest.approx(1.0, rel=1e-8)


def test_the_best_of_several_starts_wins():
    # Two valleys: near 0 (cost 0) and near 3 (cost above).
    def residuals(x):
        return np.array([np.sin(x[0]), 0.05 * x[0]])

    def jacobian(x):
        return np.array([[np.cos(x[0])], [0.05]])

    bounds = (np.array([-10.0]), np.array([10.0]))
    alone = minimise(residuals, jacobian, [np.array([3.2])], bounds, robust=False)
    both = minimise(residuals, jacobian, [np.array([3.2]), np.array([0.4])], bounds, robust=False)
    assert abs(alone.x[0]) > 2
    assert abs(both.x[0]) < 1e-3
    assert both.cost < alone.cost


def test_a_fit_that_does_not_end_says_so():
    def residuals(x):
        return np.array([np.exp(-x[0] * 1e-3)])

    def jacobian(x):
        return np.array([[-1e-3 * np.exp(-x[0] * 1e-3)]])

    bounds = (np.array([0.0]), np.array([np.inf]))
    found = minimise(residuals, jacobian, [np.array([1.0])], bounds, robust=False, tolerance=1e-15)
    assert found.converged or "maximum number" in found.message
    with pytest.raises(ValueError, match="no start"):
        minimise(residuals, jacobian, [], bounds)
