"""A fitted model as the rest of the tool sees it: predictions with intervals, and draws. numpy only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from pfprofile.model.document import ModelDocument
from pfprofile.model.domain import outside, refuse_unspoken
from pfprofile.model.forms import Values, evaluate, to_inner
from pfprofile.model.intervals import OUTSIDE_FACTOR, t_quantile
from pfprofile.model.points import Bools, Floats, Points, Predictions
from pfprofile.model.residual import ResidualField, features
from pfprofile.model.terms import INDEX, TERMS, Design

if TYPE_CHECKING:
    from pfprofile.profile.metadata import WorkloadFacts


@dataclass(frozen=True, slots=True)
class Answer:
    """Predicted time (s) and power (W), with the half-widths of their intervals in nats; power NaN where unknown."""

    time_s: Floats
    time_half: Floats
    power_w: Floats
    power_half: Floats


class FittedModel:
    """A throughput (and power) model of one workload on one device type.

    Args:
        document: the checked model file.
    """

    def __init__(self, document: ModelDocument) -> None:
        self.document = document
        self._theta = np.ones(len(TERMS))
        for parameter in document.parameters:
            self._theta[INDEX[parameter.name]] = parameter.value
        self._indices = [INDEX[name] for name in document.covariance.names]
        self._covariance = np.array(document.covariance.matrix, dtype=np.float64).reshape(len(self._indices), -1)
        self._field = ResidualField(document.residual)

    @property
    def workload(self) -> str:
        """Name of the training job's network and data shape."""
        return self.document.workload

    @property
    def device_name(self) -> str:
        """The device as its driver names it."""
        return self.document.device_name

    @property
    def source(self) -> Literal["measured", "synthetic", "imported"]:
        """The profile's source."""
        return self.document.source

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the model."""
        return self.document.digest()

    @property
    def facts(self) -> WorkloadFacts:
        """Sample unit, samples per epoch, reference batches."""
        from pfprofile.profile.metadata import WorkloadFacts

        return WorkloadFacts(**self.document.facts.model_dump())

    @property
    def has_power(self) -> bool:
        """Whether power and energy can be predicted."""
        return self.document.forms.get("power") is not None

    @property
    def gpus_per_node(self) -> int:
        """GPUs in one node of the machine that was profiled."""
        return self.document.domain.gpus_per_node

    @property
    def supported_clocks_mhz(self) -> tuple[float, ...]:
        """SM clocks that may be locked, MHz, ascending; empty = clocks cannot be chosen.

        Where the driver's list is unknown, the clocks that were measured.
        """
        if len(self.document.domain.clock_mhz) < 2:
            return ()
        return tuple(sorted(self.document.clocks.supported_mhz or self.document.domain.clock_mhz))

    @property
    def default_clock_mhz(self) -> float | None:
        """The clock of an unlocked GPU, MHz, where known."""
        clocks = self.document.clocks
        return clocks.default_mhz if clocks.default_mhz is not None else clocks.f_max_mhz

    @property
    def max_local_batch(self) -> int | None:
        """Largest local batch known to fit in memory, samples."""
        return self.document.domain.max_local_batch

    @property
    def idle_power_w(self) -> float | None:
        """Idle power of one GPU, W, where it was measured."""
        return self.document.idle_power_w

    def design(self, points: Points) -> Design:
        """Points as the form takes them; an unlocked clock is the default one."""
        clocks = self.document.clocks
        phi = np.ones(len(points))
        if clocks.f_max_mhz is not None:
            default = clocks.default_mhz if clocks.default_mhz is not None else clocks.f_max_mhz
            share = np.where(np.isfinite(points.sm_clock_mhz), points.sm_clock_mhz * clocks.achieved_share, default)
            phi = share / clocks.f_max_mhz
        n, k, b, s = (a.astype(np.float64) for a in (points.n_gpus, points.n_nodes, points.local_batch,
                                                     points.accum_steps))  # fmt: skip
        return Design(n, k, b, s, phi)

    def _caps(self, count: int, power_limit_w: float | None) -> Floats:
        cap = power_limit_w if power_limit_w is not None else self.document.clocks.cap_w
        return np.full(count, math.nan if cap is None or not self.has_power else cap)

    def _loadings(self, values: Values) -> tuple[Floats, Floats]:
        """Derivatives of log time and log power by the uncertain parameters."""
        assert values.d_log_time is not None and values.d_log_power is not None
        return (to_inner(values.d_log_time, self._theta)[:, self._indices],
                to_inner(values.d_log_power, self._theta)[:, self._indices])  # fmt: skip

    def answer(self, design: Design, cap_w: Floats, far: Bools, level: float = 0.9) -> Answer:
        """Time and power of configurations under each its own power cap, without refusing any.

        Args:
            design: the configurations, (m,).
            cap_w: power limit of one GPU, W, (m,); NaN = none.
            far: outside the domain: no residual stage, wider intervals.
            level: of the intervals.
        """
        noise = self.document.noise
        values = evaluate(self._theta, design, cap_w, jacobian=True)
        j_time, j_power = self._loadings(values)
        quantile = t_quantile(level, noise.dof) * np.where(far, OUTSIDE_FACTOR, 1.0)
        x = features(design.at_clock(values.phi))
        shift, variance = self._field.posterior(x, "time", far)
        time = values.time_s * np.exp(shift)
        time_half = quantile * np.sqrt(self._variance(j_time) + noise.time**2 + variance)
        power = power_half = np.full(len(design.n), math.nan)
        if self.has_power:
            shift, variance = self._field.posterior(x, "power", far)
            power = values.power_w * np.exp(shift)
            # What the form leaves over does not lift the power above its limit.
            power = np.where(cap_w < power, np.maximum(values.power_w, np.minimum(power, cap_w)), power)
            power_half = quantile * np.sqrt(self._variance(j_power) + (noise.power or 0.0) ** 2 + variance)
        return Answer(time, time_half, power, power_half)

    def predict(self, points: Points, level: float = 0.9, *, power_limit_w: float | None = None) -> Predictions:
        """Time, throughput, power and energy with intervals of the given level.

        Args:
            points: what to predict.
            level: share of new measurements that the intervals should hold.
            power_limit_w: power limit of one GPU, W; default the one the model was fitted under.

        Raises:
            InputError: an axis the model cannot speak about (only one value was measured); says what to measure.
        """
        document = self.document
        refuse_unspoken(document.domain, document.clocks, self.workload, points)
        far = outside(document.domain, document.clocks, points)
        design = self.design(points)
        a = self.answer(design, self._caps(len(points), power_limit_w), far, level)
        return Predictions(
            points=points,
            step_time_s=a.time_s,
            step_time_lo_s=a.time_s * np.exp(-a.time_half),
            step_time_hi_s=a.time_s * np.exp(a.time_half),
            throughput_per_s=design.n * design.b * design.s / a.time_s,
            power_w=a.power_w,
            power_lo_w=a.power_w * np.exp(-a.power_half),
            power_hi_w=a.power_w * np.exp(a.power_half),
            energy_per_step_j=design.n * a.power_w * a.time_s,
            extrapolated=far,
        )

    def uncertainty(self, points: Points) -> tuple[Floats, Floats, float]:
        """Parts of the variance of log time: loadings (m, q) on the covariance, the residual stage's, the noise."""
        design = self.design(points)
        values = evaluate(self._theta, design, self._caps(len(points), None), jacobian=True)
        inside = np.zeros(len(points), dtype=np.bool_)
        _, variance = self._field.posterior(features(design.at_clock(values.phi)), "time", inside)
        return self._loadings(values)[0], variance, self.document.noise.time

    def _variance(self, loadings: Floats) -> Floats:
        return np.asarray(np.einsum("ij,jk,ik->i", loadings, self._covariance, loadings), dtype=np.float64)

    def draws(self, points: Points, n_draws: int, seed: int) -> tuple[Floats, Floats]:
        """Joint samples from the model's uncertainty, for all points at once.

        One draw is one possible truth: parameters from their covariance (to first order), and a smooth error field
        over the configurations in place of the form's misfit. The same seed gives the same truths at other points.

        Returns:
            step_time_s and power_w, each (n_draws, m); power NaN where the model has none.

        Raises:
            InputError: as `predict`.
        """
        document = self.document
        refuse_unspoken(document.domain, document.clocks, self.workload, points)
        far = np.where(outside(document.domain, document.clocks, points), OUTSIDE_FACTOR, 1.0)
        design = self.design(points)
        values = evaluate(self._theta, design, self._caps(len(points), None), jacobian=True)
        j_time, j_power = self._loadings(values)
        rng = np.random.default_rng(seed)
        eigen, vectors = np.linalg.eigh(self._covariance)
        root = vectors * np.sqrt(np.clip(eigen, 0.0, None))
        delta = rng.standard_normal((n_draws, root.shape[1])) @ root.T
        x = features(design.at_clock(values.phi))
        out = []
        parts = (
            ("time", values.time_s, j_time, document.noise.time),
            ("power", values.power_w, j_power, document.noise.power or 0.0),
        )
        for part, base, loading, sigma in parts:
            shift, variance = self._field.posterior(x, part, far > 1)
            field = self._field.smooth(x, n_draws, rng)
            error = delta @ loading.T + field * np.sqrt(variance + sigma**2)
            out.append(base * np.exp(shift) * np.exp(error * far))
        if not self.has_power:
            out[1] = np.full_like(out[0], math.nan)
        return out[0], out[1]
