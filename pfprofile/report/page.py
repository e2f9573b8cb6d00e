"""The HTML frame: one file, no script, nothing loaded, everything from files escaped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pfprofile._version import __version__
from pfprofile.report.parts import Section, enumerate_words
from pfprofile.report.svg import printable
from pfprofile.report.theme import css_variables

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(sections: Sequence[Section]) -> str:
    """The page. Equal sections give equal bytes."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    text = environment.get_template("page.html.j2").render(
        title=_title(sections),
        synthetic=_synthetic(sections),
        sections=sections,
        files=enumerate_words([s.file_name for s in sections]),
        version=__version__,
        light=Markup(css_variables(0)),
        dark=Markup(css_variables(1)),
        style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),
    )
    return printable(text)


def _title(sections: Sequence[Section]) -> str:
    first, more = sections[0].heading, len(sections) - 1
    title = f"{first}, and {more} more" if more else first
    made_up = sum("synthetic" in s.sources for s in sections)
    if made_up == len(sections):
        return f"{title} (synthetic)"
    return f"{title} (some of it synthetic)" if made_up else title


def _synthetic(sections: Sequence[Section]) -> str:
    names = list(dict.fromkeys(s.file_name for s in sections if "synthetic" in s.sources))
    if not names:
        return ""
    verb = "come" if len(names) > 1 else "comes"
    return (f"{enumerate_words(names)} {verb} from a generated profile, not from a measurement: "
            "no claim about accuracy rests on it.")  # fmt: skip
