"""An export of one's own: the schedule as a Markdown table, one line a stretch.

pfprofile plan --jobs examples/jobs.toml --cluster examples/cluster.toml --export examples/export.py:Markdown:DIR
"""

from collections.abc import Mapping

from pfprofile.plan.exports.base import ExportPlan


class Markdown:
    """``plan.md``. Option: ``title``."""

    name = "markdown"
    options: Mapping[str, str] = {"title": "Schedule"}

    def files(self, plan: ExportPlan, options: Mapping[str, str]) -> dict[str, str]:
        """Text of each file by its path in the folder."""
        lines = [
            f"# {options['title']}",
            "",
            "| job | start | end | GPUs | nodes | first clock |",
            "|---|--:|--:|--:|---|--:|",
        ]
        for stretch in plan.stretches:
            nodes = ", ".join(stretch.gpus)
            clock = stretch.values()["clock"]
            lines.append(
                f"| {stretch.job.name} | {stretch.start_s:.0f} s | {stretch.end_s:.0f} s | {stretch.n_gpus} "
                f"| {nodes} | {clock} |"
            )
        return {"plan.md": "\n".join([*lines, ""])}
