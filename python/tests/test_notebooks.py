"""The notebooks of docs/notebooks run from start to end, and give the outputs that stand in them.

`python python/tests/test_notebooks.py` (`make notebooks`) runs them and writes their outputs anew.
"""

from __future__ import annotations

import base64
import io
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import numpy
import pytest
from matplotlib.image import imread
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PICTURE_TOLERANCE = 0.01
"""Mean difference of two pictures' pixels, of 1: fonts are drawn alike up to the edges of their letters."""


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs of a run in `folder`, without its times and those who ran it."""
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    # Sockets in a folder: of two kernels that start at the same time, one may find its TCP port taken.
    with tempfile.TemporaryDirectory(prefix="kernel-") as sockets:
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/socket"}})
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
            config=config,
        )
        client.execute()
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def picture(output: Any) -> bytes | None:
    data = output.get("data", {}).get("image/png")
    return None if data is None else base64.b64decode(data)


def compare(committed: Any, run: Any) -> None:
    """Asserts that an output is the committed one: pictures nearly, texts and tables to the letter."""
    assert committed.output_type == run.output_type
    before, now = picture(committed), picture(run)
    if before is None or now is None:
        assert (committed.get("text"), committed.get("data")) == (run.get("text"), run.get("data"))
        return
    # Text beside a picture has the address of an object.
    pixels, pixels_now = imread(io.BytesIO(before)), imread(io.BytesIO(now))
    assert pixels.shape == pixels_now.shape
    assert float(numpy.abs(pixels - pixels_now).mean()) <= PICTURE_TOLERANCE


def test_there_is_one_for_every_reproduced_system() -> None:
    expected = {"first-study", "ack-filter", "accelerator", "tdd-pacing", "d2d", "router"}
    assert {path.stem for path in NOTEBOOKS} == expected


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_outputs_of_a_run(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    first = notebook.cells[0].source
    assert "paceline reproduce" in first or path.stem == "first-study", "the full command is named"
    committed, run = outputs(notebook), outputs(executed(path, tmp_path))
    assert any(picture(output) for output in run)
    assert not any(output.output_type == "stream" and output.name == "stderr" for output in run)
    assert len(committed) == len(run), "outputs are missing: make notebooks"
    for before, now in zip(committed, run, strict=True):
        compare(before, now)


def main() -> None:
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder))
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
        print(path)


if __name__ == "__main__":
    main()
