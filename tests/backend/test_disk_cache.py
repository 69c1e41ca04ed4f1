"""The cache on disk under trouble: many processes, bad files, full and foreign folders.

Whatever happens, the program's numbers are right and the process ends well; there is at
most one warning for a folder.
"""

import concurrent.futures
import contextlib
import os
import random
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import minijax
from minijax.backend import disk_cache
from minijax.support.config import override

# Ten programs, and a word on where each came from; then the sum of all results, which
# tells a wrong program from a right one, and the number of warnings.
PROGRAMS = """
import sys, warnings
import numpy as np
import minijax
import minijax.numpy as jnp
from minijax.support import event_watching

came = []
def listen(name, data):
    if name == "compile":
        came.append(data["from_disk"])

x = np.arange(6.0, dtype=np.float32)
with warnings.catch_warnings(record=True) as seen, event_watching.subscribe(listen):
    warnings.simplefilter("always")
    total = 0
    for number in range(10):
        total += float(minijax.jit(lambda x: (x * number).sum() + number)(x))
print(int(total), sum(came), len(came), len(seen))
for warning in seen:
    print(warning.message, file=sys.stderr)
"""
RIGHT = sum(15 * number + number for number in range(10))


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "MINIJAX_COMPILATION_CACHE_DIR": str(folder), **more}


def finished(process: subprocess.Popen) -> tuple[list[int], str]:
    """The four numbers that a process printed, and its errors."""
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return [int(word) for word in out.split()], errors


def start(folder: Path, **more: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAMS],
        env=environment(folder, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_once(number: float) -> None:
    """A program of its own, with its value checked."""
    x = np.arange(3.0, dtype=np.float32)
    result = minijax.jit(lambda x: x * number + 1)(x)
    np.testing.assert_allclose(result, x * np.float32(number) + 1)


@contextlib.contextmanager
def cache_in(folder, **flags):
    """The cache in this folder, as if the process had just begun."""
    disk_cache.forget_folders()
    with contextlib.ExitStack() as stack:
        stack.enter_context(override("compilation_cache_dir", str(folder)))
        for name, value in flags.items():
            stack.enter_context(override(name, value))
        yield
    disk_cache.forget_folders()


def programs_in(folder) -> list[Path]:
    return sorted(Path(folder).glob("*.minijax"))


@pytest.fixture
def numbers():
    """Numbers that no other test has put into a program."""
    generator = random.Random(time.time_ns())
    return lambda: generator.uniform(1.0, 2.0)


# ---- where and what -----------------------------------------------------------------


def test_kept_in_the_users_cache_folder_by_default(tmp_path) -> None:
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("COMPILATION_CACHE_DIR")
    }
    for settings, folder in (
        ({"XDG_CACHE_HOME": str(tmp_path / "x")}, tmp_path / "x" / "minijax"),
        ({"HOME": str(tmp_path)}, tmp_path / ".cache" / "minijax"),
    ):
        home = {k: v for k, v in plain.items() if k != "XDG_CACHE_HOME"} | settings
        command = [sys.executable, "-c", PROGRAMS]
        out = subprocess.run(command, env=home, capture_output=True, text=True)
        assert out.stdout.split()[0] == str(RIGHT), out.stderr
        assert len(programs_in(folder)) >= 10
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(programs_in(folder)[0].stat().st_mode) == 0o600


def test_a_relative_cache_home_is_ignored(tmp_path) -> None:
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("COMPILATION_CACHE_DIR")
    }
    settings = {"XDG_CACHE_HOME": "relative", "HOME": str(tmp_path / "home")}
    finished(
        subprocess.Popen(
            [sys.executable, "-c", PROGRAMS],
            env={**plain, **settings, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    assert not (tmp_path / "relative").exists()
    assert len(programs_in(tmp_path / "home" / ".cache" / "minijax")) == 10


def test_without_a_home_nothing_is_kept(tmp_path, monkeypatch, numbers) -> None:
    monkeypatch.chdir(tmp_path)
    folder = "~nobody-has-this-name/programs"
    with cache_in(folder), pytest.warns(RuntimeWarning, match="home folder"):
        run_once(numbers())
    assert not list(tmp_path.iterdir())


def test_a_second_process_compiles_nothing(tmp_path) -> None:
    first, _ = finished(start(tmp_path))
    second, _ = finished(start(tmp_path))
    assert first == [RIGHT, 0, 10, 0]
    assert second == [RIGHT, 10, 10, 0]


def test_turned_off(tmp_path) -> None:
    off, _ = finished(start(tmp_path, JAX_ENABLE_COMPILATION_CACHE="0"))
    assert off == [RIGHT, 0, 10, 0]
    assert not list(tmp_path.iterdir())


def test_text_of_a_program_from_disk_has_todays_lines(tmp_path) -> None:
    code = "import minijax.numpy as jnp\n{}def f(x):\n    return jnp.sin(x) * 3.0\n"
    texts = []
    with cache_in(tmp_path):
        for lines in ("", "\n" * 40):
            space: dict = {}
            path = str(tmp_path / "user.py")
            exec(compile(code.format(lines), path, "exec"), space)
            compiled = minijax.jit(space["f"]).lower(np.ones(3)).compile()
            texts.append(compiled.as_text())
    assert len(programs_in(tmp_path)) == 1
    assert [" line=43 " in text for text in texts] == [False, True]


# ---- many processes -----------------------------------------------------------------


def test_ten_processes_at_once(tmp_path) -> None:
    processes = [start(tmp_path) for _ in range(10)]
    for process in processes:
        (total, _, programs, warned), _ = finished(process)
        assert (total, programs, warned) == (RIGHT, 10, 0)
    assert len(programs_in(tmp_path)) == 10
    assert not list(tmp_path.glob("*.unfinished"))


def test_processes_that_are_killed_leave_nothing_wrong(tmp_path) -> None:
    for delay in (0.3, 0.5, 0.7, 0.9):
        process = start(tmp_path)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (total, _, _, warned), _ = finished(start(tmp_path))
    assert (total, warned) == (RIGHT, 0)


def test_while_another_process_removes_everything(tmp_path) -> None:
    process = start(tmp_path)
    while process.poll() is None:
        for path in tmp_path.iterdir():
            path.unlink(missing_ok=True)
        time.sleep(0.001)
    (total, _, _, _), _ = finished(process)
    assert total == RIGHT


# ---- bad files ----------------------------------------------------------------------


def test_many_bad_files_and_one_warning(tmp_path) -> None:
    finished(start(tmp_path))
    generator = np.random.default_rng(0)
    for number, path in enumerate(programs_in(tmp_path)):
        content = bytearray(path.read_bytes())
        if number % 4 == 0:
            content = content[: int(generator.integers(len(content)))]
        elif number % 4 == 1:
            content[int(generator.integers(len(content)))] ^= 0x10
        elif number % 4 == 2:
            content = bytearray(generator.bytes(2000))
        else:
            content += b"more"
        path.write_bytes(content)
    (total, found, _, warned), errors = finished(start(tmp_path))
    assert (total, found, warned) == (RIGHT, 0, 1), errors
    assert "is damaged" in errors
    (total, found, _, warned), _ = finished(start(tmp_path))
    assert (total, found, warned) == (RIGHT, 10, 0)  # mended


def test_a_flipped_bit_is_always_found(tmp_path, numbers) -> None:
    number = numbers()
    with cache_in(tmp_path):
        run_once(number)
        (path,) = programs_in(tmp_path)
        whole = path.read_bytes()
        entry = disk_cache.DiskEntry(
            disk_cache.Folder(disk_cache.Policy(str(tmp_path), raise_errors=True)),
            path.stem,
        )
        assert entry.read() is not None
        for place in np.linspace(0, len(whole) - 1, 200).astype(int):
            changed = bytearray(whole)
            changed[place] ^= 1 << (place % 8)
            path.write_bytes(changed)
            with pytest.raises(RuntimeError, match="is damaged"):
                entry.read()


def test_a_link_is_not_followed(tmp_path, numbers) -> None:
    number = numbers()
    with cache_in(tmp_path / "a"):
        run_once(number)
    (path,) = programs_in(tmp_path / "a")
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with cache_in(tmp_path / "a"), pytest.warns(RuntimeWarning, match="could not be"):
        run_once(number)


def test_two_swapped_files_do_not_run_the_wrong_program(tmp_path, numbers) -> None:
    first, second = numbers(), numbers() + 1
    with cache_in(tmp_path):
        run_once(first)
        run_once(second)
    one, other = programs_in(tmp_path)
    one.rename(tmp_path / "kept")
    other.rename(one)
    (tmp_path / "kept").rename(other)
    with cache_in(tmp_path), pytest.warns(RuntimeWarning, match="another program"):
        run_once(first)
        run_once(second)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


@pytest.mark.parametrize(
    "make", [_pipe, _socket, Path.mkdir], ids=["pipe", "socket", "folder"]
)
def test_only_regular_files_are_opened(tmp_path, make, numbers) -> None:
    number = numbers()
    with cache_in(tmp_path):
        run_once(number)
    (path,) = programs_in(tmp_path)
    path.unlink()
    make(path)
    start_time = time.monotonic()
    with cache_in(tmp_path), pytest.warns(RuntimeWarning, match="regular|could not be"):
        run_once(number)
    assert time.monotonic() - start_time < 30


# ---- who may write ------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o660, 0o602, 0o666, 0o620])
def test_a_file_that_others_may_write_is_not_run(tmp_path, mode, numbers) -> None:
    number = numbers()
    with cache_in(tmp_path):
        run_once(number)
        (path,) = programs_in(tmp_path)
        path.chmod(mode)
        with pytest.warns(RuntimeWarning, match="file .* may be written by other"):
            run_once(number)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # replaced by its own


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o722])
def test_a_folder_that_others_may_write_is_not_used(tmp_path, mode, numbers) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with cache_in(folder):
        with pytest.warns(RuntimeWarning, match="may be written by other users"):
            run_once(numbers())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run_once(numbers())  # one warning only
    assert not list(folder.iterdir())


needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)


@needs_root
def test_a_folder_of_another_user_is_not_used(tmp_path, numbers) -> None:
    folder = tmp_path / "foreign"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with cache_in(folder), pytest.warns(RuntimeWarning, match="belongs to another"):
        run_once(numbers())
    assert not list(folder.iterdir())


@needs_root
def test_a_file_of_another_user_is_not_run(tmp_path, numbers) -> None:
    number = numbers()
    with cache_in(tmp_path):
        run_once(number)
        (path,) = programs_in(tmp_path)
        os.chown(path, 12345, 12345)
        with pytest.warns(RuntimeWarning, match="file .* belongs to another"):
            run_once(number)
    assert programs_in(tmp_path)[0].stat().st_uid == 0  # replaced by its own


# ---- no room ------------------------------------------------------------------------


def test_files_may_not_be_large(tmp_path) -> None:
    """A real limit of the system: a write beyond 1,000 bytes fails."""
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        + PROGRAMS
    )
    done = subprocess.run(
        [sys.executable, "-c", limited],
        env=environment(tmp_path / "programs"),
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(RIGHT), "0", "10", "1"], done.stderr
    assert "could not be written" in done.stderr
    assert not list((tmp_path / "programs").iterdir())


@contextlib.contextmanager
def small_disk(folder: Path, options: str):
    """A file system of its own at the folder, where the system lets us have one."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    if not made:
        pytest.skip("this system mounts nothing for us")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_full_disk(tmp_path) -> None:
    folder = tmp_path / "disk"
    with small_disk(folder, "size=16k,mode=0700"):
        (total, found, programs, warned), errors = finished(start(folder))
        assert (total, found, programs, warned) == (RIGHT, 0, 10, 1)
        assert "No space left" in errors
        assert not list(folder.glob("*.unfinished"))


def test_read_only_folder(tmp_path) -> None:
    folder = tmp_path / "disk"
    with small_disk(folder, "size=16m,mode=0700"):
        finished(start(folder))
        programs_in(folder)[0].unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        (total, found, _, warned), errors = finished(start(folder))
        assert (total, found, warned) == (RIGHT, 9, 1)
        assert "could not be written" in errors


def test_the_folder_stays_below_its_bound(tmp_path, numbers) -> None:
    with cache_in(tmp_path):
        run_once(numbers())
    size = programs_in(tmp_path)[0].stat().st_size
    bound = 5 * size + size // 2
    with cache_in(tmp_path, compilation_cache_max_size=bound):
        for _ in range(12):
            run_once(numbers())
            held = sum(path.stat().st_size for path in programs_in(tmp_path))
            assert held <= bound
    assert len(programs_in(tmp_path)) >= 3


def test_what_was_used_last_stays(tmp_path, numbers) -> None:
    first = numbers()
    with cache_in(tmp_path):
        run_once(first)
        for _ in range(4):
            run_once(numbers())
        size = max(path.stat().st_size for path in programs_in(tmp_path))
        for age, path in enumerate(programs_in(tmp_path)):
            os.utime(path, (1000 + age, 1000 + age))
        run_once(first)  # from disk: used now
    with cache_in(tmp_path, compilation_cache_max_size=4 * size):
        run_once(numbers())
        left = [path.stat().st_mtime for path in programs_in(tmp_path)]
        assert len(left) <= 4
        assert sum(time > 2000 for time in left) == 2  # the first and the newest


def test_a_program_larger_than_the_bound_is_not_kept(tmp_path, numbers) -> None:
    with cache_in(tmp_path, compilation_cache_max_size=100):
        run_once(numbers())
    assert not programs_in(tmp_path)


def test_unfinished_files_are_removed(tmp_path, numbers) -> None:
    old, new = tmp_path / "old.unfinished", tmp_path / "new.unfinished"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    with cache_in(tmp_path):
        run_once(numbers())
    assert not old.exists()
    assert new.exists()


def test_a_folder_removed_meanwhile_is_made_again(tmp_path, numbers) -> None:
    folder = tmp_path / "programs"
    with cache_in(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        run_once(numbers())
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        run_once(numbers())
    assert len(programs_in(folder)) == 1


def test_threads_and_the_bound(tmp_path, numbers) -> None:
    with cache_in(tmp_path):
        run_once(numbers())
    bound = 5 * programs_in(tmp_path)[0].stat().st_size
    wanted = [numbers() for _ in range(12)]
    directory = str(tmp_path)

    def work(number: float) -> None:
        with override("compilation_cache_dir", directory):
            with override("compilation_cache_max_size", bound):
                run_once(number)

    disk_cache.forget_folders()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(work, wanted * 2))
    sizes = [path.stat().st_size for path in programs_in(tmp_path)]
    assert len(sizes) >= 3 and sum(sizes) <= bound


def test_the_command_tells_and_clears(tmp_path) -> None:
    def told(*options: str) -> str:
        command = [sys.executable, "-m", "minijax", "cache", *options]
        done = subprocess.run(
            command, env=environment(tmp_path), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"{tmp_path}: 0 programs" in told()
    finished(start(tmp_path))
    assert f"{tmp_path}: 10 programs" in told()
    assert "10 programs" in told("--clear") and not programs_in(tmp_path)


def test_the_command_survives_what_is_no_program(tmp_path) -> None:
    finished(start(tmp_path))
    (tmp_path / "folder.minijax").mkdir()
    (tmp_path / "folder.minijax" / "mine").write_text("kept")
    (tmp_path / "link.minijax").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.minijax")
    command = [sys.executable, "-m", "minijax", "cache", "--clear"]

    def cleared(folder: Path) -> subprocess.CompletedProcess:
        return subprocess.run(
            command,
            env=environment(folder),
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = cleared(tmp_path)
    assert done.returncode == 0 and "12 programs" in done.stdout, done.stderr
    assert programs_in(tmp_path) == [tmp_path / "folder.minijax"]
    assert (tmp_path / "folder.minijax" / "mine").read_text() == "kept"
    done = cleared(tmp_path / "folder.minijax" / "mine")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot be read" in done.stderr
