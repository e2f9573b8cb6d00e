"""Whether a device can do what is asked, before anything runs on it: its count, its clocks, who else is there."""

from __future__ import annotations

from pfprofile.device import Device
from pfprofile.errors import HardwareError, UsageError
from pfprofile.sweep.live import LiveRunner
from pfprofile.sweep.request import Reporter, SweepRequest
from pfprofile.sweep.space import Point, choose_clocks


def gpu_counts(request: SweepRequest, device: Device, reporter: Reporter, n_nodes: int) -> tuple[int, ...]:
    if n_nodes > 1:
        wrong = [n for n in request.gpus or () if n % n_nodes]
        if wrong:
            raise UsageError(f"--gpus {wrong[0]}: not a multiple of the {n_nodes} nodes", f"for example {2 * n_nodes}")
        reporter.notice(f"{n_nodes} nodes train together; --gpus counts over all of them")
    most = max(request.gpus or (1,)) // n_nodes
    if request.gpus is None:
        return tuple(n_nodes * 2**i for i in range(device.count.bit_length()) if 2**i <= device.count)
    if most > device.count:
        if device.kind != "cpu":
            raise HardwareError(
                f"--gpus {most}: only {device.count} {device.name} here", f"ask for at most {device.count}"
            )
        reporter.notice(f"{most} processes share {device.count} cores: they will slow each other down")
    return request.gpus


def wanted_clocks(request: SweepRequest, device: Device, reporter: Reporter) -> list[float | None]:
    freqs = request.freqs or "default"
    trouble = device.lock_trouble()
    if trouble is None:
        # `auto` chooses among all of them on the way.
        return choose_clocks("all" if clocks_by_search(request) else freqs, device.supported_clocks_mhz)
    if request.require_clocks:
        raise HardwareError(f"--require-clocks: {trouble}", "leave --require-clocks out to sweep unlocked")
    if freqs.lower() in ("auto", "all", "default"):
        if freqs.lower() != "default":
            reporter.notice(f"{trouble}: everything runs at the default clock")
        return [None]
    return choose_clocks(freqs, ())


def refuse_company(request: SweepRequest, device: Device, n_gpus: int) -> None:
    for index in range(min(n_gpus, device.count)):
        if words := device.refusal(index):
            raise HardwareError(words, "name a whole GPU in CUDA_VISIBLE_DEVICES, or: nvidia-smi -mig 0")
    others = [words for index in range(min(n_gpus, device.count)) for words in device.others(index)]
    if others and not request.shared:
        raise HardwareError(
            f"others compute on these GPUs: {', '.join(others[:3])}", "wait for them, or measure beside them: --shared"
        )


def try_lock(
    request: SweepRequest, runner: LiveRunner, clocks: list[float | None], reporter: Reporter
) -> list[float | None]:
    """Whether locking is allowed is only known by trying; without permission the sweep runs unlocked, and says so."""
    first = next((c for c in clocks if c is not None), None)
    if first is None:
        return clocks
    try:
        runner.hold(Point(1, 1, first))
    except HardwareError as error:
        runner.release()
        if request.require_clocks:
            raise
        reporter.notice(f"{error}: everything runs at the default clock")
        return [None]
    return clocks


def clocks_by_search(request: SweepRequest) -> bool:
    return (request.freqs or "").strip().lower() == "auto"
