from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile import units
from pfprofile.errors import UsageError

AMOUNT = st.floats(min_value=1e-3, max_value=1e9)


@pytest.mark.parametrize(
    ("text", "parse", "value"),
    [
        ("120kWh", units.parse_energy, 120 * 3.6e6),
        ("5 MJ", units.parse_energy, 5e6),
        ("1e3J", units.parse_energy, 1e3),
        ("5mWh", units.parse_energy, 18),
        ("5MWh", units.parse_energy, 1.8e10),
        ("5KWH", units.parse_energy, 1.8e7),
        ("20kW", units.parse_power, 2e4),
        ("250 mW", units.parse_power, 0.25),
        ("2MW", units.parse_power, 2e6),
        ("300w", units.parse_power, 300),
        ("1410MHz", units.parse_clock, 1410),
        ("1410", units.parse_clock, 1410),
        ("1.41GHz", units.parse_clock, 1410),
        ("2h", units.parse_duration, 7200),
        ("1h30m", units.parse_duration, 5400),
        ("1h 30min", units.parse_duration, 5400),
        ("90s", units.parse_duration, 90),
        ("5%", units.parse_fraction, 0.05),
        ("0.05", units.parse_fraction, 0.05),
    ],
)
def test_people_write_it_so(text, parse, value):
    assert parse(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "parse", "words"),
    [
        ("120", units.parse_energy, "has no unit"),
        ("20kW", units.parse_energy, "is a power, not an energy"),
        ("20kWh", units.parse_power, "is an energy, not a power"),
        ("5mwh", units.parse_energy, "unknown unit 'mwh'"),
        ("lots", units.parse_energy, "is not an energy"),
        ("1e999J", units.parse_energy, "not a finite number"),
        ("3 parsec", units.parse_duration, "unknown unit 'parsec'"),
        ("nan%", units.parse_fraction, "is not a fraction"),
    ],
)
def test_what_is_wrong_is_said(text, parse, words):
    with pytest.raises(UsageError, match=words):
        parse(text, what="--budget")


@given(AMOUNT)
def test_energy_survives_printing(value):
    assert units.parse_energy(units.format_energy(value, digits=12)) == pytest.approx(value, rel=1e-9)


@given(AMOUNT)
def test_power_survives_printing(value):
    assert units.parse_power(units.format_power(value, digits=12)) == pytest.approx(value, rel=1e-9)


@given(AMOUNT)
def test_duration_survives_printing(value):
    assert units.parse_duration(units.format_duration(value, digits=12)) == pytest.approx(value, rel=1e-9)


@given(st.floats(min_value=1, max_value=5000))
def test_clock_survives_printing(value):
    assert units.parse_clock(units.format_clock(value)) == pytest.approx(value, rel=1e-5)


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_usage_error(text):
    for parse in (units.parse_energy, units.parse_duration, units.parse_fraction, units.parse_int_list):
        try:
            value = parse(text)
        except UsageError as error:
            assert str(error)
        else:
            assert isinstance(value, list) or math.isfinite(value)


def test_lists_of_whole_numbers():
    assert units.parse_int_list("1, 2,4,2") == [1, 2, 4]
    with pytest.raises(UsageError, match="above 1e"):
        units.parse_int_list("99999999999999999999", what="--gpus")
    with pytest.raises(UsageError, match="0 is below 1"):
        units.parse_int_list("1,0", what="--gpus")


def test_bytes_and_unlocked_clock():
    assert units.format_bytes(3 * 2**29) == "1.50 GiB"
    assert units.format_clock(None) == "default"
    assert units.format_duration(0) == "0 s"
