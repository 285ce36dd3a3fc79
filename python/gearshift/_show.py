"""How results show themselves: as the command's text where there is a console, as a page of their own in a notebook."""

from __future__ import annotations

import html
import shutil


class Text(str):
    """A text of several lines that a console shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def page_in_notebook(page: str, height: int = 480) -> str:
    """A whole HTML page inside a cell, without its styles reaching the notebook."""
    return f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: {height}px; border: 0"></iframe>'
