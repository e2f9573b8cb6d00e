"""How the library's results show themselves in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class Shown:
    """A table in a notebook, one line in a console. What shows itself says which table."""

    __slots__ = ()

    def _frame(self) -> pd.DataFrame:
        raise TypeError(f"{type(self).__name__} has no table")

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self._frame().to_html(max_rows=20, index=False)}"
