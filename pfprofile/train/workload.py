"""What a training workload must offer: the Protocol that zoo models and users' own classes share."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pfprofile.errors import UsageError, nearest

if TYPE_CHECKING:
    import torch

Settings = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a workload that travel with its profile and model.

    Attributes:
        sample_unit: what one sample is, e.g. ``image``.
        samples_per_epoch: samples in the data set it is usually trained on; None = unknown.
        reference_local_batch: a local batch that its authors used; None = unknown.
        default_global_batch: the global batch of the published recipe; None = unknown.
        source: where these numbers come from.
    """

    sample_unit: str = "sample"
    samples_per_epoch: int | None = None
    reference_local_batch: int | None = None
    default_global_batch: int | None = None
    source: str = ""


class Workload(Protocol):
    """A network, its data, loss and optimizer. ``facts`` and ``defaults`` may be left out.

    Attributes:
        facts: sample unit and reference sizes.
        defaults: the settings that may be changed, with their defaults, e.g. ``{"image_size": 224}``.

    A class may also set ``torch_device = "cpu"`` to be computed there whatever device is measured, and ``defaults_on``,
    other defaults for one kind of device, e.g. ``{"cuda": {"channels_last": True}}``.
    """

    facts: Facts
    defaults: Mapping[str, Any]

    def build(self, settings: Settings) -> torch.nn.Module:
        """The network on the CPU, freshly initialised."""

    def batch(
        self, local_batch: int, settings: Settings, device: torch.device, generator: torch.Generator
    ) -> tuple[Any, Any]:
        """Random non-zero inputs (a tensor, or a tuple of them) and targets for one forward pass."""

    def loss(self, output: Any, targets: Any) -> torch.Tensor:
        """A scalar to differentiate."""

    def optimizer(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimizer over the network's parameters."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a workload says of itself, as plain data that travels between processes."""

    facts: dict[str, Any]
    defaults: dict[str, Any] = field(default_factory=dict)
    torch_device: str | None = None


#: method -> its arguments besides self, for the message to somebody whose class lacks it
REQUIRED = {
    "build": "(settings)",
    "batch": "(local_batch, settings, device, generator)",
    "loss": "(output, targets)",
    "optimizer": "(parameters)",
}


def missing_parts(cls: type) -> list[str]:
    """What a class lacks to be a workload, in words; empty = it is one."""
    lacks = []
    for name, signature in REQUIRED.items():
        if not callable(getattr(cls, name, None)):
            lacks.append(f"a method {name}{signature}")
        elif not _takes(cls, name, signature.count(",") + 1):
            lacks.append(f"a method {name} that takes {signature}")
    lacks += _wrong_facts(getattr(cls, "facts", Facts()))
    lacks += _wrong_defaults(getattr(cls, "defaults", {}), getattr(cls, "defaults_on", {}))
    if getattr(cls, "torch_device", None) not in (None, "cpu", "cuda"):
        lacks.append("a torch_device that is 'cpu' or 'cuda'")
    return lacks


def _takes(cls: type, name: str, arguments: int) -> bool:
    # An instance passes itself to an ordinary function only.
    own = not isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod))
    try:
        inspect.signature(getattr(cls, name)).bind(*(None,) * (arguments + own))
    except (TypeError, ValueError):  # ValueError: written in C, without a signature
        return False
    return True


def _wrong_facts(facts: Any) -> list[str]:
    if not isinstance(facts, Facts):
        return ["facts that are a pfprofile.train.workload.Facts"]
    lacks = []
    if not isinstance(facts.sample_unit, str) or not facts.sample_unit:
        lacks.append("a facts.sample_unit that is a word")
    for name in ("samples_per_epoch", "reference_local_batch", "default_global_batch"):
        value = getattr(facts, name)
        if value is not None and (not isinstance(value, int) or value <= 0):
            lacks.append(f"a facts.{name} that is a positive whole number or None")
    return lacks


def _wrong_defaults(defaults: Any, by_device: Any) -> list[str]:
    lacks = _wrong_settings("defaults", defaults)
    if not isinstance(by_device, Mapping):
        return [*lacks, "defaults_on that is a mapping of device kinds to settings"]
    for kind, others in by_device.items():
        lacks += _wrong_settings(f"defaults_on[{kind!r}]", others)
        if isinstance(defaults, Mapping) and isinstance(others, Mapping):
            unknown = [key for key in others if key not in defaults]
            lacks += [f"a default for {key}, which defaults_on[{kind!r}] changes" for key in unknown]
    return lacks


def _wrong_settings(name: str, settings: Any) -> list[str]:
    if not isinstance(settings, Mapping):
        return [f"{name} that are a mapping of names to values"]
    return [
        f"a {name}[{key!r}] that is a number, a text, True or False"
        for key, value in settings.items()
        if not isinstance(value, (bool, int, float, str))
    ]


def describe(workload: Any, device: str = "cpu") -> Description:
    """The workload's facts and settings, those for one kind of device (``cpu``, ``cuda``)."""
    facts: Facts = getattr(workload, "facts", Facts())
    body = {
        "sample_unit": facts.sample_unit,
        "samples_per_epoch": facts.samples_per_epoch,
        "reference_local_batch": facts.reference_local_batch,
        "default_global_batch": facts.default_global_batch,
    }
    torch_device = getattr(workload, "torch_device", None)
    by_device = getattr(workload, "defaults_on", {})
    defaults = {**getattr(workload, "defaults", {}), **by_device.get(torch_device or device, {})}
    return Description(body, defaults, torch_device)


def merged_settings(defaults: Mapping[str, Any], given: Mapping[str, str]) -> Settings:
    """The workload's settings with those a person gave, read as the kind that the default has.

    Raises:
        UsageError: an unknown setting (the nearest is named), or a value of the wrong kind.
    """
    settings = dict(defaults)
    for key, text in given.items():
        if key not in defaults:
            known = ", ".join(defaults) or "none"
            raise UsageError(f"the workload has no setting {key!r}{nearest(key, defaults)}", f"its settings: {known}")
        settings[key] = _read(key, text, defaults[key])
    return settings


def _read(key: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise UsageError(f"setting {key}: {text!r} is neither true nor false")
        return text.lower() == "true"
    if isinstance(default, (int, float)):
        kind = type(default)
        try:
            value = kind(text)
        except ValueError:
            raise UsageError(f"setting {key}: {text!r} is not a number like {default!r}") from None
        if value <= 0 < default:
            raise UsageError(f"setting {key}: {text} is not positive")
        return value
    return text
