"""Bars in a terminal: their lengths compare as the values do, in any width and encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.profile import write_profile
from pfprofile.report.blocks import BLOCKS, Bars, bar_chart, can_show_blocks
from pfprofile.report.terminal import profile_charts

NUMBERS = st.one_of(st.none(), st.floats(0, 1e12), st.just(float("nan")))


def test_bars_begin_at_zero_and_the_best_is_marked():
    lines = bar_chart("x", ["a", "b"], [Bars("y", [10.0, 5.0], str, min)], 40, blocks=True)
    assert lines[0].split() == ["x", "y"]
    assert lines[1].count("█") == 31
    assert lines[2].count("█") + 0.5 * lines[2].count("▌") == 15.5
    assert lines[2].endswith("5.0 *")
    assert "*" not in lines[1]


def test_unknown_values_are_a_dash_without_a_bar():
    lines = bar_chart("x", ["a", "b"], [Bars("y", [None, 5.0], str)], 40, blocks=True)
    assert lines[1].split() == ["a", "-"]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8), st.integers(1, 200), st.booleans())
def test_no_line_is_wider_than_the_terminal(values, width, blocks):
    columns = [Bars("a quantity with a long name", [v[i] for v in values], lambda v: f"{v:.3g}", max) for i in range(2)]
    lines = bar_chart("SM clock", [f"{i} MHz" for i in range(len(values))], columns, width, blocks=blocks)
    assert len(lines) == len(values) + 1
    assert max(map(len, lines)) <= max(width, 60)
    if not blocks:
        assert all(line.isascii() for line in lines)


@pytest.mark.parametrize(("encoding", "able"), [("utf-8", True), ("cp437", False), ("ascii", False), (None, False)])
def test_a_terminal_without_block_characters_gets_hashes(encoding, able):
    assert can_show_blocks(encoding) == able


def test_charts_show_the_axes_that_were_measured(make_profile):
    rows = make_profile(gpus=(1, 2), batches=(8, 16), clocks=(810.0, 1110.0, 1410.0)).rows()
    text = "\n".join(profile_charts(rows, 80, blocks=True))
    clock, gpus = text.split("\n\n")
    assert "1 GPU, batch 16 per GPU" in clock  # of equally full lines the largest batch
    assert [line.split()[0] for line in clock.splitlines()[3:]] == ["810", "1110", "1410"]
    assert "batch 16 per GPU, 1410 MHz" in gpus
    assert gpus.splitlines()[-1].split()[0] == "2"
    assert profile_charts(make_profile(gpus=(1,), batches=(8,)).rows(), 80, blocks=True) == []


def test_without_power_there_is_no_column_of_energy(make_profile):
    rows = [{**row, "power_w": None} for row in make_profile(clocks=(810.0, 1410.0)).rows()]
    assert "energy" not in "\n".join(profile_charts(rows, 80, blocks=True))


def test_show_draws_below_its_table(cli, tmp_path, make_profile):
    write_profile(make_profile(clocks=(810.0, 1110.0, 1410.0)), tmp_path / "p.parquet")
    shown = cli("show", "p.parquet", PYTHONIOENCODING="utf-8")
    assert "█" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    plain = cli("show", "p.parquet", PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert plain.returncode == 0, plain.stderr
    assert "####" in plain.stdout
    assert plain.stdout.isascii()
    table = CliRunner().invoke(app, ["show", str(tmp_path / "p.parquet"), "--format", "csv"]).stdout
    assert table.startswith("trial_id,")
    assert not set(BLOCKS) & set(table)


def test_a_model_shows_what_it_predicts():
    done = CliRunner().invoke(app, ["show", "a100-sxm4/resnet50.json"], env={"COLUMNS": "80"})
    assert "predicted: 1 GPU, batch 256" in done.stdout
    assert "1410 MHz  █" in done.stdout
    assert "predicted: batch 256 per GPU, default clock" in done.stdout
    chart = done.stdout[done.stdout.index("predicted:") :]
    assert max(map(len, chart.splitlines())) <= 80
