"""``calipers serve``: only this machine, only this token, only this origin, only these files."""

from __future__ import annotations

import gzip
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.cli import main
from calipers.cli.options import Settings
from calipers.cli.serve import LOOPBACK, free_socket
from calipers.cli.serve_jobs import Job, Workshop, checked_choices
from calipers.cli.serve_runs import RunStore
from calipers.exceptions import InputError
from calipers.fields import FIELDS

starlette = pytest.importorskip("starlette.testclient", reason="the local page needs calipers[serve]")

TOKEN, PORT = "secret-token", 8765
ORIGIN = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    y = np.random.default_rng(0).normal(size=600)
    frame = pl.DataFrame({"y_true": y, "lower": np.full(600, -1.0), "upper": np.full(600, 1.0)})
    frame.write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


@pytest.fixture
def client(rows: Path, tmp_path: Path) -> Iterator[Any]:
    from calipers.cli.serve_app import make_app

    uploads = tmp_path / "uploads"
    uploads.mkdir()
    app = make_app(Workshop([rows], Settings()), token=TOKEN, port=PORT, upload_limit=50_000, folder=uploads)
    with starlette.TestClient(app, base_url=ORIGIN) as made:
        yield made


def post(client: Any, path: str, **options: Any) -> Any:
    return client.post(f"/{TOKEN}/{path}", headers={"origin": ORIGIN}, **options)


def finished(client: Any, job: str) -> dict[str, Any]:
    for _ in range(600):
        state = client.get(f"/{TOKEN}/jobs/{job}").json()
        if state["state"] != "running":
            return state
        time.sleep(0.05)
    raise AssertionError("the audit did not finish")


def test_an_audit_runs_and_its_report_is_shown(client: Any) -> None:
    assert "rows.csv" in client.get(f"/{TOKEN}/").text
    job = post(client, "run", json={"file": "0", "choices": {"alpha": "0.1"}}).json()["job"]
    state = finished(client, job)
    assert state["verdict"]["severity"] == "issue"
    assert client.get(f"/{TOKEN}/reports/{job}").text.startswith("<!doctype html>")


def test_two_runs_can_be_compared(client: Any) -> None:
    jobs = []
    for calibration in ("", "5000"):
        asked = {"file": "0", "choices": {"n_calibration": calibration}}
        jobs.append(post(client, "run", json=asked).json()["job"])
        finished(client, jobs[-1])
    page = client.get(f"/{TOKEN}/compare", params={"job": jobs})
    assert "Calipers comparison" in page.text


REFUSED = {
    "no token": ("/", {}, "wrong token"),
    "another token": ("/secret-tokeN/", {}, "wrong token"),
    "another letter than ascii": ("/gehéim/", {}, "wrong token"),
    "a foreign name": (f"/{TOKEN}/", {"host": "evil.example"}, "wrong host"),
    "a foreign name with the port": (f"/{TOKEN}/", {"host": f"evil.example:{PORT}"}, "wrong host"),
    "a foreign origin": (f"/{TOKEN}/", {"origin": "https://evil.example"}, "wrong origin"),
    "the null origin": (f"/{TOKEN}/", {"origin": "null"}, "wrong origin"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_strangers_are_refused(case: str, client: Any) -> None:
    path, headers, expected = REFUSED[case]
    answer = client.get(path, headers=headers)
    assert (answer.status_code, answer.text) == (403, expected)


def test_a_change_without_an_origin_is_refused(client: Any) -> None:
    assert client.post(f"/{TOKEN}/run", json={"file": "0"}).status_code == 403


@pytest.mark.parametrize("name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd", "rows.csv"])
def test_files_are_known_by_number_and_never_by_path(name: str, client: Any) -> None:
    answer = client.get(f"/{TOKEN}/columns/{name}")
    assert answer.status_code in {400, 403, 404}
    assert "root:" not in answer.text
    refused = post(client, "run", json={"file": name, "choices": {}})
    assert (refused.status_code, refused.json()["error"]) == (
        400,
        "there is no such file here; files are known by number.",
    )


def test_an_upload_is_kept_under_a_name_of_ours(client: Any, rows: Path, tmp_path: Path) -> None:
    answer = post(client, "upload?name=../../evil.csv", content=rows.read_bytes())
    assert answer.json() == {"file": "1", "name": "evil.csv"}
    (kept,) = (tmp_path / "uploads").iterdir()
    assert kept.read_bytes() == rows.read_bytes()
    assert "evil" not in kept.name
    assert "y_true" in client.get(f"/{TOKEN}/columns/1").json()["roles"]


def test_a_large_upload_is_refused_and_leaves_nothing(client: Any, tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    stated = post(client, "upload?name=big.csv", content=b"x" * 60_000)
    streamed = post(client, "upload?name=big.csv", content=blocks())
    for answer in (stated, streamed):
        assert answer.status_code == 400
        assert "is larger than" in answer.json()["error"]
    assert not list((tmp_path / "uploads").iterdir())


def test_an_upload_nobody_can_read_is_refused(client: Any, tmp_path: Path) -> None:
    answer = post(client, "upload?name=evil.exe", content=b"MZ")
    assert answer.status_code == 400
    assert "must end in .csv" in answer.json()["error"]
    assert not list((tmp_path / "uploads").iterdir())


def test_a_bad_choice_is_one_sentence(client: Any) -> None:
    said = post(client, "run", json={"file": "0", "choices": {"alpha": "90"}}).json()["error"]
    assert said.startswith("alpha must lie strictly between 0 and 1, got 90.0.")
    for alpha in ("0,1", "ten"):
        said = post(client, "run", json={"file": "0", "choices": {"alpha": alpha}}).json()["error"]
        assert said.startswith('the field "alpha" must be numbers between 0 and 1 such as 0.1')
        assert f"got '{alpha}'. A comma separates levels; decimals have a point." in said
    with pytest.raises(InputError, match="the page cannot choose 'max_rows'"):
        checked_choices({"max_rows": 3})
    with pytest.raises(InputError, match="n_calibration must be a whole number"):
        checked_choices({"n_calibration": "-1"})


def test_answers_carry_headers_that_keep_everything_inside(client: Any) -> None:
    headers = client.get(f"/{TOKEN}/").headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_socket_listens_on_the_loopback_address_only() -> None:
    with free_socket(0) as listener:
        assert listener.getsockname()[0] == LOOPBACK == "127.0.0.1"


def test_a_port_that_is_taken_and_a_missing_file_are_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    with free_socket(0) as taken:
        taken.listen()
        assert main(["serve", "--no-open", "--port", str(taken.getsockname()[1])]) == 2
    assert re.search(r"port \d+ cannot be used", capsys.readouterr().err)
    assert main(["serve", "--no-open", "missing.csv"]) == 2
    assert "missing.csv does not exist" in capsys.readouterr().err


def test_the_page_shows_the_levels_of_the_file_and_prefills_none(
    client: Any, rows: Path, tmp_path: Path
) -> None:
    stated = pl.read_csv(rows).rename({"lower": "lower@0.05", "upper": "upper@0.05"})
    answer = post(client, "upload?name=stated.csv", content=stated.write_csv().encode()).json()
    assert client.get(f"/{TOKEN}/columns/{answer['file']}").json()["alpha"] == [0.05]
    assert client.get(f"/{TOKEN}/columns/0").json()["alpha"] == [0.1]
    job = post(client, "run", json={"file": answer["file"], "choices": {"alpha": ""}}).json()["job"]
    assert finished(client, job)["state"] == "finished"
    assert "95\u00a0%" in client.get(f"/{TOKEN}/reports/{job}").text


def test_the_form_has_a_place_for_every_field(client: Any) -> None:
    page = client.get(f"/{TOKEN}/").text
    assert set(re.findall(r'<input name="(\w+)"', page)) == {"alpha", "n_calibration", "sep"} | {
        field.option for field in FIELDS
    }


def test_a_bomb_is_refused_in_one_sentence(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calipers.inputs.files.size_limits._ALWAYS_ALLOWED", 1 << 20)
    packed = gzip.compress(b"y_true,lower,upper\n" + b"0,0,0\n" * (1 << 20))
    answer = post(client, "upload?name=bomb.csv.gz", content=packed).json()
    columns = client.get(f"/{TOKEN}/columns/{answer['file']}")
    assert (columns.status_code, "unpacks to more than" in columns.json()["error"]) == (400, True)
    job = post(client, "run", json={"file": answer["file"], "choices": {}}).json()["job"]
    assert "unpacks to more than" in finished(client, job)["error"]


def audited(client: Any, file: str = "0") -> str:
    job = post(client, "run", json={"file": file, "choices": {}}).json()["job"]
    assert finished(client, job)["state"] == "finished"
    return job


def test_a_run_keeps_the_name_the_user_gave_the_file(client: Any, rows: Path) -> None:
    answer = post(client, "upload?name=my houses.csv", content=rows.read_bytes()).json()
    job = audited(client, answer["file"])
    (run,) = client.get(f"/{TOKEN}/runs").json()
    assert (run["job"], run["name"], run["rows"]) == (job, "my houses.csv", 600)
    assert "Calipers audit of my houses.csv" in client.get(f"/{TOKEN}/reports/{job}").text


def test_errors_name_the_file_as_the_user_does(client: Any, tmp_path: Path) -> None:
    answer = post(client, "upload?name=my numbers.csv", content=b"a,b\n1,2\n").json()
    said = client.get(f"/{TOKEN}/columns/{answer['file']}").json()
    job = post(client, "run", json={"file": answer["file"], "choices": {}}).json()["job"]
    error = finished(client, job)["error"]
    assert error
    assert str(tmp_path) not in str(said) + error
    assert "tmp" not in error.replace("my numbers.csv", "")


@pytest.mark.parametrize(
    ("ending", "beginning"),
    [("html", "<!doctype html>"), ("json", "{"), ("md", "## Calipers"), ("csv", "row,covered")],
)
def test_a_report_can_be_kept_in_every_form(client: Any, ending: str, beginning: str) -> None:
    job = audited(client)
    answer = client.get(f"/{TOKEN}/reports/{job}.{ending}")
    assert answer.text.startswith(beginning)
    assert answer.headers["content-disposition"] == f'attachment; filename="rows.{ending}"'
    assert answer.headers["content-security-policy"].startswith("sandbox ")
    assert client.get(f"/{TOKEN}/reports/{job}.exe").status_code == 404


def test_the_rows_say_which_were_covered(client: Any, rows: Path) -> None:
    job = audited(client)
    kept = pl.read_csv(client.get(f"/{TOKEN}/reports/{job}.csv").content)
    y = pl.read_csv(rows)["y_true"]
    assert kept["covered"].to_list() == ((y >= -1) & (y <= 1)).to_list()


def test_a_report_is_a_page_of_no_origin(client: Any) -> None:
    policy = client.get(f"/{TOKEN}/reports/{audited(client)}").headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy


def test_runs_in_a_named_folder_survive_a_restart(rows: Path, tmp_path: Path) -> None:
    from calipers.cli.serve_runs import RunStore

    folder = tmp_path / "kept"
    first = Workshop([rows], Settings(), RunStore(folder))
    job = first.start("0", {})
    first._pool.shutdown(wait=True)
    (folder / "notes.json").write_text("{}")
    (folder / "broken.json").write_text("{")
    again = Workshop([], Settings(), RunStore(folder))
    (run,) = again.runs()
    assert (run["job"], run["name"], run["has_rows"]) == (job, "rows.csv", False)
    kept, made = again.store.get(job), first.store.get(job)
    assert kept.download("html") == made.download("html")
    assert kept.download("json") == made.download("json")
    with pytest.raises(InputError, match="rows of a run from an earlier start are not kept"):
        kept.download("csv")
    assert "side by side" in again.compare([job, job])
    with pytest.raises(InputError, match="choose two finished audits or more"):
        again.compare([job])
    with pytest.raises(InputError, match="--keep must be a folder"):
        RunStore(rows)


def test_nothing_is_kept_without_a_folder(client: Any, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    audited(client)
    assert sorted(tmp_path.rglob("*")) == before


def test_audits_of_other_rows_stand_side_by_side(client: Any) -> None:
    example = post(client, "example").json()
    assert example["name"] == "example-houses.csv"
    roles = client.get(f"/{TOKEN}/columns/{example['file']}").json()["roles"]
    assert len(roles) == 7
    jobs = [audited(client), audited(client, example["file"])]
    page = client.get(f"/{TOKEN}/compare", params={"job": jobs}).text
    assert "2 audits side by side" in page
    assert "example-houses.csv" in page


def test_an_upload_is_shown_under_its_own_name(client: Any, rows: Path) -> None:
    number = post(client, "upload?name=..%5Cmine%1b.csv", content=rows.read_bytes()).json()
    assert number == {"file": "1", "name": "mine\\x1b.csv"}
    job = post(client, "run", json={"file": "1", "choices": {}}).json()["job"]
    assert finished(client, job)["name"] == "mine\\x1b.csv"
    page = client.get(f"/{TOKEN}/reports/{job}").text
    assert "mine\\x1b.csv" in page
    assert not re.search(r"tmp\w{8}\.csv", page)
    broken = post(client, "upload?name=broken.csv", content=b"y_true,lower\n1,x\n").json()["file"]
    refused = client.get(f"/{TOKEN}/columns/{broken}").json()
    job = post(client, "run", json={"file": broken, "choices": {}}).json()["job"]
    for text in (str(refused), finished(client, job)["error"]):
        assert not re.search(r"tmp\w{8}", text)
    assert "broken.csv" in finished(client, job)["error"]


@pytest.mark.parametrize("body", [b"[" * 60_000, b"\xff", b"{", b'{"file": {"a": [[]]}}', b"x" * 70_000])
def test_a_malformed_request_is_bad_input_and_no_fault(body: bytes, client: Any) -> None:
    assert post(client, "run", content=body).status_code == 400


def test_a_broken_upload_leaves_no_file(client: Any, tmp_path: Path) -> None:
    def half() -> Iterator[bytes]:
        yield b"y_true\n"
        raise RuntimeError("the sender left")

    with pytest.raises((RuntimeError, ExceptionGroup)):
        post(client, "upload?name=a.csv", content=half())
    assert list((tmp_path / "uploads").iterdir()) == []


def test_old_audits_lose_their_rows_and_the_oldest_are_forgotten(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calipers.cli import serve_runs

    monkeypatch.setattr(serve_runs, "MOST_RUNS", 4)
    monkeypatch.setattr(serve_runs, "MOST_AUDITS", 2)
    workshop, jobs = Workshop([rows], Settings()), []
    for _ in range(6):
        jobs.append(workshop.start("0", {}))
        while workshop.jobs[jobs[-1]].state()["state"] == "running":
            time.sleep(0.02)
    assert list(workshop.store.runs) == jobs[-4:]
    assert [run.audit is not None for run in workshop.store.runs.values()] == [False, False, True, True]
    assert workshop.store.get(jobs[-4]).download("html").startswith("<!doctype html>")
    assert "side by side" in workshop.compare(jobs[-4:])
    workshop.close()


def test_folders_of_ended_pages_are_removed_and_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import subprocess
    import sys

    from calipers.cli.serve_uploads import PREFIX, upload_folder

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, ours, foreign = (tmp_path / f"{PREFIX}{number}-abc" for number in (ended.pid, os.getpid(), "notes"))
    for place in (left, ours, foreign):
        place.mkdir()
    with upload_folder() as folder:
        assert sorted(tmp_path.iterdir()) == sorted([ours, foreign, folder])
    assert not folder.exists()


def started(tmp_path: Path) -> tuple[Any, int, str]:
    import os
    import subprocess
    import sys

    program = "import sys; from calipers.cli import main; sys.exit(main(['serve', '--no-open']))"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    line = process.stdout.readline()
    port, token = re.search(r"127\.0\.0\.1:(\d+)/([^/]+)/", line).groups()
    return process, int(port), token


def test_the_end_by_a_signal_removes_uploads(tmp_path: Path) -> None:
    import httpx

    process, port, token = started(tmp_path)
    origin = {"origin": f"http://127.0.0.1:{port}"}
    sent = httpx.post(
        f"http://127.0.0.1:{port}/{token}/upload?name=a.csv", content=b"y_true\n1\n", headers=origin
    )
    assert sent.status_code == 200
    assert len(list(tmp_path.rglob("*.csv"))) == 1
    process.terminate()
    assert process.wait(20) == 143
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_half_open_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from starlette.applications import Starlette

    from calipers.cli import serve_connections

    monkeypatch.setattr(serve_connections, "SECONDS_FOR_A_REQUEST", 0.2)
    monkeypatch.setattr(serve_connections, "MOST_CONNECTIONS", 5)

    async def attack() -> list[bytes]:
        import uvicorn

        server = uvicorn.Server(serve_connections.server_settings(Starlette()))
        with free_socket(0) as listener:
            port = listener.getsockname()[1]
            running = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started:
                await asyncio.sleep(0.01)
            streams = [await asyncio.open_connection(LOOPBACK, port) for _ in range(8)]
            for _, writer in streams:
                writer.write(b"GET / HTTP/1.1\r\nHost: x")
            answers = [await asyncio.wait_for(reader.read(), 10) for reader, _ in streams]
            for _, writer in streams:
                writer.close()
            server.should_exit = True
            await running
        return answers

    with ThreadPoolExecutor(1) as apart:  # a browser test may have left a loop in this thread
        assert apart.submit(lambda: asyncio.run(attack())).result() == [b""] * 8


def test_a_file_without_an_outcome_shows_its_columns_and_says_which_field_to_fill(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("truth,lower,upper\n" + "0.5,0,1\n" * 50, encoding="utf-8")
    shop = Workshop([tmp_path / "mine.csv"], Settings())
    shown = shop.columns("0")
    assert list(shown["roles"]) == ["truth", "lower", "upper"]
    assert shown["problem"].startswith("mine.csv has no column 'y_true'")
    assert 'with the field "outcome" below' in shown["problem"]
    assert "--" not in shown["problem"]
    job = shop.start("0", {"y": "truth"})
    while (state := shop.jobs[job].state())["state"] == "running":
        time.sleep(0.05)
    assert state["verdict"], state
    shop.close()


def test_runs_of_one_file_are_numbered_in_a_comparison(client: Any) -> None:
    jobs = []
    for alpha in ("0.1", "0.2", "0.3"):
        jobs.append(post(client, "run", json={"file": "0", "choices": {"alpha": alpha}}).json()["job"])
        finished(client, jobs[-1])
    page = client.get(f"/{TOKEN}/compare", params={"job": jobs}).text
    for number, job in enumerate(jobs, 1):
        assert f'<th scope="col"><a href="reports/{job}">{number}. rows.csv</a></th>' in page


def test_an_audit_can_be_removed_and_the_others_keep_their_numbers(rows: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "kept")
    found = calipers.audit(np.zeros(60), intervals=np.tile([-1.0, 1.0], (60, 1)), random_state=0)
    for identity in ("a" * 12, "b" * 12, "c" * 12):
        store.add(identity, "rows.csv", found)
    store.remove("b" * 12)
    assert [run.number for run in store.runs.values()] == [1, 3]
    assert sorted(path.stem for path in (tmp_path / "kept").iterdir()) == ["a" * 12, "c" * 12]
    store.add("d" * 12, "rows.csv", found)
    assert store.get("d" * 12).number == 4
    with pytest.raises(InputError, match="no such finished audit"):
        store.remove("b" * 12)


def test_an_audit_can_be_stopped_and_says_its_question_until_then(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on, seen = threading.Event(), threading.Event(), []
    move = Job.move

    def slow(job: Job, code: str, done: int, total: int) -> None:
        if code.startswith("CAL1"):
            reached.set()
            go_on.wait(20)
        move(job, code, done, total)
        seen.append(job.state()["step"])

    monkeypatch.setattr(Job, "move", slow)
    job = post(client, "run", json={"file": "0"}).json()["job"]
    assert reached.wait(60)
    assert post(client, f"jobs/{job}/stop").status_code == 200
    go_on.set()
    state = finished(client, job)
    assert (state["state"], state["stopped"]) == ("failed", True)
    assert state["error"] == "rows.csv: the audit was stopped."
    assert state["step"] == "Does it cover as often as it says?"
    assert client.get(f"/{TOKEN}/runs").json() == []
    assert post(client, "jobs/nothing/stop").status_code == 400


def test_columns_are_shown_as_the_page_has_chosen_them(tmp_path: Path) -> None:
    text = "truth,low,high,site,age\n" + "0.5,0,1,a,3\n" * 50
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    shop = Workshop([tmp_path / "mine.csv"], Settings())
    assert set(shop.columns("0")["roles"].values()) == {""}
    shown = shop.columns(
        "0", {"y": "truth", "lower": "low", "upper": "high", "features": "age", "group": "site"}
    )
    assert "problem" not in shown
    assert shown["options"] == {
        "truth": "y", "low": "lower", "high": "upper", "site": "group", "age": "features"
    }  # fmt: skip
    fewer = shop.columns("0", {"y": "truth", "lower": "low", "upper": "high", "features": "age"})
    assert fewer["roles"]["site"] == "left out"
    shop.close()
