"""What the model commands print and read, as column tables: predictions, points, fit reports."""

from __future__ import annotations

#: name, type, unit, may it be null, what it is
Field = tuple[str, str, str, bool, str]

_POINT: tuple[Field, ...] = (
    ("n_gpus", "int", "", False, "GPUs that train together"),
    ("n_nodes", "int", "", False, "nodes they sit on"),
    ("local_batch", "int", "samples", False, "samples a GPU takes in one forward pass"),
    ("accum_steps", "int", "", False, "forward passes accumulated in one optimizer step"),
    ("sm_clock_mhz", "float", "MHz", True, "requested SM clock; null = not locked"),
)
_DEFAULTS = {
    "n_gpus": "1",
    "n_nodes": "as few as the node size allows",
    "local_batch": "the largest measured one",
    "accum_steps": "1",
    "sm_clock_mhz": "not locked",
}
PREDICTIONS: tuple[Field, ...] = (
    *_POINT,
    ("step_time_s", "float", "s", False, "time of one optimizer step"),
    ("step_time_lo_s", "float", "s", False, "lower end of its 90 % interval"),
    ("step_time_hi_s", "float", "s", False, "upper end of its 90 % interval"),
    ("throughput_per_s", "float", "samples/s", False, "samples a second over all GPUs"),
    ("power_w", "float", "W", True, "mean power of one GPU while stepping; null = the model has no power"),
    ("power_lo_w", "float", "W", True, "lower end of its 90 % interval"),
    ("power_hi_w", "float", "W", True, "upper end of its 90 % interval"),
    ("energy_per_step_j", "float", "J", True, "energy of one optimizer step, all GPUs"),
    ("extrapolated", "bool", "", False, "whether the point lies outside what was measured"),
)
_PART = (
    ("in_sample_mape", "float", "1", False, "mean absolute relative error on the trials that were fitted"),
    ("cv", "object", "1", False, "axis → error on values of it that were left out of the fit"),
    ("coverage", "object", "1", False, "axis → share of left-out trials inside their 90 % interval"),
    ("baselines", "object", "1", False, "simple model → axis → its error on the same left-out values"),
)
FIT_REPORT: tuple[Field, ...] = (
    ("model_path", "string", "", False, "the model file that was written"),
    ("workload", "string", "", False, "the training job's network and data shape"),
    ("device_name", "string", "", False, "the device as its driver names it"),
    ("source", "string", "", False, "measured, synthetic or imported: the profile's"),
    ("rows", "int", "", False, "trials that were read"),
    ("points", "int", "", False, "distinct points that were fitted"),
    ("converged", "bool", "", False, "whether the solver converged"),
    ("parameters", "object", "", False, "name → parameter"),
    ("parameters.*.value", "float", "its unit", False, "fitted value"),
    ("parameters.*.stderr", "float", "its unit", True, "standard error; null = frozen"),
    ("parameters.*.frozen", "bool", "", False, "whether the data could not identify it"),
    ("parameters.*.reason", "string", "", True, "why it was frozen, or is hardly known"),
    ("parameters.*.unit", "string", "", False, "its unit"),
    ("parameters.*.weak", "bool", "", False, "whether it is hardly known"),
    ("parameters.*.at_bound", "bool", "", False, "whether it stands at the edge of what is allowed"),
    ("quality", "object", "", False, "errors of the two halves of the model"),
    ("quality.throughput", "object", "", False, "of step time and throughput"),
    *((f"quality.throughput.{n}", t, u, null, d) for n, t, u, null, d in _PART),
    ("quality.power", "object", "", True, "of power, as those of throughput; null = power was not measured"),
    *((f"quality.power.{n}", t, u, null, d) for n, t, u, null, d in _PART),
    ("correlations", "list", "", False, "pairs of parameters that are known only together: a, b, correlation"),
    ("worst_rows", "list", "", False, "the points that the model predicts worst"),
    ("next_points", "list", "", False, "the points that would tell most, with the reason"),
    ("warnings", "list", "", False, "what to know before using the model"),
)


def _rows(fields: tuple[Field, ...]) -> list[dict[str, str]]:
    return [
        {"column": name, "type": kind, "unit": unit, "null": "yes" if null else "no", "description": text}
        for name, kind, unit, null, text in fields
    ]


def prediction_table() -> list[dict[str, str]]:
    """One row a column of ``predict --format json|csv``."""
    return _rows(PREDICTIONS)


def point_table() -> list[dict[str, str]]:
    """One row a column of ``predict --points FILE``; every one may be missing and takes its default."""
    return _rows(tuple((n, t, u, True, f"{d}; default: {_DEFAULTS[n]}") for n, t, u, _, d in _POINT))


def fit_report_table() -> list[dict[str, str]]:
    """One row a key of ``fit --format json``, nested ones by their path; ``*`` stands for any name."""
    return _rows(FIT_REPORT)
