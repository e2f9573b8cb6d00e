"""The colours of a report: one role a line, with its light and its dark value.

Pictures are drawn in *marker* colours, one a role, and the page turns each marker into a CSS custom property, so that
one drawing serves light, dark and print. Contrast against the surface is held by a test: 4.5 for text, 3 for marks.
"""

from __future__ import annotations

#: role -> (light, dark)
ROLES: dict[str, tuple[str, str]] = {
    "surface": ("#ffffff", "#16191e"),
    "ink": ("#1b1f24", "#e8eaed"),
    "muted": ("#565f6b", "#a3adb8"),
    "grid": ("#e4e7eb", "#2b3138"),
    "warn": ("#b3261e", "#ff8a80"),
    "line-0": ("#0072b2", "#56b4e9"),
    "line-1": ("#b35000", "#ffa057"),
    "line-2": ("#00755a", "#3ecf9f"),
    "line-3": ("#a03a78", "#e79ac6"),
    "line-4": ("#6f6200", "#d9c84a"),
    "line-5": ("#4a545e", "#b9c2cc"),
}
CATEGORIES = 6

#: The scale of clocks, low to high: one path through OKLCH from teal to violet, lightness monotone in either theme.
_CLOCK_LIGHT = ("#35a499", "#009aa2", "#008baf", "#0079b9", "#0062bc", "#034bb4", "#3436a1", "#412584", "#421a64")
_CLOCK_DARK = ("#00897d", "#00949a", "#269db5", "#4da6ce", "#70aee3", "#91b6f4", "#b0beff", "#cfc6ff", "#eccfff")
CLOCK_STEPS = len(_CLOCK_LIGHT)


def luminance(color: str) -> float:
    """Relative luminance of ``#rrggbb`` (WCAG 2.2, definition of relative luminance)."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2, definition of contrast ratio)."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _legible_on(color: str) -> str:
    return max(("#ffffff", "#030405"), key=lambda text: contrast(color, text))


for _i, _pair in enumerate(zip(_CLOCK_LIGHT, _CLOCK_DARK, strict=True)):
    ROLES[f"clock-{_i}"] = _pair
    ROLES[f"on-clock-{_i}"] = (_legible_on(_pair[0]), _legible_on(_pair[1]))

#: role -> the colour that matplotlib draws with
MARKERS = {role: f"#0000{i:02x}" for i, role in enumerate(ROLES, start=1)}
_BY_MARKER = {marker: role for role, marker in MARKERS.items()}


def color(role: str) -> str:
    """The marker colour of a role, for matplotlib."""
    return MARKERS[role]


def category(index: int) -> str:
    """The role of the index-th category (they repeat; shapes and labels tell them apart)."""
    return f"line-{index % CATEGORIES}"


def clock_role(clock_mhz: float | None, low_mhz: float, high_mhz: float) -> str:
    """The role of a clock on the scale from ``low_mhz`` to ``high_mhz``; not locked = the highest."""
    if clock_mhz is None or not high_mhz > low_mhz:
        return f"clock-{CLOCK_STEPS - 2}"
    share = min(max((clock_mhz - low_mhz) / (high_mhz - low_mhz), 0.0), 1.0)
    return f"clock-{round(share * (CLOCK_STEPS - 1))}"


def variable(marker: str) -> str:
    """``var(--role)`` of a marker colour. Raises KeyError for any other colour: nothing may escape the theme."""
    return f"var(--{_BY_MARKER[marker]})"


def css_variables(theme: int) -> str:
    """CSS declarations of all roles; theme 0 is light, 1 dark."""
    return "".join(f"--{role}:{pair[theme]};" for role, pair in ROLES.items())
