"""Model files for the command line's tests: the shipped ResNet-50, renamed, of fewer GPUs, or without its power."""

from __future__ import annotations

from pathlib import Path

from pfprofile.model import load_model, save_model
from pfprofile.model.fitted import FittedModel
from pfprofile.profile.places import device_slug, shipped_root

A100 = "NVIDIA A100-SXM4"


def save(folder: Path, workload: str = "resnet50", device_name: str = A100, *, power: bool = True) -> Path:
    """Save under ``folder/<slug>/<workload>.json``; an epoch is 50,000 samples, 16 GPUs were profiled."""
    document = load_model(shipped_root() / "a100-sxm4" / "resnet50.json").document
    domain = document.domain.model_copy(update={"n_gpus": [1, 2, 4, 8, 16], "n_nodes": [1, 2]})
    facts = document.facts.model_copy(update={"samples_per_epoch": 50_000})
    forms = document.forms if power else {"throughput": document.forms["throughput"]}
    changes = {"workload": workload, "device_name": device_name, "domain": domain, "facts": facts, "forms": forms}
    path = folder / device_slug(device_name) / f"{workload}.json"
    save_model(FittedModel(document.model_copy(update=changes)), path)
    return path
