"""From matplotlib to SVG that lives in a page: themed, small, accessible, the same bytes for the same figure."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from pfprofile.report.theme import color, variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_COLOR = re.compile(r"#[0-9a-fA-F]{6}\b")
_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
#: elements and properties that say nothing here
_DROP = {f"{_SVG}metadata", f"{_SVG}style"}
_FONT = re.compile(r"font(?:-family)?: [^;]*;? ?")

#: width of a picture that spans the page, and the margins of those with nodes or power, in CSS pixels
WIDE, LEFT, RIGHT = 900, 96, 16
#: gids of artists that start so become classes in the page
MARK = "mark-"

ElementTree.register_namespace("", _SVG[1:-1])


def printable(text: str) -> str:
    """Text without characters that neither XML nor a reader can take."""
    return _UNPRINTABLE.sub("\ufffd", text)


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib set up for this report while it draws; the caller's settings come back afterwards."""
    import matplotlib

    settings: Any = {
        "svg.fonttype": "none", "svg.hashsalt": "pfprofile", "text.parse_math": False, "font.family": "DejaVu Sans",
        "font.size": 11, "axes.labelsize": 11, "xtick.labelsize": 10.5, "ytick.labelsize": 10.5,
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "axes.axisbelow": True,
        "axes.edgecolor": color("muted"), "axes.labelcolor": color("muted"), "text.color": color("ink"),
        "xtick.color": color("muted"), "ytick.color": color("muted"), "axes.facecolor": "none",
        "figure.facecolor": "none", "axes.grid": True, "axes.grid.axis": "y", "grid.color": color("grid"),
        "grid.linewidth": 0.8, "xtick.major.size": 3, "ytick.major.size": 0, "xtick.minor.size": 0,
        "ytick.minor.size": 0, "lines.linewidth": 1.5, "lines.solid_capstyle": "round", "hatch.linewidth": 0.8,
        "axes.formatter.useoffset": False, "axes.unicode_minus": True, "path.simplify": True, "axes.xmargin": 0.04,
    }  # fmt: skip
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The browser sets the type: a glyph that matplotlib's own font lacks is no loss.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def canvas(width: int, height: int, *, left: int = 58, right: int = 78, top: int = 12, bottom: int = 42,
           ) -> tuple[Figure, Axes]:  # fmt: skip
    """A figure with one pair of axes; all sizes in CSS pixels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height))
    return figure, axes


def to_svg(figure: Figure, key: str, title: str, description: str) -> str:
    """The figure as an ``<svg role="img">`` element.

    Args:
        figure: drawn in the theme's marker colours only.
        key: prefix of all ids, unique in the page.
        title: accessible name.
        description: what the picture shows, in words and numbers.

    Raises:
        KeyError: a colour that is not of the theme.
    """
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_text(printable(text.get_text()))
    sink = io.StringIO()
    figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(sink.getvalue())
    _prune(root)
    for element in root.iter():
        _rewrite(element, key)
    size = root.attrib["viewBox"].split()
    root.attrib = {
        "viewBox": root.attrib["viewBox"], "width": size[2], "height": size[3], "role": "img",
        "aria-labelledby": f"{key}-title {key}-desc",
    }  # fmt: skip
    for position, (tag, words) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{_SVG}{tag}", {"id": f"{key}-{tag}"})
        element.text = printable(words)
        root.insert(position, element)
    return ElementTree.tostring(root, encoding="unicode")


def _prune(parent: ElementTree.Element) -> None:
    for child in list(parent):
        empty_defs = child.tag == f"{_SVG}defs" and all(c.tag in _DROP for c in child)
        if child.tag in _DROP or empty_defs:
            parent.remove(child)
        else:
            _prune(child)
            child.tail = None
    if parent.text and not parent.text.strip():
        parent.text = None


def _rewrite(element: ElementTree.Element, key: str) -> None:
    href = element.attrib.pop(_HREF, None)
    if href is not None:
        element.set("href", f"#{key}-{href[1:]}")
    identity = element.attrib.get("id", "")
    if element.tag == f"{_SVG}g" and identity:
        # Only what a figure marks on purpose (set_gid) keeps a name; matplotlib's own numbering says nothing.
        del element.attrib["id"]
        if identity.startswith(MARK):
            element.set("class", identity)
    if element.attrib.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{key}-{value}")
        elif name in ("style", "fill", "stroke"):
            themed = _COLOR.sub(lambda match: variable(match[0].lower()), _FONT.sub(_font, value))
            element.set(name, themed.replace("url(#", f"url(#{key}-"))
        elif name not in ("href", "class"):
            element.set(name, _NUMBER.sub(_short, value).replace("url(#", f"url(#{key}-"))


def _short(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _font(match: re.Match[str]) -> str:
    """Keep size and weight, leave the family to the page."""
    size = re.search(r"([\d.]+)px", match[0])
    weight = "font-weight: 600; " if re.search(r"\b(?:bold|600|700)\b", match[0]) else ""
    return f"{weight}font-size: {size[1]}px; " if size else weight
