"""Where rows come from, which of their columns are read, and the draws that belong to a row."""

import numpy as np
import polars as pl
import pytest

from calipers import audit
from calipers.conformal import conformal_p_values, lac
from calipers.engines import ArraySource, ConformalScores, FileSource, Rows, measure
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs.derived_columns import at_label
from calipers.inputs.files.column_roles import narrowed
from calipers.inputs.files.file_patterns import short_names
from calipers.inputs.row_keys import Place, draws, keys_of_ids, keys_of_place


def frame(n=600, seed=0, **extra):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n).astype(np.float32)
    columns = {"y_true": rng.choice(list("abc"), n)} | {f"p_{c}": P[:, k] for k, c in enumerate("abc")}
    columns |= {f"set_{c}": P[:, k] > 0.2 for k, c in enumerate("abc")}
    return pl.DataFrame(columns | {"group": rng.choice(["x", "y"], n), "age": np.arange(n)} | extra)


def coverage_of(source):
    return float(measure(source, ["coverage"])["coverage"])


def test_a_folder_of_partitions_is_one_table(tmp_path):
    rows = frame()
    for region, part in (("north", rows[:200]), ("south", rows[200:])):
        (tmp_path / f"region={region}").mkdir()
        part.write_parquet(tmp_path / f"region={region}" / "part.parquet")
    (tmp_path / "_notes.csv").write_text("not rows", encoding="utf-8")
    source = FileSource(str(tmp_path), features=True)
    assert [len(next(piece.blocks()).given["X"].columns) for piece in source.pieces()] == [2, 2]
    assert source.pieces()[1].head().given["X"]["region"][0] == "south"
    sets = rows.select(pl.selectors.starts_with("set_")).to_numpy()
    inside = sets[np.arange(600), np.searchsorted(list("abc"), rows["y_true"].to_numpy())]
    assert coverage_of(source) == inside.mean()
    assert coverage_of(FileSource(str(tmp_path / "region=*"))) == inside.mean()


def test_addresses_are_read_through_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("pyarrow")
    rows = frame()
    rows.write_parquet(tmp_path / "a.parquet", row_group_size=70)
    system = fsspec.filesystem("memory")
    system.makedirs("/logs/region=north", exist_ok=True)
    system.pipe("/logs/region=north/a.parquet", (tmp_path / "a.parquet").read_bytes())
    try:
        here = coverage_of(FileSource(str(tmp_path / "a.parquet")))
        for address in ("memory://logs", "memory://logs/*/*.parquet", "memory://logs/region=north/a.parquet"):
            assert coverage_of(FileSource(address, piece_rows=130)) == here
        head = FileSource("memory://logs", features=True).pieces()[0].head()
        assert head.given["X"]["region"].unique().to_list() == ["north"]
    finally:
        system.rm("/logs", recursive=True)


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        FileSource(str(tmp_path / "nothing.parquet")).pieces()
    (tmp_path / "bad.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(InputError, match=r"bad\.parquet could not be read as parquet"):
        FileSource(str(tmp_path / "bad.parquet")).pieces()
    with pytest.raises(InputError, match="must be parquet to be streamed from its address"):
        FileSource("memory://logs/rows.csv").pieces()


def test_only_the_columns_asked_for_are_read(tmp_path):
    frame().write_parquet(tmp_path / "a.parquet")
    piece = FileSource(str(tmp_path / "a.parquet"), features=True).pieces()[0]
    sets = {"y_true", "set_a", "set_b", "set_c"}
    assert set(piece.only(frozenset({"covered", "sample_weight"})).roles.described()) == sets
    assert set(piece.only(frozenset({"covered", "groups"})).roles.described()) == sets | {"group"}
    scores = set(piece.only(frozenset({"probabilities", "codes"})).roles.described())
    assert scores == {"y_true", "p_a", "p_b", "p_c"}
    assert "age" in piece.only(frozenset({"X"})).roles.described()
    conformal = narrowed(piece.roles, frozenset({"p_values"}), conformal=True)
    assert "probabilities" in conformal.columns


def test_float32_and_booleans_stay_what_they_are(tmp_path):
    rows = frame(70_001)
    rows.write_parquet(tmp_path / "a.parquet")
    blocks = [
        b for p in FileSource(str(tmp_path / "a.parquet"), piece_rows=33_333).pieces() for b in p.blocks()
    ]
    assert {block["probabilities"].dtype for block in blocks} == {np.dtype(np.float32)}
    found = np.concatenate([block.derived_sets() for block in blocks])
    assert found.dtype == bool
    assert (found == rows.select(pl.selectors.starts_with("set_")).to_numpy()).all()


def test_the_entry_at_a_label_is_found_in_every_layout():
    rng = np.random.default_rng(0)
    table = np.asfortranarray(rng.random((500, 7)))
    codes = rng.integers(0, 7, 200)
    for matrix in (table[100:300], np.ascontiguousarray(table[100:300]), table[100:300].astype(np.float32)):
        assert (at_label(matrix, codes) == matrix[np.arange(200), codes]).all()


def test_columns_named_after_the_labels_in_another_order_are_refused():
    table = pl.DataFrame({"b": [0.7, 0.2], "a": [0.3, 0.8]})
    rows = {"y_true": np.array(["a", "b"]), "probabilities": table}
    with pytest.raises(
        InputError, match="the columns are named b, a but the labels of y_true in order are a, b"
    ):
        ArraySource(rows).pieces()
    with pytest.raises(InputError, match="the columns are named b, a"):
        Rows(rows)["codes"]
    assert ArraySource(rows, classes=["b", "a"]).pieces()[0].head()["codes"].tolist() == [1, 0]


def test_a_row_has_the_same_draw_wherever_it_is_cut():
    whole = draws(keys_of_place(Place("part.parquet", 0), 1000), "tau", 3)
    later = draws(keys_of_place(Place("part.parquet", 400), 100), "tau", 3)
    assert (whole[400:500] == later).all()
    others = [
        draws(keys_of_place(Place("other.parquet", 0), 1000), "tau", 3),
        draws(keys_of_place(Place("part.parquet", 0), 1000), "sample", 3),
        draws(keys_of_place(Place("part.parquet", 0), 1000), "tau", 4),
    ]
    for other in others:
        assert abs(np.corrcoef(whole, other)[0, 1]) < 0.12  # 4 standard errors of 1000 pairs


def test_draws_are_uniform_and_ids_of_any_kind_name_rows():
    from scipy import stats

    u = draws(keys_of_ids(np.arange(50_000)), "tau", 0)
    assert stats.kstest(u, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.02
    short, long = np.array(["r1", "r2"]), np.array(["r2", "a much longer name", "r1"])
    assert keys_of_ids(short)[0] == keys_of_ids(long)[2]
    assert len(set(keys_of_ids(np.array([f"row {i}" for i in range(5000)])).tolist())) == 5000
    with pytest.raises(InputTypeError, match="row ids must be whole numbers or text"):
        keys_of_ids(np.array([0.5]))
    with pytest.raises(InputError, match="give row_id, or the place of the block"):
        Rows({"y_true": [1.0], "intervals": [[0.0, 2.0]]}).draws("tau")


@pytest.mark.parametrize("by", ["place", "row_id"])
def test_smoothed_p_values_do_not_depend_on_the_split(tmp_path, by):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 500)
    scores = np.round(1 - rng.random(99), 1)  # ties, so that smoothing matters
    columns = {"y_true": rng.integers(0, 3, 500)} | {f"p_{k}": np.round(P[:, k], 1) for k in range(2)}
    columns["p_2"] = 1 - columns["p_0"] - columns["p_1"]
    columns["p_2"] = np.where(np.abs(columns["p_2"]) < 1e-9, 0.0, columns["p_2"])
    rows = pl.DataFrame(columns | {"row_id": rng.permutation(500)})
    rows = rows if by == "row_id" else rows.drop("row_id")
    rows.write_parquet(tmp_path / "a.parquet")
    how = ConformalScores(scores, smoothed=True, seed=5)
    one, many = (
        measure(
            FileSource(str(tmp_path / "a.parquet"), conformal=how, piece_rows=k), ["efficiency", "coverage"]
        )
        for k in (500, 37)
    )
    assert {k: float(v) for k, v in one.items()} == pytest.approx(
        {k: float(v) for k, v in many.items()}, rel=1e-13
    )
    plain = measure(
        FileSource(str(tmp_path / "a.parquet"), conformal=ConformalScores(scores)), ["efficiency"]
    )
    assert float(one["efficiency.S"]) < float(plain["efficiency.S"])
    if by == "row_id":
        shuffled = rows[rng.permutation(500)]
        shuffled[:200].write_parquet(tmp_path / "b1.parquet")
        shuffled[200:].write_parquet(tmp_path / "b2.parquet")
        moved = measure(FileSource(str(tmp_path / "b*.parquet"), conformal=how), ["efficiency", "coverage"])
        assert float(moved["coverage"]) == float(one["coverage"])
        assert float(moved["efficiency.S"]) == pytest.approx(float(one["efficiency.S"]), rel=1e-13)


def test_unsmoothed_p_values_are_those_of_the_library():
    rng = np.random.default_rng(1)
    P, scores = rng.dirichlet(np.ones(4), 50), rng.random(30)
    block = Rows(
        {"y_true": np.zeros(50, int), "probabilities": P}, classes=range(4), conformal=ConformalScores(scores)
    )
    assert (block["p_values"] == conformal_p_values(scores, lac(P))).all()
    with pytest.raises(InputError, match="nonconformity must be one of"):
        ConformalScores(scores, "other")
    with pytest.raises(InputError, match="lac takes no draw"):
        ConformalScores(scores, "lac", randomized=True)


def test_short_names_leave_out_the_shared_folder():
    assert short_names(["/a/b/x=1/p.parquet", "/a/b/x=2/p.parquet"]) == ["x=1/p.parquet", "x=2/p.parquet"]
    assert short_names(["rows.parquet"]) == ["rows.parquet"]
    assert short_names(["/data/rows.parquet"]) == ["rows.parquet"]


def test_a_source_can_be_read_at_other_levels(tmp_path):
    """p-values make sets at the level asked for; sets and intervals of several levels give the one asked for."""
    rng = np.random.default_rng(0)
    p = rng.random((200, 3))
    given = {"y_true": rng.integers(0, 3, 200), "p_values": p}
    for alpha in (0.1, 0.3):
        found = ArraySource(given).at(alpha).rows()
        assert (found["size"] == (p > alpha).sum(axis=1)).all()
        assert measure(ArraySource(given).at(alpha), alpha=alpha)["coverage"].value == found["covered"].mean()
    layers = np.stack([p > 0.1, p > 0.3], axis=-1)
    source = ArraySource(given | {"p_values": None, "sets": layers}, alpha=[0.1, 0.3])
    assert (source.at(0.3).rows()["size"] == layers[:, :, 1].sum(axis=1)).all()
    turned = source.at([0.3, 0.1]).rows()
    assert (turned.at(0)["size"] == layers[:, :, 1].sum(axis=1)).all()
    assert (turned.at(1)["size"] == layers[:, :, 0].sum(axis=1)).all()
    with pytest.raises(InputError, match="sets states predictions at alpha = 0.1, 0.3; 0.2 is none of them"):
        source.at(0.2)
    frame = pl.DataFrame({"y_true": given["y_true"]} | {f"pvalue_{k}": p[:, k] for k in range(3)})
    frame.write_parquet(tmp_path / "rows.parquet")
    file = FileSource(str(tmp_path / "rows.parquet"))
    assert file.at(0.3).load().rows()["size"].tolist() == (p > 0.3).sum(axis=1).tolist()
    assert file.stated_levels() is None


def test_the_arguments_of_a_source_give_its_audit_with_row_ids_too():
    rng = np.random.default_rng(0)
    X, y, ids = rng.normal(size=(400, 2)), rng.normal(size=400), rng.permutation(400) + 1000
    given = {"y_true": y, "intervals": np.tile([-1.6, 1.6], (400, 1)), "X": X, "row_id": ids}
    source = ArraySource(given, piece_rows=90)
    assert source.arguments()["row_id"] is ids
    alone = audit(**source.arguments(), random_state=0)
    streamed = audit(source=source, random_state=0)
    assert [(f.code, f.severity, f.sentence) for f in alone.findings] == [
        (f.code, f.severity, f.sentence) for f in streamed.findings
    ]
