"""Files appear whole or not at all, with the mode they had, and failures are said in one sentence."""

from __future__ import annotations

import ast
import errno
import io
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calipers.exceptions import DeprecatedNameWarning, InputError
from calipers.results import write_atomically, write_together
from calipers.results.writing import FolderContent, remove_leftovers

POSIX = pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")


ROOT = Path(__file__).resolve().parents[3]
# Files that open one for writing themselves, and why they must.
OTHERS = {
    "src/calipers/results/writing.py": "the one place",
    "src/calipers/cli/audit.py": "appends to the summary that GitHub collects",
    "src/calipers/cli/streams.py": "opens the null device where the caller closed a stream",
}


def writes_itself(node: ast.AST) -> bool:
    """Whether a call writes a file and does not leave that to `write_atomically`, whose functions get ``file``."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in {"save", "savez", "savez_compressed", "savefig"}:
        return getattr(node.args[0], "id", "") != "file"
    given = [*node.args, *(word.value for word in node.keywords if word.arg == "mode")]
    modes = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    opened = name in {"open", "fdopen"} and any(len(m) <= 3 and set(m) & set("wxa") for m in modes)
    return opened or name in {"write_text", "write_bytes"}


def test_nothing_else_writes_a_file() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "studies")
        for path in (ROOT / folder).rglob("*.py")
        if any(map(writes_itself, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == set(OTHERS)


def fail_with(number: int):
    """A function that fails as the operating system does."""

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\nµ", "a\nµ".encode()),
        (b"\x00\xff", b"\x00\xff"),
        (lambda file: file.write(b"streamed"), b"streamed"),
    ],
    ids=["text", "bytes", "writer"],
)
def test_text_bytes_and_what_a_function_writes(tmp_path: Path, content, expected: bytes) -> None:
    place = write_atomically(str(tmp_path / "a.out"), content)
    assert place == tmp_path / "a.out"
    assert place.read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["a.out"]


def test_a_writer_may_seek_and_read_back(tmp_path: Path) -> None:
    place = write_atomically(tmp_path / "a.npz", lambda file: np.savez(file, x=np.arange(3)))
    with np.load(place) as stored:
        assert stored["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, OSError])
def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch, moment: str, failure) -> None:
    place = write_atomically(tmp_path / "report.html", "old")

    def stop(*_, **__):
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(os, moment, stop)
        with pytest.raises((failure, InputError)):
            write_atomically(place, "new")
    assert place.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_writer_that_fails_in_the_middle_leaves_no_file(tmp_path: Path) -> None:
    def half(file: io.BufferedIOBase) -> None:
        file.write(b"half")
        raise ValueError("the second half is missing")

    with pytest.raises(ValueError, match="the second half is missing"):
        write_atomically(tmp_path / "a.csv", half)
    assert list(tmp_path.iterdir()) == []


def test_the_content_is_on_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (steps.append("replace"), replace(*names)))
    write_atomically(tmp_path / "a.txt", "text")
    assert steps == ["fsync", "replace"]


@POSIX
def test_an_existing_file_keeps_its_mode_and_a_new_one_gets_the_usual(tmp_path: Path) -> None:
    old = tmp_path / "old.txt"
    old.write_text("old", encoding="utf-8")
    old.chmod(0o640)
    write_atomically(old, "new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    plain = tmp_path / "plain.txt"
    plain.write_text("", encoding="utf-8")
    made = write_atomically(tmp_path / "made.txt", "new")
    assert stat.S_IMODE(made.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@POSIX
def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "real.txt"
    target.write_text("old", encoding="utf-8")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    assert write_atomically(link, "new") == link
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null")
def test_a_device_is_written_into_and_not_replaced() -> None:
    write_atomically("/dev/null", "text")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "a.txt"
    with pytest.raises(InputError) as refused:
        write_atomically(place, "text")
    folder = place.parent
    assert str(refused.value) == (
        f"{place} cannot be written: the folder {folder} does not exist. Make it, or give another place."
    )


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="file is a file, not a folder. Give another place."):
        write_atomically(tmp_path / "file" / "a.txt", "text")


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(InputError, match="a.txt cannot be written: it is a folder. Give the name of a file."):
        write_atomically(tmp_path / "a.txt", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EACCES, "the folder {folder} may not be written to"),
        (errno.EPERM, "the folder {folder} may not be written to"),
        (errno.EROFS, "the folder {folder} is on a read-only file system"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
@pytest.mark.parametrize("moment", ["open", "fsync", "replace"])
def test_what_the_system_refuses_is_one_sentence(tmp_path, monkeypatch, number, reason, moment) -> None:
    place = write_atomically(tmp_path / "a.txt", "old")
    with monkeypatch.context() as patched:
        patched.setattr(os, moment, fail_with(number))
        with pytest.raises(InputError) as refused:
            write_atomically(place, "new")
    sentence = str(refused.value)
    assert sentence.startswith(f"{place} cannot be written: {reason.format(folder=tmp_path)}. ")
    assert "\n" not in sentence
    assert isinstance(refused.value.__cause__, OSError)
    assert place.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch) -> None:
    place = write_atomically(tmp_path / "a.txt", "old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(InputError, match=r"a.txt cannot be written: it is read-only."):
        write_atomically(place, "new")
    assert place.read_text(encoding="utf-8") == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_really_full_disk_is_named() -> None:
    with pytest.raises(InputError, match="/dev/full cannot be written: the disk is full"):
        write_atomically("/dev/full", "text")


def test_an_error_of_the_writer_about_another_file_is_not_ours(tmp_path: Path) -> None:
    def read_first(file: io.BufferedIOBase) -> None:
        file.write((tmp_path / "no-such-input").read_bytes())

    with pytest.raises(FileNotFoundError, match="no-such-input"):
        write_atomically(tmp_path / "a.txt", read_first)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="may not be written to"):
            write_atomically(tmp_path / "a.txt", "text")
    finally:
        tmp_path.chmod(0o700)


def test_the_old_name_works_and_warns(tmp_path: Path) -> None:
    from calipers import report

    with pytest.warns(DeprecatedNameWarning, match=r"calipers.results.write_atomically"):
        write = report.write_text
    assert write is write_atomically
    with pytest.raises(AttributeError, match="no attribute 'write_texts'"):
        _ = report.write_texts
    assert sys.modules["calipers.report"] is report


def parts(*texts: str) -> FolderContent:
    def fill(folder: Path) -> None:
        for number, text in enumerate(texts):
            (folder / f"part-{number}").write_text(text, encoding="utf-8")

    return FolderContent(fill)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    place = tmp_path / "rows"
    write_together({place: parts("a", "b", "c")})
    write_together({place: parts("d")})
    assert [(path.name, path.read_text(encoding="utf-8")) for path in place.iterdir()] == [("part-0", "d")]
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_a_folder_that_cannot_be_filled_changes_nothing(tmp_path: Path) -> None:
    place, other = tmp_path / "rows", tmp_path / "report.html"
    write_together({place: parts("old", "old"), other: "old"})

    def fail(folder: Path) -> None:
        (folder / "part-0").write_text("new", encoding="utf-8")
        raise InputError("row 7 is damaged.")

    with pytest.raises(InputError, match="row 7 is damaged"):
        write_together({other: "new", place: FolderContent(fail)})
    assert other.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in place.iterdir()) == ["part-0", "part-1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "rows"]


@POSIX
def test_what_a_killed_process_was_writing_is_removed_later(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from calipers.results.writing import FolderContent, write_together\n"
        "def stop(file): os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_together({Path(sys.argv[1], 'a'): 'text', Path(sys.argv[1], 'b'): stop})\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    left = list(tmp_path.iterdir())
    assert len(left) == 2
    assert all(path.name.startswith(".calipers-") for path in left)
    running = left[0].with_name(left[0].name.replace(left[0].name.split("-")[2], str(os.getpid())))
    running.write_text("under way", encoding="utf-8")
    remove_leftovers([tmp_path, tmp_path / "missing"])
    assert list(tmp_path.iterdir()) == [running]
