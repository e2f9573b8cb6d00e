"""The Workload Protocol: whoever writes a class is told each member that is missing or has the wrong shape."""

import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn

from pfprofile.errors import InputError
from pfprofile.train import WorkerSet, describe, parse_workload
from pfprofile.train.build import batch_of, checked_loss, network_of, optimizer_of
from pfprofile.train.resolve import load_workload
from pfprofile.train.workload import Facts, missing_parts
from pfprofile.train.workload import describe as describe_here

REPO = Path(__file__).resolve().parents[2]


class Whole:
    defaults: ClassVar = {"width": 4, "fast": False}
    defaults_on: ClassVar = {"cuda": {"fast": True}}

    def build(self, settings):
        return nn.Linear(settings["width"], 2)

    def batch(self, local_batch, settings, device, generator):
        return torch.ones(local_batch, settings["width"]), torch.ones(local_batch, 2)

    def loss(self, output, targets):
        return nn.functional.mse_loss(output, targets)

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.1)


def changed(**members):
    return type("Changed", (Whole,), members)


def test_a_whole_class_lacks_nothing():
    assert missing_parts(Whole) == []


def test_an_empty_class_is_told_all_four_methods():
    assert missing_parts(type("Empty", (), {})) == [
        "a method build(settings)",
        "a method batch(local_batch, settings, device, generator)",
        "a method loss(output, targets)",
        "a method optimizer(parameters)",
    ]


@pytest.mark.parametrize("name", ["build", "batch", "loss", "optimizer"])
@pytest.mark.parametrize("value", [lambda self: None, lambda self, a, b, c, d, e, f: None, 3])
def test_each_method_of_the_wrong_shape_is_named(name, value):
    lacks = missing_parts(changed(**{name: value}))
    assert len(lacks) == 1
    assert lacks[0].startswith(f"a method {name}")


def test_static_and_optional_arguments_are_fine():
    static = staticmethod(lambda output, targets: None)
    assert missing_parts(changed(loss=static, optimizer=lambda self, parameters, rate=0.1: None)) == []
    assert missing_parts(changed(loss=staticmethod(lambda output: None))) != []


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"facts": {"sample_unit": "image"}}, "facts that are a pfprofile.train.workload.Facts"),
        ({"facts": Facts(sample_unit="")}, "a facts.sample_unit that is a word"),
        ({"facts": Facts(samples_per_epoch=0)}, "a facts.samples_per_epoch that is a positive whole number or None"),
        ({"facts": Facts(reference_local_batch=1.5)}, "a facts.reference_local_batch that"),
        ({"facts": Facts(default_global_batch="8")}, "a facts.default_global_batch that"),
        ({"defaults": ["width"]}, "defaults that are a mapping"),
        ({"defaults": {"width": None, "fast": True}}, "a defaults['width'] that is a number"),
        ({"defaults_on": [1]}, "defaults_on that is a mapping"),
        ({"defaults_on": {"cuda": {"fats": True}}}, "a default for fats, which defaults_on['cuda'] changes"),
        ({"defaults_on": {"cuda": {"fast": []}}}, "a defaults_on['cuda']['fast'] that is"),
        ({"torch_device": "gpu"}, "a torch_device that is 'cpu' or 'cuda'"),
    ],
)
def test_each_attribute_of_the_wrong_shape_is_named(members, named):
    lacks = missing_parts(changed(**members))
    assert len(lacks) == 1
    assert lacks[0].startswith(named)


def test_defaults_depend_on_the_device_it_is_computed_on():
    assert describe_here(Whole(), "cpu").defaults == {"width": 4, "fast": False}
    assert describe_here(Whole(), "cuda").defaults == {"width": 4, "fast": True}
    assert describe_here(changed(torch_device="cpu")(), "cuda").defaults["fast"] is False


@pytest.mark.parametrize(
    ("method", "value", "words"),
    [
        ("build", None, "Changed.build returned nothing, not a torch.nn.Module"),
        ("optimizer", 0.1, "Changed.optimizer returned a float, not a torch.optim.Optimizer"),
        ("batch", torch.ones(2), "Changed.batch returned a Tensor, not a pair (inputs, targets)"),
        ("batch", (1, 2, 3), "Changed.batch returned a tuple, not a pair (inputs, targets)"),
        ("loss", 0.5, "Changed.loss returned a float, not a tensor of one element"),
        ("loss", torch.ones(2, 3), "Changed.loss returned a tensor of shape (2, 3), not a tensor of one element"),
    ],
)
def test_each_return_of_the_wrong_kind_is_named(method, value, words):
    workload = changed(**{method: lambda self, *_: value})()
    with pytest.raises(InputError) as caught:
        module = network_of(workload, {"width": 4})
        optimizer_of(workload, module)
        inputs, targets = batch_of(workload, 2, {"width": 4}, torch.device("cpu"), torch.Generator())
        checked_loss(workload)(module(*inputs), targets)
    assert caught.value.message == words


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder on the path; what is imported from it is forgotten."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


OWN = """
from __future__ import annotations
import dataclasses
from own_parts import WIDTH
from torch import nn, optim, ones

@dataclasses.dataclass
class Own:
    bias: bool = True
    def build(self, settings): return nn.Linear(WIDTH, 1, self.bias)
    def batch(self, local_batch, settings, device, generator): return ones(local_batch, WIDTH), ones(local_batch, 1)
    def loss(self, output, targets): return (output - targets).pow(2).mean()
    def optimizer(self, parameters): return optim.SGD(parameters, lr=0.1)
"""


def test_a_file_and_a_module_load_the_same_class(folder):
    """Also one with a dataclass, and with a module beside it."""
    (folder / "own_parts.py").write_text("WIDTH = 3\n")
    (folder / "own.py").write_text(OWN)
    for text in (f"{folder / 'own.py'}:Own", "own:Own"):
        workload = load_workload(parse_workload(text))
        assert network_of(workload, {}).weight.shape == (1, 3)


def test_a_file_elsewhere_finds_the_modules_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_parts.py").write_text("WIDTH = 3\n")
    (tmp_path / "own.py").write_text(OWN)
    try:
        assert load_workload(parse_workload(f"{tmp_path / 'own.py'}:Own")).bias is True
    finally:
        for name in ("_workload_own", "own_parts"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("text", "named"),
    [("1/0", "ZeroDivisionError: division by zero"), ("class A(:", "invalid syntax"), ("import no_such", "no_such")],
)
def test_a_file_that_cannot_be_read_says_why(folder, text, named):
    (folder / "broken.py").write_text(text + "\n")
    for name in (f"{folder / 'broken.py'}:A", "broken:A"):
        with pytest.raises(InputError, match="cannot be imported") as caught:
            load_workload(parse_workload(name))
        assert named in caught.value.message
    assert "_workload_broken" not in sys.modules


@pytest.mark.live
@pytest.mark.xdist_group("live")
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("inception_v3", {"image_size": "75", "width": "4"}),
        ("gpt2", {"sequence_length": "16", "layers": "1", "width": "64", "vocabulary": "100"}),
        ("deepspeech2", {"seconds": "0.4", "layers": "2", "width": "16"}),
        (f"{REPO / 'examples' / 'workload.py'}:Mlp", {"width": "16"}),
        ("examples.workload:Mlp", {"width": "16"}),
    ],
)
def test_zoo_and_own_classes_train_in_two_ranks_with_accumulation(training_host, name, settings):
    spec = parse_workload(name)
    told = describe(training_host, spec, settings)
    assert told["facts"]["samples_per_epoch"] > 0
    ranks = WorkerSet(
        training_host, spec, n_ranks=2, local_batch=2, settings=told["settings"], accum_steps=2, deadline_s=120.0
    )
    ranks.wait_ready(time.monotonic() + 120)
    result = ranks.measure(window_s=0.01, steps=2, deadline_s=time.monotonic() + 120)
    ranks.stop()
    assert result["steps"] == 2
    assert result["step_time_s"] > 0
