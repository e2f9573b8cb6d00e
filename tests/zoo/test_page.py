"""docs/workloads.md says of every model what the code says, and its own class is a workload that trains."""

import re
from pathlib import Path

import pytest
import torch

from models_zoo import ZOO
from pfprofile.train.resolve import load_workload, parse_workload
from pfprofile.train.workload import describe, missing_parts

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")


def table_row(name):
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` | ") and line.count("|") == 8)
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", ZOO)
def test_the_table_says_what_the_code_says(name):
    workload = load_workload(parse_workload(name))
    _, parameters, unit, epoch, batches, settings, _ = table_row(name)
    with torch.device("meta"):
        count = sum(p.numel() for p in workload.build(dict(workload.defaults)).parameters())
    facts = workload.facts
    assert parameters == f"{count:,}"
    assert unit == facts.sample_unit
    assert epoch == f"{facts.samples_per_epoch:,}"
    assert batches == f"{facts.reference_local_batch} / {facts.default_global_batch}"
    shown = dict(pair.split() for pair in settings.split(", "))
    defaults = {key: value for key, value in workload.defaults.items() if key != "channels_last"}
    assert shown == {key: str(value).lower() for key, value in defaults.items()}


def test_the_small_settings_exist():
    rows = re.findall(r"^\| (`[^|]+`) \| `(--set [^|]+)` \|$", PAGE, re.MULTILINE)
    told = {name: settings for names, settings in rows for name in re.findall(r"`(\w+)`", names)}
    assert set(told) == set(ZOO)
    for name, settings in told.items():
        known = describe(load_workload(parse_workload(name))).defaults
        assert set(re.findall(r"--set (\w+)=", settings)) <= set(known)


def test_the_class_on_the_page_trains():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    scope: dict = {}
    exec(compile(code, "docs/workloads.md", "exec"), scope)
    assert missing_parts(scope["Tagger"]) == []
    torch.manual_seed(0)
    workload = scope["Tagger"]()
    module = workload.build(workload.defaults)
    optimizer = workload.optimizer(module.parameters())
    inputs, targets = workload.batch(2, workload.defaults, torch.device("cpu"), torch.Generator().manual_seed(1))
    losses = []
    for _ in range(5):
        loss = workload.loss(module(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
