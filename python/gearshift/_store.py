"""What was measured and proven, right or wrong, on disk."""

from __future__ import annotations

from ._options import Path, Value, path_of
from ._work import Report, work


class Store:
    """A store's file: the given one, else the one that the environment and gearshift.toml name."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = None if path is None else path_of("store", path)

    @property
    def path(self) -> str:
        path: str = self.list()["path"]
        return path

    def _do(self, *words: str) -> Report:
        options: dict[str, Value] = {"store": self._path}
        return Report(work("store", words, options), "rows")

    def list(self) -> Report:
        """Every row, and which apply here."""
        return self._do("list")

    def verify(self) -> Report:
        """What is wrong with the file; `passed` where nothing is."""
        return self._do("verify")

    def export(self, file: Path) -> Report:
        """Writes a bundle that other machines of this kind can import."""
        return self._do("export", path_of("file", file))

    def import_(self, file: Path) -> Report:
        """Adds the rows of a bundle."""
        return self._do("import", path_of("file", file))

    def merge(self, other: Store | Path) -> Report:
        """Adds the rows of another store."""
        return self._do("merge", other.path if isinstance(other, Store) else path_of("store", other))

    def prune(self, kernel: str | None = None) -> Report:
        """Removes rows of kernels that are gone or have another version, or all rows of one kernel."""
        return self._do("prune") if kernel is None else self._do("prune", kernel)

    def __repr__(self) -> str:
        return str(self.list())
