from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import StatementError

from kernel.errors import Code, TurnwrightError
from store import data, exports, rows, state
from store.columns import dumps
from store.engine import Store


async def put(conn, key: str, value=1, **options) -> data.Record:
    return await data.put(conn, "s", "p", "n", key, value=value, turn_id="t", **options)


async def test_a_record_counts_its_writes_and_keeps_its_birth(store: Store) -> None:
    async with store.write() as conn:
        first = await put(conn, "k", {"a": 1}, now=1.0)
        second = await put(conn, "k", {"a": 2}, expected=1, now=2.0)
        assert await data.get(conn, "s", "p", "n", "k") == second
        assert await data.get(conn, "s", "other", "n", "k") is None
    assert (first.version, second.version) == (1, 2)
    assert (second.created_at, second.updated_at) == (1.0, 2.0)


@pytest.mark.parametrize("expected", [data.ABSENT, 2])
async def test_another_version_is_a_conflict(store: Store, expected: int) -> None:
    async with store.write() as conn:
        await put(conn, "k", "kept")
        with pytest.raises(TurnwrightError) as refusal:
            await put(conn, "k", "lost", expected=expected)
        with pytest.raises(TurnwrightError):
            await data.remove(conn, "s", "p", "n", "k", expected=expected)
        standing = await data.get(conn, "s", "p", "n", "k")
    assert refusal.value.code == Code.STORE_CONFLICT
    assert refusal.value.details == {"expected": expected, "current": 1}
    assert standing is not None
    assert standing.value == "kept"


async def test_a_record_can_be_removed_and_made_again(store: Store) -> None:
    async with store.write() as conn:
        await put(conn, "k", expected=data.ABSENT)
        assert await data.remove(conn, "s", "p", "n", "k")
        assert not await data.remove(conn, "s", "p", "n", "k")
        assert (await put(conn, "k", expected=data.ABSENT)).version == 1


async def test_records_are_listed_by_code_point_in_pages(store: Store) -> None:
    keys = ["Z", "a", "a%", "a/1", "a_b", "ä", "漢", "\U0001f600"]
    async with store.write() as conn:
        for key in reversed(keys):
            await put(conn, key)
        await data.put(conn, "s", "p", "other", "a", value=1, turn_id="t")
        seen: list[str] = []
        cursor = None
        while True:
            page = await data.list_records(conn, "s", "p", "n", limit=3, cursor=cursor)
            seen += [record.key for record in page.records]
            cursor = page.cursor
            if cursor is None:
                break
        prefixed = await data.list_records(conn, "s", "p", "n", prefix="a")
    assert seen == keys
    assert [record.key for record in prefixed.records] == ["a", "a%", "a/1", "a_b"]
    assert prefixed.cursor is None


@pytest.mark.parametrize("value", [None, 0, 1.5, "", "\x00\ud800\U0001f600", [], {"b": 1, "a": [None]}])
async def test_every_json_value_comes_back_as_it_was(store: Store, value: object) -> None:
    async with store.write() as conn:
        await put(conn, "k", value)
        found = await data.get(conn, "s", "p", "n", "k")
    assert found is not None
    assert found.value == value


async def test_what_is_no_json_is_refused(store: Store) -> None:
    async with store.write() as conn:
        with pytest.raises(StatementError):
            await put(conn, "k", float("nan"))


async def test_state_is_versioned_by_path(store: Store) -> None:
    async with store.write() as conn:
        await state.put(conn, "s", "world/a", value=1, turn_id="t", expected=0)
        await state.put(conn, "s", "world/a", value=2, turn_id="t", expected=1)
        await state.put(conn, "s", "other", value=3, turn_id="t")
        with pytest.raises(TurnwrightError) as refusal:
            await state.put(conn, "s", "world/a", value=4, turn_id="t", expected=1)
        found = await state.get(conn, "s", "world/a")
        assert await state.remove(conn, "s", "other")
        assert not await state.remove(conn, "s", "other")
    assert refusal.value.code == Code.STORE_CONFLICT
    assert found is not None
    assert (found.value, found.version) == (2, 2)


async def test_exports_are_numbered_and_the_latest_is_found(store: Store) -> None:
    async with store.write() as conn:
        for value in ("one", "two"):
            await exports.append(conn, "s", "p/r", "mood", value=value, turn_id="t")
        await exports.append(conn, "s", "p/a", "mood", value=None, turn_id="t")
        await exports.append(conn, "other", "p/r", "mood", value="elsewhere", turn_id="t")
        latest = await exports.latest(conn, "s", "p/r", "mood")
        first = await exports.get(conn, "s", "p/r", "mood", 1)
        assert await exports.latest(conn, "s", "p/r", "none") is None
    assert latest is not None
    assert first is not None
    assert (latest.number, latest.value, first.value) == (2, "two", "one")


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
def test_the_bound_of_a_prefix_is_above_all_that_start_with_it(prefix: str, rest: str) -> None:
    end = rows.below(prefix)
    assert end is None or (prefix + rest).encode() < end.encode()
    assert end is None or not end.startswith(prefix)


def test_json_text_is_the_same_for_equal_values() -> None:
    assert dumps({"b": [1, None], "a": "ä"}) == dumps({"a": "ä", "b": [1, None]}) == '{"a":"ä","b":[1,null]}'
