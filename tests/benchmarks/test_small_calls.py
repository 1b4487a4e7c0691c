import json

from benchmarks import page, small_calls


def test_every_aim_has_a_call_and_a_stored_figure():
    made = small_calls.calls(60)
    assert set(small_calls.AIMS) == set(made)
    assert set(small_calls.load()["calls"]) == set(small_calls.AIMS)
    for name in ("coverage", "t_cv"):
        for call in made[name]:
            assert 0 <= float(call()) <= 1


def test_the_page_says_which_aim_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(small_calls, "STORE", tmp_path / "small_calls.json")
    assert page.small_call_part().startswith("No stored run")
    content = {
        "date": "2026-01-01", "machine": {"processor": "P", "cores": 2}, "load": 1.0,
        "calls": {"coverage": {"ours": 0.05, "bare": 0.01}, "t_ss": {"ours": 9.0, "bare": None}},
    }  # fmt: skip
    small_calls.STORE.write_text(json.dumps(content))
    text = page.small_call_part()
    assert "| coverage | 100 | 0.05 ms | 0.01 ms | 0.1 ms | met |  |" in text
    assert f"| t_ss | 100 | 9 ms |  | 2 ms | **unmet** | {small_calls.REASONS['t_ss']} |" in text
