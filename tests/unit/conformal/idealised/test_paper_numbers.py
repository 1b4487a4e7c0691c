"""Every number printed in sections 5 and 8.4 of Vovk et al. (2017), in exact arithmetic."""

from fractions import Fraction as Fr

import pytest

from calipers.conformal.idealised import conformity, criterion_value

DELTA = Fr(1, 1000)
THIRD, HALF = Fr(1, 3), Fr(1, 2)

# eq. 34: one object, three labels.
ONE = [[Fr(2, 10), Fr(3, 10), Fr(5, 10)]]
# Section 5, second example: two objects, probabilities near 1/3.
TWO = [
    [HALF * q for q in (THIRD - DELTA, THIRD, THIRD + DELTA)],
    [HALF * q for q in (THIRD - 5 * DELTA, THIRD + 2 * DELTA, THIRD + 3 * DELTA)],
]
# eq. 45: two objects, four labels.
FOUR = [
    [HALF * Fr(q, 10) for q in (2, 3, 2, 3)],
    [HALF * Fr(q, 10) for q in (3, 2, 3, 2)],
]
# "makes all observations containing object 1 less conforming than all observations containing object 2"
FOUR_A = [[0, 0, 0, 0], [1, 1, 1, 1]]
# Section 8.4, second example.
THREE = [
    [THIRD * q for q in (THIRD + DELTA, THIRD - 2 * DELTA, THIRD + DELTA)],
    [THIRD * q for q in (THIRD - DELTA, THIRD + 2 * DELTA, THIRD - DELTA)],
    [THIRD * THIRD] * 3,
]
# A(1,2) < A(2,1) = A(2,3) < A(3,1) = A(3,2) < A(1,1) = A(1,3) < A(2,2) < A(3,3)
THREE_A = [[3, 0, 3], [1, 4, 1], [2, 2, 5]]


@pytest.mark.parametrize(
    ("name", "alpha", "printed", "better"),
    [
        ("U", None, (Fr(35, 100), Fr(25, 100)), "SP"),
        ("M", Fr(2, 10), (1, Fr(6, 10)), "SP"),
        ("OU", None, (Fr(55, 100), Fr(50, 100)), "MSP"),
        ("OM", Fr(2, 10), (1, Fr(8, 10)), "MSP"),
    ],
)
def test_section_5_first_and_third_example(name, alpha, printed, better):
    values = [criterion_value(ONE, conformity(ONE, k), name, alpha=alpha) for k in ("CP", better)]
    assert tuple(values) == printed


@pytest.mark.parametrize(
    ("name", "alpha", "printed"),
    [("F", None, (Fr(3, 4), Fr(2, 3))), ("E", Fr(2, 3), (HALF, 0))],
)
def test_section_5_second_example(name, alpha, printed):
    values = [criterion_value(TWO, conformity(TWO, k), name, alpha=alpha) for k in ("CP", "MCP")]
    assert all(isinstance(v, Fr) for v in values)
    for ours, paper in zip(values, printed, strict=True):
        assert abs(ours - paper) <= 20 * DELTA
    assert values[1] < values[0]


@pytest.mark.parametrize(
    ("name", "alpha", "printed"),
    [
        ("U", None, (Fr(7, 10), Fr(55, 100))),
        ("M", Fr(4, 10), (1, Fr(2, 3))),
        ("OU", None, (Fr(7, 10), Fr(55, 100))),
        ("OM", Fr(4, 10), (1, Fr(2, 3))),
    ],
)
def test_section_8_4_first_and_third_example(name, alpha, printed):
    values = [
        criterion_value(FOUR, A, name, alpha=alpha, label_conditional=True)
        for A in (conformity(FOUR, "CP"), FOUR_A)
    ]
    assert tuple(values) == printed


@pytest.mark.parametrize(
    ("name", "alpha", "printed"),
    [("F", None, (Fr(7, 9), Fr(2, 3))), ("E", Fr(2, 3), (THIRD, 0))],
)
def test_section_8_4_second_example(name, alpha, printed):
    values = [
        criterion_value(THREE, A, name, alpha=alpha, label_conditional=True)
        for A in (conformity(THREE, "CP"), THREE_A)
    ]
    for ours, paper in zip(values, printed, strict=True):
        assert abs(ours - paper) <= 20 * DELTA
    assert values[1] < values[0]


def test_floats_give_the_same_numbers_as_fractions():
    q = [[float(v) for v in row] for row in FOUR]
    assert criterion_value(q, FOUR_A, "U", label_conditional=True) == 0.55
    assert criterion_value([[0.2, 0.3, 0.5]], conformity([[0.2, 0.3, 0.5]], "CP"), "M", alpha=0.2) == 1.0
