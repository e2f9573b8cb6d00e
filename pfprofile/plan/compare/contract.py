"""The comparison's fields: one table for the JSON, the columns, the schema and the documentation."""

from __future__ import annotations

from typing import Any, NamedTuple


class Field(NamedTuple):
    """A field of one part of a comparison; ``null`` = it may be unknown or not apply."""

    part: str
    name: str
    type: str
    null: bool
    description: str


FIELDS = (
    Field("runs", "trace", "string", False, "the trace's file name"),
    Field("runs", "policy", "string", False, "who gets what"),
    Field("runs", "clock_rule", "string", True, "max, zeus or energy-optimal; null: the policy chooses clocks itself"),
    Field("runs", "knob", "number", True, "the swept parameter's value: λ (s/J), energy factor, η, or what was asked"),
    Field("runs", "seed", "integer", False, "of the draws of models"),
    Field("runs", "jobs", "integer", False, "jobs of the trace with any work"),
    Field("runs", "offered_load", "number", True, "GPU time asked for ÷ the cluster's until the last arrival"),
    Field("runs", "avg_jct_s", "number", False, "mean of finish − submit, s"),
    Field("runs", "median_jct_s", "number", False, "median, s"),
    Field("runs", "p99_jct_s", "number", False, "99th percentile, s"),
    Field("runs", "makespan_s", "number", False, "first arrival to last finish, s"),
    Field("runs", "energy_j", "number", False, "total: GPUs, idle GPUs in nodes that are on, nodes, J"),
    Field("runs", "gpu_energy_j", "number", False, "GPUs with a job, J"),
    Field("runs", "node_energy_j", "number", False, "nodes that are on, without GPUs, J"),
    Field("runs", "utilisation", "number", False, "GPU time held by jobs ÷ (GPUs × makespan)"),
    Field("runs", "rescales", "integer", False, "checkpoint-restarts, moves included"),
    Field("runs", "migrations", "integer", False, "restarts that only changed the place"),
    Field("runs", "idle_energy_j", "number", False, "idle GPUs in nodes that are on, J"),
    Field("runs", "queueing_s", "number", False, "mean time without GPUs, s"),
    Field("runs", "nodes_on", "number", True, "mean number of nodes that are on; null: nodes draw no power"),
    Field("equal_energy", "baseline", "string", False, "policy, with its clock rule and knob: afs+zeus:0.5"),
    Field("equal_energy", "policy", "string", False, "whose (energy, JCT) curve is read at the baseline's energy"),
    Field("equal_energy", "energy_j", "number", False, "the baseline's energy, mean over seeds, J"),
    Field("equal_energy", "jct_ratio", "number", False, "baseline's average JCT ÷ policy's, mean over seeds"),
    Field("equal_energy", "clamped", "boolean", False, "for some seed the energy lies outside the policy's curve"),
    Field("equal_energy", "trace", "string", False, "the trace's file name"),
    Field("equal_energy", "seeds", "integer", False, "how many"),
    Field("equal_energy", "jct_ratio_lo", "number", True, "95 % confidence interval of the mean; null: one seed"),
    Field("equal_energy", "jct_ratio_hi", "number", True, "the same, upper end"),
    Field("equal_energy", "clamped_at", "string", True, "low: the policy cannot use so little energy, and its JCT is "
          "that at its least; high: it uses less even at its fastest"),
)  # fmt: skip


def columns(part: str) -> list[str]:
    """Names of a part's fields, in order."""
    return [field.name for field in FIELDS if field.part == part]


def field_table() -> list[dict[str, str]]:
    """For ``schema comparison``."""
    rows = [
        {"field": f"{f.part}[].{f.name}", "type": f.type + (" or null" if f.null else ""), "description": f.description}
        for f in FIELDS
    ]
    text = "what went in: tool version, seeds, traces and models with digest and source, cluster"
    return [*rows, {"field": "inputs", "type": "object", "description": text}]


def json_schema() -> dict[str, Any]:
    """JSON Schema of a comparison."""

    def part(name: str) -> dict[str, Any]:
        own = [f for f in FIELDS if f.part == name]
        return {
            "type": "array",
            "items": {
                "type": "object",
                "required": [f.name for f in own],
                "properties": {
                    f.name: {"type": [f.type, "null"] if f.null else f.type, "description": f.description} for f in own
                },
            },
        }

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pfprofile comparison",
        "type": "object",
        "required": ["runs", "equal_energy"],
        "properties": {"runs": part("runs"), "equal_energy": part("equal_energy"), "inputs": {"type": "object"}},
    }
