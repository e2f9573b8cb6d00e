"""From a profile to a fitted model: read, pose, solve, measure the uncertainty, write down what happened."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from pfprofile._version import __version__
from pfprofile.model.document import (
    Clocks,
    Covariance,
    Facts,
    ModelDocument,
    Noise,
    Parameter,
    PartQuality,
    Provenance,
    Quality,
    Residual,
    ResidualPart,
)
from pfprofile.model.domain import domain_of
from pfprofile.model.fitted import FittedModel
from pfprofile.model.fitting import STARTS, Frame, Problem, Solution, frame_of, pose, solve
from pfprofile.model.intervals import Spread, spread_of
from pfprofile.model.observations import Observations, from_profile, idle_power
from pfprofile.model.points import Floats
from pfprofile.model.residual import features
from pfprofile.model.residual_fit import Process, fit_process
from pfprofile.model.terms import TERMS

if TYPE_CHECKING:
    from pfprofile.profile import Profile, ProfileMetadata

FORMS = {"throughput": "floor-pnorm-sync", "power": "static-plus-cv2f"}
BOUND_TOLERANCE = 1e-3
#: values that a fit leaves out on one axis to judge itself; `validate` leaves out every one
FOLDS_IN_FIT = 6


@dataclass(frozen=True, slots=True)
class Fit:
    """A solved problem with its uncertainty."""

    problem: Problem
    solution: Solution
    spread: Spread


@dataclass(frozen=True, slots=True)
class Context:
    """What a fit knows of a data set beside its rows.

    Attributes:
        metadata: the profile's.
        workload, device_name, precision: what was trained, on what, in which number format.
        idle_power_w: measured idle power of one GPU, W.
        oom_batches: local batches that did not fit.
        digest: of the profile.
        rows: trials in the profile.
    """

    metadata: ProfileMetadata
    workload: str
    device_name: str
    precision: str
    idle_power_w: float | None
    oom_batches: list[int]
    digest: str
    rows: int

    @classmethod
    def of(cls, profile: Profile) -> Context:
        """Read it off a profile that has rows."""
        table = profile.table.select(["status", "local_batch", "idle_power_w"]).to_pydict()
        oom = [b for b, s in zip(table["local_batch"], table["status"], strict=True) if s == "oom"]
        workload, device, precision = (str(profile.unique(c)[0]) for c in ("workload", "device_name", "precision"))
        return cls(profile.metadata, workload, device, precision, idle_power(table), sorted(set(oom)),
                   profile.digest(), profile.n_rows)  # fmt: skip


def frame_for(obs: Observations, metadata: ProfileMetadata) -> Frame:
    """The clock frame of a profile."""
    return frame_of(obs, metadata.default_clock_mhz, metadata.supported_clocks_mhz, metadata.power_limit_w)


def clocks_that_count(obs: Observations, metadata: ProfileMetadata) -> Observations:
    """Drop clocks that nobody set: a measured device that offers none only shows its own wandering."""
    if metadata.source == "measured" and not metadata.supported_clocks_mhz and not np.isfinite(obs.requested_mhz).any():
        nothing = np.full(len(obs), np.nan)
        columns = {name: getattr(obs, name) for name in obs.__dataclass_fields__}
        return Observations(**{**columns, "achieved_mhz": nothing})
    return obs


def fit_observations(obs: Observations, frame: Frame, device_name: str = "", idle_power_w: float | None = None,
                     starts: int = len(STARTS)) -> Fit:  # fmt: skip
    """Fit one data set."""
    problem = pose(obs, frame, device_name, idle_power_w)
    solution = solve(problem, starts)
    return Fit(problem, solution, spread_of(problem, solution))


def fit_profile(
    profile: Profile, where: str = "profile", *, starts: int = len(STARTS), dated: bool = True
) -> FittedModel:
    """Fit the throughput and (where power was measured) power model of a profile.

    Args:
        profile: all trials of one workload on one device type.
        where: the profile's name, for errors.
        starts: how many starting points to try.
        dated: write the time of the fit into the model.

    Raises:
        InputError: nothing to fit, mixed workloads, or impossible values.
    """
    obs = clocks_that_count(from_profile(profile, where), profile.metadata)
    context = Context.of(profile)
    frame = frame_for(obs, profile.metadata)
    fit = fit_observations(obs, frame, context.device_name, context.idle_power_w, starts)
    return FittedModel(judged(fit, context, dated=dated))


def judged(fit: Fit, context: Context, *, dated: bool, folds: int | None = FOLDS_IN_FIT) -> ModelDocument:
    """A fit's document with held-out errors, baselines and advice."""
    from pfprofile.model.advise import advice_of
    from pfprofile.model.baselines import IN_REPORTS
    from pfprofile.model.validate import baseline_errors, cross_validate, predict_rows, with_quality

    obs, document = fit.problem.obs, document_of(fit, context, dated=dated)
    seen = predict_rows(FittedModel(document), obs, fit.problem.frame, np.arange(len(obs)))
    document = document.model_copy(update={
        "quality": quality_of(obs, seen.time_s, seen.power_w),
        "advice": advice_of(document, obs, seen.time_s, seen.power_w),
    })  # fmt: skip
    held = cross_validate(fit, context, folds)
    return with_quality(document, obs, held, {axis: baseline_errors(obs, axis, IN_REPORTS, folds) for axis in held})


def document_of(fit: Fit, context: Context, *, dated: bool = False) -> ModelDocument:
    """Write a fit down."""
    obs, metadata = fit.problem.obs, context.metadata
    spread = fit.spread
    residual, noise = residual_of(fit)
    frame = fit.problem.frame
    facts = Facts(**{n: getattr(metadata.workload, n) for n in Facts.model_fields})
    default = frame.default_mhz if math.isfinite(frame.default_mhz) else frame.f_max_mhz
    return ModelDocument(
        workload=context.workload,
        device_name=context.device_name,
        precision=context.precision,
        source=cast("Literal['measured', 'synthetic', 'imported']", metadata.source),
        facts=facts,
        forms={"throughput": FORMS["throughput"], "power": FORMS["power"] if obs.has_power else None},
        parameters=parameters_of(fit),
        covariance=Covariance(names=[TERMS[j].name for j in spread.indices], matrix=spread.covariance.tolist()),
        noise=noise,
        residual=residual,
        clocks=clocks_of(fit, metadata),
        domain=domain_of(obs, default, metadata.gpus_per_node, context.oom_batches),
        idle_power_w=context.idle_power_w,
        converged=fit.solution.converged,
        quality=quality_of(obs, fit.solution.values.time_s, fit.solution.values.power_w),
        provenance=Provenance(
            profile_digest=context.digest,
            rows=context.rows,
            points=len(obs),
            created_at=datetime.now(UTC).isoformat(timespec="seconds") if dated else None,
            tool_version=__version__,
            replayed_from=metadata.replayed_from,
            notes=list(metadata.notes),
        ),
        warnings=warnings_of(fit, context),
    )


def residual_of(fit: Fit) -> tuple[Residual | None, Noise]:
    """The residual stage, and the noise that is left where it stands."""
    obs, values, spread = fit.problem.obs, fit.solution.values, fit.spread
    inputs = features(fit.problem.design.at_clock(values.phi))
    powered = np.flatnonzero(np.isfinite(obs.power_w))
    time = fit_process(inputs, np.log(obs.step_time_s / values.time_s))
    power = fit_process(inputs[powered], np.log(obs.power_w[powered] / values.power_w[powered]))
    noise = Noise(
        time=min(time.noise, spread.sigma_time) if time else spread.sigma_time,
        power=min(power.noise, spread.sigma_power) if power else _known(spread.sigma_power),
        dof=spread.dof,
    )
    if time is None and power is None:
        return None, noise
    return Residual(time=_part(time, inputs), power=_part(power, inputs[powered])), noise


def _part(process: Process | None, inputs: Floats) -> ResidualPart | None:
    if process is None:
        return None
    return ResidualPart(amplitude=process.amplitude, noise=process.noise,
                        inputs=np.round(inputs[process.rows], 9).tolist(),
                        values=process.values.tolist())  # fmt: skip


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def parameters_of(fit: Fit) -> list[Parameter]:
    """Each parameter's value, standard error, and what keeps it from being trusted."""
    out = []
    indices = list(fit.spread.indices)
    for j, term in enumerate(TERMS):
        if term.part == "power" and not fit.problem.obs.has_power:
            continue
        value = float(fit.solution.theta[j])
        frozen = fit.problem.frozen.get(term.name)
        stderr = None
        if frozen is None:
            sd = math.sqrt(max(fit.spread.covariance[indices.index(j), indices.index(j)], 0.0))
            stderr = sd * value if term.log else sd
        inner = term.inner(value) if value > 0 or not term.log else -math.inf
        bounds = [term.inner(b) for b in (term.lower, term.upper) if b > 0 or not term.log]
        at_bound = frozen is None and any(abs(inner - b) < BOUND_TOLERANCE for b in bounds)
        weak = fit.spread.weak.get(term.name)
        reason = frozen.reason if frozen else weak
        out.append(Parameter(name=term.name, unit=term.unit, value=value, stderr=stderr, frozen=frozen is not None,
                             reason=reason or ("at its bound" if at_bound else None), weak=weak is not None,
                             at_bound=at_bound))  # fmt: skip
    return out


def clocks_of(fit: Fit, metadata: ProfileMetadata) -> Clocks:
    """The clock frame as the file holds it, with the cap that predictions are made under."""
    frame, obs = fit.problem.frame, fit.problem.obs
    limits = obs.power_limit_w[np.isfinite(obs.power_limit_w)]
    cap = metadata.power_limit_w
    if cap is None and len(limits):
        cap = float(limits.max())
    inferred = cap is None and math.isfinite(frame.cap_w)
    if inferred:
        cap = frame.cap_w
    both = np.isfinite(obs.requested_mhz) & np.isfinite(obs.achieved_mhz)
    ratio = obs.achieved_mhz[both] / obs.requested_mhz[both]
    near = ratio[ratio > 0.95]
    share = float(np.median(near)) if len(near) else 1.0
    return Clocks(f_max_mhz=_known(frame.f_max_mhz), default_mhz=_known(frame.default_mhz),
                  supported_mhz=sorted(metadata.supported_clocks_mhz), cap_w=cap if obs.has_power else None,
                  cap_inferred=inferred, achieved_share=share if abs(share - 1) > 1e-3 else 1.0)  # fmt: skip


def quality_of(obs: Observations, time_s: Floats, power_w: Floats) -> Quality:
    """In-sample errors of predictions, (m,)."""
    powered = np.isfinite(obs.power_w)
    time = float(np.mean(np.abs(time_s / obs.step_time_s - 1)))
    power = None
    if powered.any():
        power = PartQuality(in_sample_mape=float(np.mean(np.abs(power_w / obs.power_w - 1)[powered])))
    return Quality(throughput=PartQuality(in_sample_mape=time), power=power)


def warnings_of(fit: Fit, context: Context) -> list[str]:
    """What a reader of the model should know before trusting it."""
    out = []
    if not fit.problem.obs.has_power:
        out.append("no power was measured: the model speaks of throughput only")
    if not fit.solution.converged:
        out.append(f"the fit did not converge: {fit.solution.message}")
    if context.metadata.source == "synthetic":
        out.append("fitted to a synthetic profile: nothing about accuracy follows from it")
    if len(fit.problem.obs) < 8:
        out.append(f"only {len(fit.problem.obs)} distinct points: priors carry much of the model")
    bound = [p.name for p in parameters_of(fit) if p.at_bound]
    if bound:
        out.append(f"at a bound: {', '.join(bound)}")
    return out
