"""The report in a real browser without a network: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-default-apps", "--disable-sync", "--no-first-run",
]  # fmt: skip
KEY_MARKS = (
    "mark-ok", "mark-throttled", "mark-requested", "mark-failed", "mark-spread", "mark-curve", "mark-interval",
    "mark-residual", "mark-front", "mark-picked", "mark-default", "mark-run", "mark-rescale", "mark-power", "mark-cap",
    "mark-energy", "mark-budget", "mark-policy", "mark-ratio", "mark-clamped",
)  # fmt: skip
#: texts that leave their picture, or cover each other
FAULTY_TEXT = """() => [...document.querySelectorAll("svg")].flatMap(svg => {
  const box = svg.getBoundingClientRect(), title = svg.querySelector("title").textContent
  const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()])
  return texts.flatMap(([words, r], i) => {
    const faults = []
    if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
      faults.push(`${title}: ${words} leaves the picture`)
    for (const [other, q] of texts.slice(0, i)) {
      const across = Math.min(r.right, q.right) - Math.max(r.left, q.left)
      const down = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top)
      if (across > 2 && down > 4) faults.push(`${title}: ${words} covers ${other}`)
    }
    return faults
  })
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium, or a skip that says what is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'pfprofile[dev]'")
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def open_page(browser: Any, report_file: Path) -> Iterator[Any]:
    """Open the report with these settings; everything the page says or asks for is collected in ``page.said``."""
    contexts = []

    def opened(**settings: Any) -> Any:
        context = browser.new_context(offline=True, **{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.said = []
        page.on("console", lambda message: page.said.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: page.said.append(f"error: {error}"))
        page.on("request", lambda request: page.said.append(f"request: {request.url}"))
        page.goto(report_file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def test_it_opens_offline_and_asks_for_nothing(open_page, report_file):
    page = open_page()
    assert page.said == [f"request: {report_file.as_uri()}"]
    assert page.title() == page.locator("h1").inner_text()


def test_every_key_mark_is_seen(open_page):
    page = open_page()
    sizes = page.evaluate(
        """marks => Object.fromEntries(marks.map(mark => [mark, Math.max(0,
             ...[...document.querySelectorAll("svg ." + mark)].map(e => {
               const r = e.getBoundingClientRect(); return Math.max(r.width, r.height) }))]))""",
        list(KEY_MARKS),
    )
    assert {mark for mark, size in sizes.items() if size < 3} == set()


def test_no_text_leaves_its_picture_or_covers_another(open_page):
    assert open_page().evaluate(FAULTY_TEXT) == []


def test_the_theme_follows_the_reader(open_page):
    seen = {}
    for scheme in ("light", "dark"):
        seen[scheme] = open_page(color_scheme=scheme).evaluate(
            """() => [getComputedStyle(document.documentElement).backgroundColor,
                      getComputedStyle(document.querySelector("svg text")).fill,
                      getComputedStyle(document.querySelector(".mark-run path")).fill]"""
        )
    assert seen["light"][0] == "rgb(255, 255, 255)"
    assert seen["dark"][0] == "rgb(22, 25, 30)"
    assert all(light != dark for light, dark in zip(seen["light"], seen["dark"], strict=True))


def test_a_narrow_screen_scrolls_pictures_not_the_page(open_page):
    page = open_page(viewport={"width": 360, "height": 800})
    width, client = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width == client
    smallest = page.evaluate(
        """() => Math.min(...[...document.querySelectorAll("svg text")].filter(t => t.textContent.trim().length > 1)
                             .map(t => t.getBoundingClientRect().height))"""
    )
    assert smallest >= 7


def test_a_keyboard_reaches_and_opens_the_numbers(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    table = page.locator("details").first
    assert table.get_attribute("open") is None
    table.locator("summary").focus()
    page.keyboard.press("Enter")
    assert table.get_attribute("open") is not None
    assert page.locator("details[open] table").first.is_visible()


def test_a_screen_reader_hears_a_name_and_numbers_for_each_picture(open_page):
    page = open_page()
    count = page.locator("svg").count()
    images = page.get_by_role("img")
    assert images.count() == count > 20
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("svg")].flatMap(svg => svg.getAttribute("aria-labelledby").split(" "))
                   .filter(id => !document.getElementById(id).textContent).length"""
    )
    assert unnamed == 0
    assert page.get_by_role("img", name="Cluster power over time").count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("table").count() > 0


def test_print_is_light_and_shows_short_tables(open_page):
    page = open_page(color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    shown = page.evaluate(
        """() => [...document.querySelectorAll("details.short table")].map(t => t.checkVisibility(
             {contentVisibilityAuto: true, visibilityProperty: true}) && t.getBoundingClientRect().height > 10)"""
    )
    assert shown
    assert all(shown)
    assert page.pdf(format="A4").startswith(b"%PDF")
