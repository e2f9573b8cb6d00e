"""``slurm:DIR``: one batch script a stretch, a script that submits them in order, snippets for sites without root."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping

from pfprofile._version import __version__
from pfprofile.plan.exports import slurm_text as text
from pfprofile.plan.exports.base import ExportPlan, Stretch, clock_changes

#: a stretch may take so much longer than planned before Slurm ends it, plus some minutes for its start
SLACK, SLACK_S = 1.25, 300.0


class Slurm:
    """Batch scripts. Options: ``qos``, and ``gpu``, the GRES type where nodes have several (``a100``)."""

    name = "slurm"
    options: Mapping[str, str] = {"qos": "", "gpu": ""}

    def files(self, plan: ExportPlan, options: Mapping[str, str]) -> dict[str, str]:
        """See `pfprofile.plan.exports.base.Exporter`."""
        scripts = {f"{s.slug}.sbatch": _script(s, options) for s in plan.stretches}
        return {
            **scripts,
            "submit.sh": _submit(plan),
            "prolog.sh": text.PROLOG,
            "epilog.sh": text.EPILOG,
            "README.md": text.README,
            "manifest.json": _manifest(plan),
        }


def _script(stretch: Stretch, options: Mapping[str, str]) -> str:
    job = stretch.job
    zoo = job.command is None
    head = {
        "job-name": stretch.slug,
        "output": "logs/%x-%j.log",
        "nodes": str(len(stretch.gpus)),
        "nodelist": ",".join(stretch.gpus),
        "ntasks-per-node": str(stretch.gpus_per_node if zoo else 1),
        "gres": ":".join(filter(None, ("gpu", options["gpu"], str(stretch.gpus_per_node)))),
        "time": _limit(stretch.end_s - stretch.start_s),
        "signal": "B:TERM@60",
        "comment": f"pfprofile:clock={stretch.values()['clock']}",
        "partition": job.partition or "",
        "account": job.account or "",
        "qos": options["qos"],
    }
    lines = ["#!/bin/bash"]
    lines += [f"#SBATCH --{key}={_sbatch_value(value)}" for key, value in head.items() if value]
    lines += [f"# job {_one_line(job.name)}, part {stretch.part}{' (the last)' if stretch.last else ''}: planned from "
              f"{stretch.start_s:.0f} s to {stretch.end_s:.0f} s, steps {stretch.first_step} to {stretch.last_step}",
              f"# written by pfprofile {__version__}"]  # fmt: skip
    values = {"job": job.name, **stretch.values()}
    lines += [f"export PFPROFILE_{key.upper()}={shlex.quote(value)}" for key, value in values.items()]
    end_after_s = 0 if stretch.knows_its_end else max(1, math.ceil(stretch.end_s - stretch.start_s))
    lines += [f"command={shlex.quote(stretch.command())}", f"end_after_s={end_after_s}"]
    locks = any(clock is not None for _, clock in stretch.clocks)
    lines += [f"clocks=({clock_changes(stretch) if locks else ''})"]
    return "\n".join(lines) + "\n" + text.BODY


def _sbatch_value(value: str) -> str:
    """Slurm splits its comment lines like a shell, without expanding anything."""
    return value if all(c.isalnum() or c in "._-:,/%@=+[]" for c in value) else '"' + _one_line(value, '"\\') + '"'


def _one_line(value: str, without: str = "") -> str:
    return "".join("_" if c in without or not c.isprintable() else c for c in value)


def _limit(planned_s: float) -> str:
    minutes = math.ceil((planned_s * SLACK + SLACK_S) / 60.0)
    days, minutes = divmod(minutes, 1440)
    return f"{days}-{minutes // 60:02d}:{minutes % 60:02d}:00"


def _submit(plan: ExportPlan) -> str:
    lines = [text.SUBMIT_HEAD]
    for stretch in plan.stretches:
        arguments = []
        if stretch.after:
            arguments.append("--dependency=afterany:" + ":".join(f"${{id[{k}]}}" for k in stretch.after))
        if stretch.begin_s is not None:
            arguments.append(f"--begin=now+{math.floor(stretch.begin_s - plan.start_s)}")
        lines.append(f"submit {stretch.number} {' '.join([*arguments, f'{stretch.slug}.sbatch'])}")
    if not plan.stretches:
        lines.append('echo "nothing to submit: the schedule is empty" >&2')
    return "\n".join(lines) + "\n"


def _manifest(plan: ExportPlan) -> str:
    rows = [
        {
            "script": f"{s.slug}.sbatch", "job_name": s.slug, "job": s.job.name, "part": s.part, "last": s.last,
            "start_s": s.start_s, "end_s": s.end_s, "gpus": {node: list(i) for node, i in s.gpus.items()},
            "clocks_mhz": [{"after_s": offset, "sm_clock_mhz": clock} for offset, clock in s.clocks],
            "first_step": s.first_step, "last_step": s.last_step, "global_batch": s.job.global_batch,
            "after": [plan.stretches[k - 1].slug for k in s.after], "begin_s": s.begin_s,
            "energy_j": s.energy_j,
        }
        for s in plan.stretches
    ]  # fmt: skip
    return json.dumps({"tool_version": __version__, "stretches": rows}, indent=1, allow_nan=False) + "\n"
