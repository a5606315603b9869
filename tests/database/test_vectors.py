"""Vectors as the database sends them, and their products."""

import numpy as np
import pytest

from muniment.database.vectors import inner_products, many_from_sql, to_sql


@pytest.mark.parametrize(("rows", "others"), [(1, 1), (1, 33), (31, 32), (70, 5), (64, 96)])
def test_products_in_blocks_are_those_of_the_whole(rows: int, others: int) -> None:
    chance = np.random.default_rng(7)
    one = chance.standard_normal((rows, 256)).astype(np.float32)
    other = chance.standard_normal((others, 256)).astype(np.float32)
    found = inner_products(one, other)
    assert found.shape == (rows, others)
    assert np.allclose(found, one @ other.T, atol=1e-3)


def test_what_was_packed_in_half_precision_is_unpacked_in_its_order() -> None:
    vectors = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -0.25]], dtype=np.float32)
    assert many_from_sql([to_sql(one) for one in vectors]).tolist() == vectors.tolist()
