"""The `minijax` command: help, the learner's copy, refreshing notebooks."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from minijax_lab import command

ROOT = Path(__file__).resolve().parents[2]


def test_help_names_each_command(capsys):
    assert command.main([]) == 0
    said = capsys.readouterr().out
    assert "lab" in said and "course" in said and "minijax lab" in said
    with pytest.raises(SystemExit) as stop:
        command.main(["lab", "--help"])
    assert stop.value.code == 0
    assert "--no-browser" in capsys.readouterr().out


def test_the_copy_keeps_what_the_learner_wrote(tmp_path):
    copied, kept = command.copy_course(tmp_path / "my")
    assert command.FIRST_CHAPTER in copied and kept == []
    assert "tiny/trace.py" in copied
    mine = tmp_path / "my" / command.FIRST_CHAPTER
    mine.write_text("mine")
    copied, kept = command.copy_course(tmp_path / "my")
    assert copied == [] and command.FIRST_CHAPTER in kept
    assert mine.read_text() == "mine"


def test_the_course_is_not_copied_onto_itself():
    with pytest.raises(command.CommandError, match="where the course itself lives"):
        command.copy_course(command.course_folder())
    with pytest.raises(command.CommandError, match="there is no notebook"):
        arguments = command.make_parser().parse_args(["course", "refresh", "no.ipynb"])
        arguments.run(arguments)


def test_the_copy_is_signed(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    sign = pytest.importorskip("nbformat.sign")
    command.copy_course(tmp_path / "my")
    command.sign_notebooks(tmp_path / "my", [command.FIRST_CHAPTER])
    notebook = nbformat.read(tmp_path / "my" / command.FIRST_CHAPTER, as_version=4)
    notary = sign.NotebookNotary(data_dir=str(tmp_path / "data"))
    assert notary.check_signature(notebook)


def write_notebook(path: Path, source: str, output: str) -> None:
    from nbformat import v4, write

    cell = v4.new_code_cell(source, execution_count=1)
    if output:
        cell.outputs = [v4.new_output("stream", name="stdout", text=output)]
    write(v4.new_notebook(cells=[cell]), path)


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True)


def test_refresh_shows_a_difference_and_refuses_what_nothing_explains(
    tmp_path, capsys, monkeypatch
):
    refreshing = pytest.importorskip("minijax_lab.refresh")
    monkeypatch.setattr(refreshing, "code_changed", lambda: False)
    path = tmp_path / "02_example.ipynb"
    write_notebook(path, "print(1 + 1)", "3\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "a wrong output")
    before = path.read_text()
    assert refreshing.refresh([path]) == 1
    said = capsys.readouterr().out
    assert "-3\n+2" in said and "--accept 02:1" in said
    assert path.read_text() == before
    assert refreshing.refresh([path], accept=["02:1"]) == 0
    assert '"2\\n"' in path.read_text()
    # A changed cell explains its changed output.
    write_notebook(path, "print(1 + 2)", "2\n")
    assert refreshing.refresh([path]) == 0
    assert '"3\\n"' in path.read_text()


def test_the_wheel_brings_the_views_and_the_course(tmp_path):
    pytest.importorskip("hatchling")
    answer = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    wheel, *_ = tmp_path.glob("minijax-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    for wanted in ("minijax_lab/command.py", "minijax_widgets/__init__.py"):
        assert wanted in names
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"minijax_lab/notebooks/{path.name}" in names
    assert not [name for name in names if "__pycache__" in name]
    # Run from the unpacked wheel alone, in another folder.
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r});"
        "from minijax_lab.command import main; main(['lab', 'copy', '--prepare'])"
    )
    answer = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "copy" / "00_start_here.ipynb").is_file()


def test_lab_saves_widgets_with_the_notebook(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "elsewhere")
    environment = command.quiet_environment(str(tmp_path))
    first, _, rest = environment["JUPYTER_CONFIG_PATH"].partition(os.pathsep)
    assert rest == "elsewhere"
    path = Path(first) / "labconfig" / "default_setting_overrides.json"
    settings = json.loads(path.read_text())
    assert settings["@jupyter-widgets/jupyterlab-manager:plugin"]["saveState"] is True
