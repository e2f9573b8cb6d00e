"""The joint form of step time and power, with its analytic Jacobian. numpy only; no fitting here.

    V̂(φ) = V(φ)/V(1),  V = 1 + v·max(0, φ − φ_knee)
    T_c = (a0^p + ((a1 + c1/φ)·b)^p)^(1/p) · (1 + κ·log2 n)
    T   = (s−1)·T_c + (T_c^γ + T_s^γ)^(1/γ)
    u   = s·T_c/T
    D1  = (e0 + e1·b)/T_c(n=1, φ=1)
    P   = P0 + φ·V̂²·D1·(u + (1−u)·ρ)
    cap: φ ← min(φ, root of P(φ) = P_lim), for T and P alike

Sources: the p-norm of computing and synchronising is AdaptDL's (Qiao et al., OSDI 2021, eq. 10); power as a static
part plus C·V²·f is the CMOS law; the shape of V over f follows measured A100, A40, V100 and Titan Xp curves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfprofile.model.points import Bools, Floats
from pfprofile.model.terms import INDEX, PHI, TERMS, Design, stage

#: no GPU runs below this share of its highest clock
LOWEST_PHI = 0.1
_TINY = 1e-300
BISECTIONS = 18


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


def evaluate(theta: Floats, d: Design, cap_w: Floats | None = None, *, jacobian: bool = False) -> Values:
    """Step time and power of configurations, under a power cap where one is given.

    Args:
        theta: parameter values in the order of `terms.TERMS`.
        d: the configurations; ``d.phi`` is the requested relative clock.
        cap_w: power limit of one GPU, W, (m,); NaN = none.
        jacobian: also return the derivatives.
    """
    if cap_w is None or not np.isfinite(cap_w).any():
        return _free(theta, d, jacobian)
    phi, capped = reached_phi(theta, d, cap_w)
    values = _free(theta, d.at_clock(phi), jacobian)
    at_floor = capped & (phi <= LOWEST_PHI)
    on_cap = capped & ~at_floor
    if jacobian and on_cap.any():
        assert values.d_log_time is not None and values.d_log_power is not None
        # Implicit function theorem on P(θ, φ) = P_lim: dφ/dθ = −P_θ/P_φ.
        jt, jp = values.d_log_time[on_cap], values.d_log_power[on_cap]
        slope = -jp[:, :PHI] / jp[:, PHI:]
        jt[:, :PHI] += jt[:, PHI:] * slope
        jt[:, PHI] = 0.0
        values.d_log_time[on_cap] = jt
        values.d_log_power[on_cap] = 0.0
    return Values(values.time_s, values.power_w, values.compute_share, phi, capped,
                  values.d_log_time, values.d_log_power)  # fmt: skip


def reached_phi(theta: Floats, d: Design, cap_w: Floats) -> tuple[Floats, Bools]:
    """The relative clock under a power cap: the requested one, or the root of P(φ) = cap, by bisection.

    P rises with φ, so the root is unique. Returns the clocks and which rows are held down.
    """
    phi = d.phi.copy()
    capped = np.isfinite(cap_w) & (_free(theta, d, False).power_w > cap_w)
    if capped.any():
        sub, limit = d.take(capped), cap_w[capped]
        low, high = np.full(len(limit), LOWEST_PHI), sub.phi.copy()
        p_low, p_high = (_free(theta, sub.at_clock(f), False).power_w for f in (low, high))
        for step in range(BISECTIONS + 2):
            middle = 0.5 * (low + high)
            if step >= BISECTIONS:  # the bracket is so narrow that P is straight in it
                slope = np.maximum(p_high - p_low, _TINY)
                middle = np.clip(low + (limit - p_low) / slope * (high - low), low, high)
            p_middle = _free(theta, sub.at_clock(middle), False).power_w
            above = p_middle > limit
            high, p_high = np.where(above, middle, high), np.where(above, p_middle, p_high)
            low, p_low = np.where(above, low, middle), np.where(above, p_low, p_middle)
        # A cap below the power at the lowest clock cannot be kept: the clock stays there.
        phi[capped] = np.where(p_low > limit, LOWEST_PHI, middle)
    return phi, capped


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


def _free(theta: Floats, d: Design, jacobian: bool) -> Values:
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
    power, j_power = _power(theta, d, share, j_share)
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
