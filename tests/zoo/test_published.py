"""Every model of the zoo has its published shape, named facts, and settings that reach it."""

import json
from pathlib import Path

import pytest
import torch

from models_zoo import ZOO
from pfprofile.errors import UsageError
from pfprofile.train.resolve import load_workload, parse_workload
from pfprofile.train.workload import describe, merged_settings, missing_parts

REPO = Path(__file__).resolve().parents[2]
PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "inception_v3": 27_161_264,
    "bert": 109_482_240 + 2 * 768 + 2,
    "gpt2": 124_439_808,
    "deepspeech2": 38_115_968,
}
UNITS = {"bert": "sequence", "gpt2": "sequence", "deepspeech2": "utterance"}


def parameters(name, **settings):
    """Built on torch's meta device: shapes without memory."""
    workload = load_workload(parse_workload(name))
    with torch.device("meta"):
        module = workload.build({**workload.defaults, **settings})
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("name", ZOO)
def test_parameter_count_is_the_published_one(name):
    assert parameters(name) == PARAMETERS[name]


def test_inception_without_its_auxiliary_classifier():
    assert parameters("inception_v3", auxiliary=False) == 23_834_568


def test_bert_without_our_head_is_the_published_encoder():
    from models_zoo.bert import Bert, Encoder

    with torch.device("meta"):
        assert sum(p.numel() for p in Encoder(dict(Bert.defaults)).parameters()) == 109_482_240


def test_gpt2s_head_shares_the_embedding():
    """A head of its own would have vocabulary × width weights more."""
    small = {"layers": 1, "width": 64, "sequence_length": 8}
    per_token = parameters("gpt2", vocabulary=101, **small) - parameters("gpt2", vocabulary=100, **small)
    assert per_token == 64


@pytest.mark.parametrize("name", ZOO)
def test_every_model_is_a_workload_with_facts(name):
    workload = load_workload(parse_workload(name))
    assert missing_parts(type(workload)) == []
    assert workload.facts.sample_unit == UNITS.get(name, "image")
    assert workload.facts.samples_per_epoch > 1000
    assert 0 < workload.facts.reference_local_batch <= workload.facts.default_global_batch
    assert workload.facts.source


def test_shipped_synthetic_profiles_are_of_zoo_models_in_the_same_unit():
    shipped = sorted((REPO / "profiles" / "a100-sxm4").glob("*.json"))
    assert len(shipped) == 6
    for path in shipped:
        document = json.loads(path.read_text(encoding="utf-8"))
        facts = load_workload(parse_workload(document["workload"])).facts
        assert facts.sample_unit == document["facts"]["sample_unit"]


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "vgg16", "inception_v3"])
def test_channels_last_is_the_default_on_gpus_and_on_cpus_where_it_was_faster(name):
    workload = load_workload(parse_workload(name))
    assert describe(workload, "cuda").defaults["channels_last"] is True
    assert describe(workload, "cpu").defaults["channels_last"] is (name == "inception_v3")
    assert merged_settings(describe(workload, "cuda").defaults, {"channels_last": "false"})["channels_last"] is False


@pytest.mark.parametrize(
    ("name", "settings", "named"),
    [
        ("vgg16", {"image_size": 31}, "at least 32 pixels"),
        ("inception_v3", {"image_size": 74}, "at least 75 pixels"),
        ("bert", {"width": 100}, "width 100"),
        ("gpt2", {"width": 100}, "width 100"),
    ],
)
def test_a_size_that_cannot_be_built_is_told_so(name, settings, named):
    with pytest.raises(UsageError) as caught:
        parameters(name, **settings)
    assert named in f"{caught.value.message} {caught.value.hint}"


def test_an_utterance_too_short_to_convolve_is_told_so():
    workload = load_workload(parse_workload("deepspeech2"))
    settings = {**workload.defaults, "seconds": 0.2}
    with pytest.raises(UsageError, match=r"seconds 0\.2 is too short"):
        workload.batch(1, settings, torch.device("cpu"), torch.Generator().manual_seed(1))
