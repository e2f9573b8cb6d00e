"""Every model trains at a small size: shapes, data, one step in each precision, a loss that falls."""

import pytest
import torch
from torch import nn

from models_zoo import ZOO
from pfprofile.train.resolve import load_workload, parse_workload

IMAGES = {"image_size": 32, "classes": 10, "width": 16}
TRANSFORMER = {"sequence_length": 16, "layers": 2, "width": 64, "vocabulary": 100}
SMALL = {
    "resnet18": IMAGES,
    "resnet50": {**IMAGES, "width": 8},
    "vgg16": {**IMAGES, "hidden": 64},
    "inception_v3": {**IMAGES, "image_size": 75, "width": 4},
    "bert": TRANSFORMER,
    "gpt2": TRANSFORMER,
    "deepspeech2": {"seconds": 0.6, "layers": 2, "width": 32},
}
CONVOLUTIONAL = ["resnet18", "resnet50", "vgg16", "inception_v3"]
STEPS = 20


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(name, local_batch=2, **settings):
    """Workload, network, inputs and targets, at the small size."""
    torch.manual_seed(0)
    workload = load_workload(parse_workload(name))
    settings = {**workload.defaults, **SMALL.get(name, TRANSFORMER), **settings}
    module = workload.build(settings).train()
    generator = torch.Generator().manual_seed(1)
    inputs, targets = workload.batch(local_batch, settings, torch.device("cpu"), generator)
    return workload, module, inputs if isinstance(inputs, tuple) else (inputs,), targets


def step(workload, module, optimizer, inputs, targets, precision="fp32"):
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        loss = workload.loss(module(*inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def loss_without_dropout(workload, module, inputs, targets):
    """Dropout is the only noise of a step: without it a loss is a plain number."""
    dropouts = [layer for layer in module.modules() if isinstance(layer, nn.Dropout)]
    for layer in dropouts:
        layer.eval()
    with torch.no_grad():
        loss = workload.loss(module(*inputs), targets).item()
    for layer in dropouts:
        layer.train()
    return loss


@pytest.mark.parametrize("name", ZOO)
def test_loss_falls_over_20_steps_on_a_fixed_batch(name):
    workload, module, inputs, targets = made(name, local_batch=4)
    optimizer = workload.optimizer(module.parameters())
    before = loss_without_dropout(workload, module, inputs, targets)
    for _ in range(STEPS):
        step(workload, module, optimizer, inputs, targets)
    assert loss_without_dropout(workload, module, inputs, targets) < 0.9 * before


@pytest.mark.parametrize("name", ZOO)
def test_one_step_gives_every_parameter_a_gradient(name):
    """A parameter without one would stop DistributedDataParallel."""
    workload, module, inputs, targets = made(name)
    workload.loss(module(*inputs), targets).backward()
    assert [n for n, p in module.named_parameters() if p.grad is None] == []
    assert all(torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("name", ZOO)
def test_a_single_sample_of_the_smallest_size_can_be_trained_on(name):
    """A search for the largest local batch begins at one."""
    workload, module, inputs, targets = made(name, local_batch=1)
    assert torch.isfinite(workload.loss(module(*inputs), targets))


@pytest.mark.parametrize("name", ["resnet18", "inception_v3", "bert", "gpt2", "deepspeech2"])
def test_bf16_autocast_trains_in_fp32_weights(name):
    workload, module, inputs, targets = made(name)
    optimizer = workload.optimizer(module.parameters())
    losses = [step(workload, module, optimizer, inputs, targets, "bf16") for _ in range(2)]
    assert all(torch.isfinite(torch.tensor(losses)))
    assert {p.dtype for p in module.parameters()} == {torch.float32}


def test_bf16_computes_in_bf16():
    _, module, inputs, _ = made("gpt2")
    with torch.autocast("cpu", torch.bfloat16):
        assert module(*inputs).dtype is torch.bfloat16


@pytest.mark.parametrize("name", ZOO)
def test_inputs_are_random_and_not_zero(name):
    _, _, inputs, _ = made(name)
    assert inputs[0].float().abs().min() > 0
    assert inputs[0].float().std() > 0.5


@pytest.mark.parametrize("name", CONVOLUTIONAL)
@pytest.mark.parametrize("channels_last", [False, True])
def test_channels_last_changes_the_layout_and_not_the_result(name, channels_last):
    _, module, inputs, _ = made(name, channels_last=channels_last)
    weight = next(m.weight for m in module.modules() if isinstance(m, nn.Conv2d) and m.kernel_size != (1, 1))
    for tensor in (inputs[0], weight):
        assert tensor.is_contiguous(memory_format=torch.channels_last) is channels_last
    _, plain, plain_inputs, _ = made(name, channels_last=False)
    # In double precision, since batch norm over two small images blows up the order of summation.
    torch.manual_seed(2)
    out = module.double()(inputs[0].double())
    torch.manual_seed(2)
    expected = plain.double()(plain_inputs[0].double())
    if isinstance(out, tuple):
        out, expected = torch.stack(out), torch.stack(expected)
    assert out.shape[-1] == 10
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(
    ("local_batch", "shape"), [(1, (1, 1)), (5, (1, 5)), (16, (1, 16)), (17, (2, 9)), (32, (2, 16)), (50, (4, 13))]
)
def test_a_local_batch_of_tokens_is_exactly_so_many(local_batch, shape):
    workload, module, inputs, targets = made("models_zoo.gpt2:Gpt2Tokens", local_batch=local_batch)
    assert workload.facts.sample_unit == "token"
    assert tuple(inputs[0].shape) == shape
    assert int((targets >= 0).sum()) == local_batch
    assert torch.isfinite(workload.loss(module(*inputs), targets))
