"""`make gpu-check`: one prepared run on a machine with one NVIDIA GPU and no network, in at most 8 minutes.

Sweeps three networks over batch sizes at the default clock, never touching clocks or limits, and leaves a Parquet
profile each, a fit report (where pydantic is installed) and a sensor report: update periods, counter against power
readings, cost of a look, and how punctual the sweeps' own sampler was.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from pfprofile.device import Device, open_device
from pfprofile.errors import PfprofileError
from pfprofile.profile import Profile
from pfprofile.sweep import SweepRequest, sweep
from pfprofile.sweep.request import Reporter
from pfprofile.telemetry.window import counter_power, sampled_power

BATCHES = {"resnet50": (8, 16, 32, 64, 128, 256), "bert": (2, 4, 8, 16, 32, 64), "gpt2": (1, 2, 4, 8, 16, 32)}
#: Sweeping may take this long in all, s; the start of torch and the fits fit into what is left of eight minutes.
SWEEPING_S = 270.0


class Looker(threading.Thread):
    """Looks at the first device as fast as it is asked to, beside what trains."""

    def __init__(self, device: Device, rate_hz: float) -> None:
        super().__init__(daemon=True)
        self.device, self.interval_s = device, 1 / rate_hz
        self.rows: list[tuple[float, float, float]] = []
        self.cost_s: list[float] = []
        self.trouble: str | None = None
        self.enough = threading.Event()

    def run(self) -> None:
        """Until there is enough."""
        while not self.enough.is_set():
            began_s = time.perf_counter()
            try:
                reading = self.device.read(0)
            except PfprofileError as error:
                self.trouble = str(error)
                return
            self.cost_s.append(time.perf_counter() - began_s)
            known = [np.nan if v is None else v for v in (reading.power_w, reading.energy_j)]
            self.rows.append((time.monotonic(), known[0], known[1]))
            self.enough.wait(self.interval_s)


def period_s(time_s: Any, values: Any) -> float | None:
    """Median time between two changes of a sensor, s; None where it told nothing or never changed twice."""
    known = np.isfinite(values)
    moved = np.flatnonzero(np.diff(values[known]) != 0)
    return float(np.median(np.diff(time_s[known][moved]))) if len(moved) > 2 else None


def sensor_report(looker: Looker) -> dict[str, Any]:
    """What the looks tell; null where a sensor is lacking."""
    table = np.array(looker.rows, dtype=np.float64).reshape(-1, 3)
    times, power_w, energy_j = table.T
    counter, sampled = counter_power(times, energy_j), sampled_power(times, power_w)
    return {
        "looks": len(table), "trouble": looker.trouble,
        "look_median_s": float(np.median(looker.cost_s)) if looker.cost_s else None,
        "power_update_period_s": period_s(times, power_w), "counter_update_period_s": period_s(times, energy_j),
        "counter_power_w": counter, "sampled_power_w": sampled,
        "gap": sampled / counter - 1 if counter and sampled else None,
    }  # fmt: skip


def measure(name: str, args: argparse.Namespace, max_time_s: float) -> Profile | None:
    """Sweep one network; an expected error is said, and the others still run."""
    settings = dict(pair.split("=", 1) for pair in args.set)
    batches = tuple(args.batches) if args.batches else BATCHES[name]
    request = SweepRequest(
        name, device=args.device, gpus=(1,), batch_sizes=batches, freqs="default", precision=args.precision,
        settings=settings, window_s=args.window, max_time_s=max_time_s, timeout_s=45.0,
        output=args.output / f"{name}.parquet", force=True, argv=("make", "gpu-check"),
    )  # fmt: skip
    try:
        return sweep(request, Reporter(notice=lambda words: print(words, file=sys.stderr))).profile
    except PfprofileError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None


def fit_report(profiles: list[Profile], folder: Path) -> list[dict[str, Any]] | str:
    """The models' reports; words where the reports cannot be made here."""
    if importlib.util.find_spec("pydantic") is None:
        return "pydantic is not installed here: run pfprofile fit on these profiles elsewhere"
    from pfprofile.model.fit import fit_profile
    from pfprofile.model.report import fit_report as report

    found = []
    for profile in profiles:
        name = profile.rows()[0]["workload"]
        try:
            found.append(report(folder / f"{name}.json", fit_profile(profile)))
        except PfprofileError as error:
            found.append({"workload": name, "error": str(error)})
    return found


def main() -> int:
    """Run the check. Returns the exit code: 0, or 4 where nothing could be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu-check"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workloads", nargs="+", default=list(BATCHES))
    parser.add_argument("--batches", nargs="+", type=int)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--window", type=float, default=2.0)
    parser.add_argument("--set", nargs="*", default=[])
    args = parser.parse_args()
    try:
        device = open_device(args.device)
    except PfprofileError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    args.output.mkdir(parents=True, exist_ok=True)
    looker = Looker(device, rate_hz=100.0)
    looker.start()
    each_s = SWEEPING_S / len(args.workloads)
    measured = [measure(name, args, each_s) for name in args.workloads]
    looker.enough.set()
    looker.join()
    device.close()
    profiles = [p for p in measured if p is not None and p.n_rows]
    sampling = {p.rows()[0]["workload"]: (p.metadata.sweep or {}).get("sampling") for p in profiles}
    body = {
        "device": device.name, "sensors": sensor_report(looker), "sampling": sampling,
        "fit": fit_report(profiles, args.output),
    }  # fmt: skip
    (args.output / "report.json").write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({key: body[key] for key in ("sensors", "sampling")}, indent=2))
    return 0 if profiles else 4


if __name__ == "__main__":
    sys.exit(main())
