"""Rates out of logs: whole numbers only, with their k, M or G."""

import pytest

from pfprofile.train.launch import WorkerError
from pfprofile.train.log_rates import LogRates, rate_pattern


def rates(pattern):
    return LogRates(rate_pattern(pattern))


@pytest.mark.parametrize(
    ("pattern", "line", "rate"),
    [
        (r"([\d.]+) samples/s", "step 3: 640.5 samples/s", 640.5),
        (r"([\d,.]+) samples/s", "step 3: 1,234.5 samples/s", 1234.5),
        (r"([\d.]+k) samples/s", "640.0k samples/s", 640e3),
        (r"([\d.]+ ?[kMG]?) tok/s", "1.2 M tok/s", 1.2e6),
        (r"(\S+) tok/s", "3G tok/s", 3e9),
        (r"(\S+) tok/s", "1.5e3 tok/s", 1500.0),
        (r"rate=([\d.]+)", "rate=640, loss=3", 640.0),
        (r"rate=([\d.]+)", "rate=640.0 Kelvin", 640.0),
        (r"rate ([\d.]+)", "rate 640/s", 640.0),
        (r",([\d.]+)$", "12,640.2", 640.2),
        (r"([\d.]+) it/s", "no rate here", None),
        (r"rate (\S+)", "rate 0.0", None),
    ],
)
def test_a_number_is_read_as_it_was_written(pattern, line, rate):
    assert rates(pattern).read(line) == rate


@pytest.mark.parametrize(
    ("pattern", "line", "part", "whole"),
    [
        (r"([\d.]+)", "640.0k samples/s", "640.0", "640.0k"),
        (r"([\d.]+)k samples/s", "640.0k samples/s", "640.0", "640.0k"),
        (r"([\d.]+)", "640 M/s", "640", "640 M"),
        (r"(\d+) samples/s", "1,234 samples/s", "234", "1,234"),
        (r"rate=(\d+)", "rate=640.5", "640", "640.5"),
        (r"rate=([\d.]+)", "rate=1.5e3", "1.5", "1.5e3"),
    ],
)
def test_a_part_of_a_number_is_refused_and_both_are_named(pattern, line, part, whole):
    with pytest.raises(WorkerError) as caught:
        rates(pattern).read(line)
    assert f"takes {part!r} out of {whole!r}" in caught.value.reason


def test_what_was_matched_and_is_no_number_is_told_from_no_match():
    log = rates(r"rate (\S+)")
    assert log.read("nothing") is None and log.trouble() == "no line matched --throughput-regex"
    assert log.read("rate fast") is None
    assert log.trouble() == "--throughput-regex matched 'fast' where a number of samples/s belongs"
