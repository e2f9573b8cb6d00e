"""The joint form of step time and power, with its analytic Jacobian. numpy only; no fitting here.

    V̂(φ) = V(φ)/V(1),  V = 1 + v·max(0, φ − φ_knee)
    T_c = (a0^p + ((a1 + c1/φ)·b)^p)^(1/p) · (1 + κ·log2 n)
    T   = (s−1)·T_c + (T_c^γ + T_s^γ)^(1/γ)
    u   = s·T_c/T
    D1  = (e0 + e1·b)/T_c(n=1, φ=1)
    P   = P0 + φ·V̂²·D1·(u + (1−u)·ρ)
    cap: P_c = (P^−q + (η·P_lim)^−q)^(−1/q), φ ← the root of P(φ) = P_c (not below φ_min), for T and P alike

Sources: the p-norm of computing and synchronising is AdaptDL's (Qiao et al., OSDI 2021, eq. 10); power as a static
part plus C·V²·f is the CMOS law; the shape of V over f follows measured A100, A40, V100 and Titan Xp curves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfprofile.model.points import Bools, Floats
from pfprofile.model.terms import INDEX, PHI, TERMS, Design, stage

#: lowest relative clock that is considered under a cap
LOWEST_PHI = 0.03
#: exponent that keeps the capped clock above φ_min smoothly
FLOOR_SHARPNESS = 8.0
#: (P/limit)^q below which a limit changes nothing that matters
CAP_REACH = 1e-4
_TINY = 1e-300
ROOT_STEPS, ROOT_TOLERANCE = 40, 1e-10


@dataclass(frozen=True, slots=True)
class Values:
    """What the form says of m configurations.

    Attributes:
        time_s: step time T, (m,).
        power_w: power of one GPU P, (m,).
        compute_share: u, (m,).
        phi: relative clock that is reached under the cap, (m,).
        capped: the power cap holds the clock down, (m,).
        d_log_time: derivative of log T by every parameter (and, last, by φ), (m, len(TERMS) + 1), or None.
        d_log_power: the same of log P.
    """

    time_s: Floats
    power_w: Floats
    compute_share: Floats
    phi: Floats
    capped: Bools
    d_log_time: Floats | None = None
    d_log_power: Floats | None = None


def evaluate(
    theta: Floats, d: Design, cap_w: Floats | None = None, *, jacobian: bool = False, power: bool = True
) -> Values:
    """Step time and power of configurations, under a power cap where one is given.

    Args:
        theta: parameter values in the order of `terms.TERMS`.
        d: the configurations; ``d.phi`` is the requested relative clock.
        cap_w: power limit of one GPU, W, (m,); NaN = none.
        jacobian: also return the derivatives.
        power: False leaves power out (1 W everywhere), where only the time is wanted and no cap is given.
    """
    free = _free(theta, d, jacobian, power)
    near = np.zeros(len(d.n), dtype=np.bool_) if cap_w is None else np.isfinite(cap_w)
    if cap_w is not None and near.any():
        sharp = float(theta[INDEX["q"]])
        # Far below a sharp limit nothing happens; there the free values stand.
        near &= free.power_w > CAP_REACH ** (1 / sharp) * np.where(near, cap_w, 1.0)
    if cap_w is None or not near.any():
        return free
    held, d_phi = _capped_clock(theta, d.take(near), cap_w[near], free, near)
    phi = d.phi.copy()
    phi[near] = held
    values = _free(theta, d.at_clock(phi), jacobian)
    if jacobian and d_phi is not None:
        for j_log in (values.d_log_time, values.d_log_power):
            assert j_log is not None
            j_log[near] = j_log[near, PHI:] * d_phi + np.where(np.arange(PHI + 1) == PHI, 0.0, j_log[near])
    return Values(values.time_s, values.power_w, values.compute_share, phi, phi < d.phi * (1 - 1e-3),
                  values.d_log_time, values.d_log_power)  # fmt: skip


def _capped_clock(theta: Floats, d: Design, limit: Floats, free: Values, rows: Bools) -> tuple[Floats, Floats | None]:
    """The relative clock under a power limit, and its derivatives (by the requested clock last).

    The mean power becomes P_c = (P^−q + (η·limit)^−q)^(−1/q); the clock is the root of P(φ) = P_c, but no lower than
    about φ_min: φ = (root^8 + φ_min^8)^(1/8). Sharp for a large q.
    """
    q, eta, low = (float(theta[INDEX[name]]) for name in ("q", "eta", "phi_min"))
    power = free.power_w[rows]
    x, y = 1 / power, 1 / (eta * limit)
    inverse, by_x, by_y, by_q = _norm(x, y, q)
    target = 1 / inverse
    root, bound = root_phi(theta, d, target)
    phi_soft, by_root, by_low, _ = _norm(root, np.full_like(root, low), FLOOR_SHARPNESS)
    held = np.minimum(phi_soft, d.phi)
    if free.d_log_power is None:
        return held, None
    # P_c by θ: through the free power, η and q.
    d_target = (target**2 * by_x * x)[:, None] * free.d_log_power[rows]
    d_target[:, INDEX["eta"]] += target**2 * by_y * y / eta
    d_target[:, INDEX["q"]] -= target**2 * by_q
    # Implicit function theorem on P(θ, φ) = P_c: dφ = (dP_c − P_θ)/P_φ.
    at_root = _free(theta, d.at_clock(root), True)
    assert at_root.d_log_power is not None
    slope = at_root.power_w[:, None] * at_root.d_log_power
    own = slope.copy()
    own[:, PHI] = 0.0
    d_root = np.where(bound[:, None], 0.0, (d_target - own) / slope[:, PHI:])
    d_phi = by_root[:, None] * d_root
    d_phi[:, INDEX["phi_min"]] += by_low
    asked = np.zeros(PHI + 1)
    asked[PHI] = 1.0
    return held, np.where((phi_soft > d.phi)[:, None], asked, d_phi)


def root_phi(theta: Floats, d: Design, target_w: Floats) -> tuple[Floats, Bools]:
    """Relative clocks at which the power is ``target_w``, at most ``d.phi``; and where even `LOWEST_PHI` needs more.

    P rises with φ, so the root is unique. Regula falsi in the Illinois variant, for all rows at once.
    """
    low, high = np.full(len(target_w), LOWEST_PHI), d.phi.copy()
    y_low, y_high = (_free(theta, d.at_clock(f), False).power_w - target_w for f in (low, high))
    bound, side = y_low >= 0, np.zeros(len(target_w))
    middle = high
    for _ in range(ROOT_STEPS):
        middle = np.clip(low - y_low * (high - low) / np.maximum(y_high - y_low, _TINY), low, high)
        y = _free(theta, d.at_clock(middle), False).power_w - target_w
        if np.abs(np.where(bound, 0.0, y) / target_w).max() < ROOT_TOLERANCE:
            break
        up = y > 0
        # An end that stays put twice counts half, so that the other one moves past the root.
        y_low = np.where(up, np.where(side > 0, 0.5 * y_low, y_low), y)
        y_high = np.where(up, y, np.where(side < 0, 0.5 * y_high, y_high))
        low, high = np.where(up, low, middle), np.where(up, middle, high)
        side = np.where(up, 1.0, -1.0)
    return np.where(bound, LOWEST_PHI, middle), bound


def _norm(x: Floats, y: Floats, p: float) -> tuple[Floats, Floats, Floats, Floats]:
    """``(x^p + y^p)^(1/p)`` without overflow, and its derivatives by x, y and p. x > 0, y ≥ 0."""
    big = np.maximum(x, y)
    rx, ry = np.maximum(x / big, _TINY), np.maximum(y / big, _TINY)
    px, py = rx**p, ry**p
    total = px + py
    norm = big * total ** (1 / p)
    scale = total ** (1 / p - 1)
    wx, wy = px / total, py / total
    dp = norm / p * (wx * np.log(rx) + wy * np.log(ry) - np.log(total) / p)
    return norm, scale * rx ** (p - 1), scale * ry ** (p - 1), dp


def _linear(name: str, theta: Floats, d: Design, jac: Floats | None) -> Floats:
    """Sum of a stage's linear terms; their bases go into ``jac`` (and their slope in φ into its last column)."""
    total = np.zeros_like(d.n)
    for term in stage(name):
        assert term.basis is not None
        basis = term.basis(d)
        total += theta[INDEX[term.name]] * basis
        if jac is not None:
            jac[:, INDEX[term.name]] = basis
            if term.basis_dphi is not None:
                jac[:, PHI] += theta[INDEX[term.name]] * term.basis_dphi(d)
    return total


def _compute(theta: Floats, d: Design, jacobian: bool) -> tuple[Floats, Floats | None]:
    """Computing time of one pass on one GPU, and its derivatives."""
    j_floor, j_sample = (np.zeros((len(d.n), PHI + 1)) if jacobian else None for _ in range(2))
    floor = _linear("floor", theta, d, j_floor)
    sample = _linear("sample", theta, d, j_sample) * d.b
    time, d_floor, d_sample, d_p = _norm(floor, sample, float(theta[INDEX["p"]]))
    if j_floor is None or j_sample is None:
        return time, None
    jac = d_floor[:, None] * j_floor + (d_sample * d.b)[:, None] * j_sample
    jac[:, INDEX["p"]] += d_p
    return time, jac


def _free(theta: Floats, d: Design, jacobian: bool, with_power: bool = True) -> Values:
    """The form without a cap."""
    kappa, gamma = theta[INDEX["kappa"]], float(theta[INDEX["gamma"]])
    j_sync = np.zeros((len(d.n), PHI + 1)) if jacobian else None
    single, j_single = _compute(theta, d, jacobian)
    log2n = np.log2(d.n)
    compute = single * (1 + kappa * log2n)
    sync = _linear("sync", theta, d, j_sync)
    last, d_compute, d_sync, d_gamma = _norm(compute, sync, gamma)
    time = (d.s - 1) * compute + last
    share = np.minimum(d.s * compute / time, 1.0)
    j_time = j_share = None
    if j_single is not None and j_sync is not None:
        j_compute = j_single * (1 + kappa * log2n)[:, None]
        j_compute[:, INDEX["kappa"]] += single * log2n
        j_time = (d.s - 1 + d_compute)[:, None] * j_compute + d_sync[:, None] * j_sync
        j_time[:, INDEX["gamma"]] += d_gamma
        j_time /= time[:, None]
        j_share = share[:, None] * (j_compute / compute[:, None] - j_time)
    if with_power:
        power, j_power = _power(theta, d, share, j_share)
    else:
        power, j_power = np.ones_like(time), np.zeros((len(time), PHI + 1)) if jacobian else None
    return Values(time, power, share, d.phi, np.zeros(len(d.n), dtype=np.bool_), j_time, j_power)


def _voltage(theta: Floats, phi: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """V̂(φ) and the derivatives of log V̂ by v, φ_knee and φ."""
    slope, knee = float(theta[INDEX["v"]]), float(theta[INDEX["phi_knee"]])
    above = (phi > knee).astype(np.float64)
    volt, top = 1 + slope * np.maximum(0.0, phi - knee), 1 + slope * (1 - knee)
    by_v = np.maximum(0.0, phi - knee) / volt - (1 - knee) / top
    by_knee = -slope * above / volt + slope / top
    return volt / top, by_v, by_knee, slope * above / volt


def _power(theta: Floats, d: Design, share: Floats, j_share: Floats | None) -> tuple[Floats, Floats | None]:
    """Power of one GPU, W, and the derivatives of its logarithm."""
    jacobian = j_share is not None
    static = _linear("static", theta, d, None)
    j_dynamic = np.zeros((len(d.n), PHI + 1)) if jacobian else None
    energy = _linear("dynamic", theta, d, j_dynamic)
    top, j_top = _compute(theta, d.at_clock(np.ones_like(d.n)), jacobian)
    rho = theta[INDEX["rho"]]
    mix = rho + (1 - rho) * share
    volt, by_v, by_knee, by_phi = _voltage(theta, d.phi)
    scale = d.phi * volt**2 / top
    power = static + scale * energy * mix
    if j_share is None or j_dynamic is None or j_top is None:
        return power, None
    j_top[:, PHI] = 0.0
    dynamic = scale * energy * mix
    jac = (scale * mix)[:, None] * j_dynamic - (dynamic / top)[:, None] * j_top
    jac += (scale * energy * (1 - rho))[:, None] * j_share
    jac[:, INDEX["rho"]] += scale * energy * (1 - share)
    jac[:, INDEX["v"]] += dynamic * 2 * by_v
    jac[:, INDEX["phi_knee"]] += dynamic * 2 * by_knee
    jac[:, PHI] += dynamic * (1 / d.phi + 2 * by_phi)
    for term in stage("static"):
        assert term.basis is not None
        jac[:, INDEX[term.name]] += term.basis(d)
    return power, jac / power[:, None]


def to_inner(jac: Floats, theta: Floats) -> Floats:
    """Derivatives by the values as derivatives by the solver's (log) parameters; drops the φ column."""
    chain = np.array([theta[j] if t.log else 1.0 for j, t in enumerate(TERMS)])
    return np.asarray(jac[:, :PHI] * chain, dtype=np.float64)
