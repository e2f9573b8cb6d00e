"""`import dcgm-exporter`: scrapes of a dcgm-exporter in Prometheus' text format, one or many, one file or many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pfprofile.profile.importers import cells
from pfprofile.profile.importers.base import OF_LOGS, Imported, ImportOptions
from pfprofile.profile.importers.dcgmi import reasons
from pfprofile.profile.importers.readings import GpuFacts, Log, Reading
from pfprofile.profile.importers.text import read_lines
from pfprofile.profile.importers.trial import trial_of

HINT = "scrape with: while sleep 1; do date -Is; curl -s localhost:9400/metrics; done > scrapes.txt"
_SAMPLE = re.compile(r"(?P<metric>DCGM_FI_\w+)\{(?P<labels>.*)\}\s+(?P<value>\S+)(?:\s+(?P<time>\d+))?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
#: metric → what it is; energy counts millijoules
_METRICS = {
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_POWER_USAGE_INSTANT": "instant",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "energy",
    "DCGM_FI_DEV_SM_CLOCK": "clock",
    "DCGM_FI_DEV_GPU_TEMP": "temperature",
    "DCGM_FI_DEV_FB_USED": "memory",
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": "limit",
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": "limit",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "reasons",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "reasons",
}


class DcgmExporter:
    """A dcgm-exporter's metrics."""

    name = "dcgm-exporter"
    summary = "Prometheus text of a dcgm-exporter"
    takes = OF_LOGS

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; several files are scrapes of one run, in their order."""
        log = Log()
        for path in paths:
            _read(path, log)
        return trial_of(log, paths, options, HINT)


class _Scrape:
    """The metrics of one scrape by GPU, until a metric comes a second time."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.time_s: float | None = None
        self.gpus: dict[str, tuple[int, dict[str, str], dict[str, str], float | None]] = {}

    def take(self, line: int, what: str, labels: dict[str, str], value: str, time_s: float | None) -> None:
        gpu = labels.get("UUID") or f"{labels.get('Hostname')}:{labels.get('gpu')}"
        known = self.gpus.get(gpu)
        if known is not None and what in known[1]:
            self.close()
            known = None
        if known is None:
            known = self.gpus[gpu] = (line, {}, labels, time_s)
        known[1][what] = value

    def close(self) -> None:
        """Hand the scrape's readings on."""
        for line, told, labels, time_s in self.gpus.values():
            power = told.get("instant", told.get("power", "-"))
            facts = GpuFacts(
                index=labels.get("gpu"),
                uuid=labels.get("UUID") or None,
                name=labels.get("modelName") or None,
                host=labels.get("Hostname") or None,
                driver_version=labels.get("DCGM_FI_DRIVER_VERSION") or None,
                power_limit_w=cells.number(told.get("limit", "-"), cells.POWER),
            )
            reading = Reading(
                line=line,
                time_s=self.time_s if time_s is None else time_s,
                power_w=cells.number(power, cells.POWER),
                energy_j=cells.number(told.get("energy", "-"), cells.ENERGY, "mJ"),
                sm_clock_mhz=cells.number(told.get("clock", "-"), cells.CLOCK),
                temperature_c=cells.number(told.get("temperature", "-"), cells.TEMPERATURE),
                memory_bytes=cells.number(told.get("memory", "-"), cells.MEMORY, "MiB"),
                limits=reasons(told.get("reasons")),
            )
            self.log.add(reading, facts)
        self.gpus = {}


def _read(path: Path, log: Log) -> None:
    scrape = _Scrape(log)
    sliced = 0
    for number, text in read_lines(path):
        body = text.strip()
        match = _SAMPLE.fullmatch(body)
        if match is None:
            if (when := cells.timestamp(body.removeprefix("#"))) is not None:
                scrape.close()
                scrape.time_s = when
            elif not body.startswith("#") and not re.match(r"[a-zA-Z_:][\w:]*(\{.*\})?\s+\S+(\s+\d+)?$", body):
                log.skip(path, number, f"no metric: {body[:60]!r}", text)
            continue
        labels = dict(_LABEL.findall(match["labels"]))
        what = _METRICS.get(match["metric"].removesuffix("_total"))
        if labels.get("GPU_I_ID"):
            sliced += 1
            if what in ("power", "instant", "energy", "limit"):
                continue  # a slice repeats the whole GPU's: it has none of its own
        if "gpu" not in labels and "UUID" not in labels:
            log.skip(path, number, f"a metric without a GPU: {body[:60]!r}", text)
        elif what is not None:
            time_s = cells.timestamp(match["time"]) if match["time"] else None
            scrape.take(number, what, labels, match["value"], time_s)
    scrape.close()
    if sliced:
        log.notices.append(f"{path}: MIG slices: their power is the whole GPU's and was left out")
