"""The page: self-contained, escaped, themed, the same bytes for the same input."""

from __future__ import annotations

import re

import pytest

from pfprofile.profile import Profile, write_profile
from pfprofile.report import build_report
from pfprofile.report.page import render
from pfprofile.report.parts import Section
from pfprofile.report.svg import canvas, drawing, printable, to_svg
from pfprofile.report.theme import CATEGORIES, CLOCK_STEPS, ROLES, category, clock_role, color, contrast

NASTY = "<script>alert(1)</script> & \"q\" $x_1$ 'y' \x1b[31m \u4e2d --> ]]>"


@pytest.fixture(scope="module")
def page(report_file):
    """The report of every kind of artifact."""
    return report_file.read_text(encoding="utf-8")


def test_equal_input_gives_equal_bytes(report_file):
    files = [str(report_file.parent / name) for name in ("schedule.json", "comparison.json")]
    assert build_report(files) == build_report(files)


def test_ids_are_unique_and_every_reference_is_there(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:href="#|url\(#)([^")]+)', page) + re.findall(r'aria-labelledby="([^"]+)"', page)
    assert references
    assert {word for reference in references for word in reference.split()} <= set(ids)


def test_nothing_is_loaded_and_nothing_can_run(page):
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#|data:,)', page)
    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\"' <]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_no_colour_escapes_the_theme(page):
    body = page.split("<body>")[1]
    assert not re.search(r"#[0-9a-fA-F]{6}\b", body)
    assert "var(--ink)" in body
    with drawing():
        figure, axes = canvas(300, 200)
        axes.plot([0, 1], [0, 1], color="#123456")
        with pytest.raises(KeyError):
            to_svg(figure, "f", "t", "d")


def test_names_from_files_are_text_only(tmp_path, make_profile, write_json, schedule_body):
    profile = make_profile()
    rows = [{**row, "workload": NASTY, "error": NASTY} for row in profile.rows()]
    write_profile(Profile.from_rows(rows, profile.metadata.with_(notes=(NASTY,))), tmp_path / "p.parquet")
    for segment in schedule_body["segments"]:
        segment.update(job=NASTY, gpus=[f"{NASTY}:0"])
    schedule_body["jobs"][0]["name"] = NASTY
    page = build_report([str(tmp_path / "p.parquet"), str(write_json("s.json", schedule_body))])
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert "$x_1$" in page


def test_unprintable_characters_become_a_sign():
    assert printable("a\x00b\x1bc\ud800d\n") == "a\ufffdb\ufffdc\ufffdd\n"


def test_synthetic_stands_in_the_headline():
    def headline(*sources):
        page = render([Section("profile", f"net {i}", f"{i}.parquet", (source,)) for i, source in enumerate(sources)])
        return re.search(r"<h1>(.*?)</h1>", page)[1], page

    assert headline("measured")[0] == "net 0"
    assert "ynthetic" not in headline("measured")[1].replace(".badge.synthetic", "")
    title, page = headline("synthetic")
    assert title == "net 0 (synthetic)"
    assert "<strong>Synthetic data.</strong> 0.parquet comes from a generated profile" in page
    assert '<span class="badge synthetic">synthetic</span>' in page
    assert headline("measured", "synthetic")[0] == "net 0, and 1 more (some of it synthetic)"
    assert headline("synthetic", "synthetic")[0] == "net 0, and 1 more (synthetic)"


def test_every_picture_has_a_name_words_and_numbers(page):
    svgs = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
    assert len(svgs) > 40
    for svg in svgs:
        assert 'role="img"' in svg
        assert re.search(r"<title id=[^>]+>[^<]+</title><desc id=[^>]+>[^<]+\d[^<]*</desc>", svg)
    assert page.count("<details") > 15
    assert page.count('<th scope="col"') > 40


@pytest.mark.parametrize("theme", [0, 1])
def test_contrast_is_enough_in_both_themes(theme):
    surface = ROLES["surface"][theme]
    for role in ("ink", "muted", "warn", *(category(i) for i in range(CATEGORIES))):
        assert contrast(ROLES[role][theme], surface) >= 4.5, role
    for step in range(CLOCK_STEPS):
        shade = ROLES[f"clock-{step}"][theme]
        assert contrast(shade, surface) >= 3.0
        assert contrast(ROLES[f"on-clock-{step}"][theme], shade) >= 4.5


def test_the_clock_scale_runs_from_end_to_end():
    assert clock_role(500.0, 500.0, 1500.0) == "clock-0"
    assert clock_role(1500.0, 500.0, 1500.0) == f"clock-{CLOCK_STEPS - 1}"
    assert clock_role(9999.0, 500.0, 1500.0) == f"clock-{CLOCK_STEPS - 1}"
    assert clock_role(None, 500.0, 1500.0) == clock_role(700.0, 700.0, 700.0)


def test_drawing_gives_back_the_callers_settings():
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    with drawing():
        assert matplotlib.rcParams["svg.fonttype"] == "none"
    assert matplotlib.rcParams["font.size"] == before
    assert color("ink").startswith("#0000")


def test_the_page_of_a_large_schedule_stays_small(write_json, schedule_body):
    segment = schedule_body["segments"][0]
    schedule_body["segments"] = [
        {**segment, "job": f"job-{i}", "start_s": 10.0 * i, "end_s": 10.0 * i + 9.0, "gpus": [f"n-{i % 200}:{i % 8}"]}
        for i in range(6000)
    ]
    page = build_report([str(write_json("s.json", schedule_body))])
    assert len(page.encode()) < 3_000_000
    assert "first 400 of 6000" in page
