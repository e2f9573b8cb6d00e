"""Published shapes and parameter counts; a step trains."""

import pytest
import torch

from models_zoo import ZOO
from pfprofile.train.resolve import load_workload, parse_workload
from pfprofile.train.workload import missing_parts

PARAMETERS = {"resnet18": 11_689_512, "resnet50": 25_557_032}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_count_is_the_published_one(name):
    workload = load_workload(parse_workload(name))
    module = workload.build(dict(workload.defaults))
    assert sum(p.numel() for p in module.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", ZOO)
def test_every_model_is_a_workload_with_facts(name):
    workload = load_workload(parse_workload(name))
    assert missing_parts(type(workload)) == []
    assert workload.facts.samples_per_epoch == 1_281_167
    assert workload.facts.source


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_shapes_and_data(name, channels_last):
    workload = load_workload(parse_workload(name))
    settings = {"image_size": 32, "classes": 10, "channels_last": channels_last}
    generator = torch.Generator().manual_seed(1)
    images, labels = workload.batch(2, settings, torch.device("cpu"), generator)
    assert images.shape == (2, 3, 32, 32)
    assert images.abs().min() > 0
    assert labels.shape == (2,)
    output = workload.build(settings)(images)
    assert output.shape == (2, 10)


def test_a_single_small_image_can_be_trained_on():
    workload = load_workload(parse_workload("resnet18"))
    settings = {**workload.defaults, "image_size": 32}
    images, labels = workload.batch(1, settings, torch.device("cpu"), torch.Generator().manual_seed(1))
    loss = workload.loss(workload.build(settings).train()(images), labels)
    assert torch.isfinite(loss)


def test_loss_falls_on_a_fixed_batch():
    torch.manual_seed(0)
    workload = load_workload(parse_workload("resnet18"))
    settings = {"image_size": 32, "classes": 10, "channels_last": False}
    module = workload.build(settings).train()
    optimizer = workload.optimizer(module.parameters())
    images, labels = workload.batch(4, settings, torch.device("cpu"), torch.Generator().manual_seed(1))
    losses = []
    for _ in range(10):
        loss = workload.loss(module(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
