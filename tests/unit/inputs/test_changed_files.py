"""Files that another program cuts off or writes to while the library reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.engines import FileSource
from calipers.exceptions import InputError
from calipers.inputs.files import read_table
from calipers.inputs.files.file_patterns import distinct
from calipers.inputs.files.formats import FORMATS, write_table
from calipers.inputs.files.readers import open_file

ENDINGS = [kind.endings[0] for kind in FORMATS]

CUT_OFF = """
import os, sys, threading, time
path = sys.argv[1]
whole = open(path, "rb").read()
def cut():
    while True:
        os.truncate(path, len(whole) // 7)
        time.sleep(0.01)
        with open(path, "r+b") as file:
            file.write(whole)
        time.sleep(0.05)
from calipers.engines import FileSource
from calipers.exceptions import InputError
from calipers.inputs.files import read_table
threading.Thread(target=cut, daemon=True).start()
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        assert read_table(path).height
    except InputError:
        pass
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "truncate"), reason="no truncate")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_cut_off_while_the_library_reads_it_ends_no_process(ending: str, tmp_path: Path) -> None:
    # A mapped file that shrinks raises SIGBUS, which no program can answer.
    rng, n = np.random.default_rng(0), 200_000
    place = tmp_path / f"rows{ending}"
    write_table(pl.DataFrame({"y_true": rng.normal(size=n), "lower": -rng.random(n)}), str(place))
    done = subprocess.run([sys.executable, "-c", CUT_OFF, str(place)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".parquet", ".arrow"])
def test_rows_of_a_file_written_to_after_it_was_opened_are_refused(ending: str, tmp_path: Path) -> None:
    place = str(tmp_path / f"rows{ending}")
    write_table(pl.DataFrame({"y_true": range(9)}), place)
    reader = open_file(place)
    assert reader.n_rows == 9
    write_table(pl.DataFrame({"y_true": range(20, 40)}), place)
    with pytest.raises(InputError, match=r"changed while it was read\. Read it when it is complete"):
        reader.read(0, 9, ["y_true"])
    with pytest.raises(InputError, match="changed while it was read"):
        list(reader.batches(0, 9, ["y_true"], 2))
    assert read_table(place).height == 20


# Characters that Windows has in no name.
STRANGE = ["a*", "a?", "[ab]", "a%20b", "a#b", "ä ö", "a&b", "a\nb"]


@pytest.mark.skipif(os.name == "nt", reason="names of POSIX")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", STRANGE)
def test_the_name_of_a_file_is_no_pattern_and_no_address(name: str, ending: str, tmp_path: Path) -> None:
    # A json-lines file called a*.jsonl was read together with its neighbours.
    for other in ("a", "ab", "abc", "a b"):
        write_table(pl.DataFrame({"y_true": [7, 8]}), str(tmp_path / f"{other}{ending}"))
    place = str(tmp_path / f"{name}{ending}")
    write_table(pl.DataFrame({"y_true": [1, 2, 3]}), place)
    assert read_table(place)["y_true"].to_list() == [1, 2, 3]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_path_through_a_parent_folder_is_read(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "below")
    write_table(pl.DataFrame({"y_true": [1, 2, 3]}), str(tmp_path / f"rows{ending}"))
    write_table(pl.DataFrame({"y_true": [4]}), str(tmp_path / "elsewhere" / f"rows{ending}"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert read_table(f"../rows{ending}")["y_true"].to_list() == [1, 2, 3]
    # The parent of a linked folder is that of the folder itself, as the operating system has it.
    assert read_table(tmp_path / "link" / ".." / f"rows{ending}")["y_true"].to_list() == [4]
    assert distinct([f"rows{ending}", f"../elsewhere/rows{ending}"]) == [f"rows{ending}"]


def test_an_error_of_the_reader_names_the_file_as_it_was_given(tmp_path: Path) -> None:
    place = tmp_path / "rows 1.parquet"
    place.write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(InputError) as caught:
        read_table(place)
    assert "file:" not in str(caught.value)
    assert str(caught.value).startswith(f"{place} could not be read as parquet")


def test_a_name_that_no_file_can_have_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"'a\\x00b\.csv' is not a file name"):
        list(FileSource("a\0b.csv").files())
