"""``pfprofile --version``: the tool and what it runs on, without importing any of it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from pfprofile._version import __version__

#: what the tool computes with, and what it can use where it is installed
LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "pyarrow", "pydantic", "nvidia-ml-py", "typer")
OPTIONAL = ("torch", "matplotlib", "jinja2", "zeus")


def environment() -> list[str]:
    """Lines for a bug report: the tool first, then Python, platform and libraries."""
    lines = [f"pfprofile {__version__}", f"Python {platform.python_version()} ({platform.python_implementation()})"]
    lines.append(f"{platform.system()} {platform.release()} {platform.machine()}")
    for name in (*LIBRARIES, *OPTIONAL):
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "not installed"
        lines.append(f"{name} {found}")
    return lines
