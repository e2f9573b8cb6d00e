"""What somebody's own training code raised, in one line that says where."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

#: How long a message may get, characters.
MOST_CHARACTERS = 800
_UNUSED = "finished reduction in the prior iteration"


def error_words(error: BaseException, own_file: str | None = None) -> str:
    """``train.py:12: ValueError: the data is odd``.

    Args:
        error: what was raised.
        own_file: file of the workload; its innermost frame is named, else the innermost outside installed packages.
    """
    message = " ".join(str(error).split())
    if _UNUSED in message:
        message = "a parameter got no gradient in a step, which DistributedDataParallel waits for: let the loss use all"
    if len(message) > MOST_CHARACTERS:
        message = message[:MOST_CHARACTERS] + " …"
    return ": ".join(part for part in (_where(error, own_file), type(error).__name__, message) if part)


def _where(error: BaseException, own_file: str | None) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if own_file is not None and Path(f.filename).resolve() == Path(own_file).resolve()]
    ours = str(Path(__file__).resolve().parent.parent)
    libraries = (sys.prefix, sys.base_prefix, ours, "<")
    foreign = [f for f in frames if not f.filename.startswith(libraries) and "site-packages" not in f.filename]
    shown = own or foreign
    return f"{Path(shown[-1].filename).name}:{shown[-1].lineno}" if shown else ""
