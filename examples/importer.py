"""An importer of one's own: JSON lines, one a run, as a home-made benchmark might write them.

pfprofile import examples/importer.py:JsonLines runs.jsonl --set device_name="NVIDIA A40"
"""

import json
from collections.abc import Sequence
from pathlib import Path

from pfprofile.errors import InputError
from pfprofile.profile.importers import Imported, ImportOptions
from pfprofile.profile.importers.facts import pairs, split_targets
from pfprofile.profile.importers.finish import finish


class JsonLines:
    """``{"net": "resnet50", "gpus": 4, "batch": 64, "seconds_per_step": 0.16, "watts": 310}`` in each line."""

    name = "json-lines"
    summary = "one JSON object a run"
    takes = frozenset({"constants"})

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """Every line is a trial; what `--set` says holds for all of them."""
        columns, facts = split_targets(pairs(options.constants, "--set", "device_name=NAME"))
        trials = []
        for path in paths:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                try:
                    run = json.loads(line)
                    trial = {
                        "line": number, "workload": run["net"], "n_gpus": run["gpus"], "local_batch": run["batch"],
                        "step_time_s": run["seconds_per_step"], "power_w": run.get("watts"), **columns,
                    }  # fmt: skip
                except (ValueError, KeyError) as error:
                    raise InputError(f"{path}: line {number}: {error}", "expected net, gpus, batch, …") from None
                trials.append(trial)
        return finish(trials, facts, paths, str(paths[0]), (), [])
