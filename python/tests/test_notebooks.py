"""The notebooks of docs/notebooks run from start to end."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_one_for_every_reproduced_system() -> None:
    expected = {"first-study", "ack-filter", "accelerator", "tdd-pacing", "d2d", "router"}
    assert {path.stem for path in NOTEBOOKS} == expected


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    where = {"metadata": {"path": str(tmp_path)}}
    # Sockets in a folder: of two kernels that start at the same time, one may find its TCP port taken.
    with tempfile.TemporaryDirectory(prefix="kernel-") as sockets:
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/socket"}})
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources=where, config=config
        )
        client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert pictures and all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    assert not any(output.output_type == "stream" and output.name == "stderr" for output in outputs)
    first = notebook.cells[0].source
    assert "paceline reproduce" in first or path.stem == "first-study", "the full command is named"
