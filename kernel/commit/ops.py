"""Update operations on one record, judged again on the live row at commit (DECISIONS 19)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from kernel.commit.proposals import AppendOp, IncOp, RemoveOp, SetOp, UpdateOp
from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json
from kernel.wire.host import MAX_INTEGER


def apply_ops(record: Json, ops: Sequence[UpdateOp]) -> Json:
    """The record after the operations, in order; the given record is left alone.

    Args:
        record: the live value; None (a missing record) starts as `{}`.

    Raises:
        TurnwrightError: `commit.conflict` for a bound broken, a path through a scalar, or a wrong type.
    """
    value = {} if record is None else copy.deepcopy(record)
    for op in ops:
        value = _apply(value, op)
    return value


def _apply(value: Json, op: UpdateOp) -> Json:
    tokens = _tokens(op.path)
    if not tokens:
        return None if isinstance(op, RemoveOp) else _changed(value, op)
    parent = _parent(value, tokens, create=not isinstance(op, RemoveOp), path=op.path)
    if parent is None:
        return value
    if isinstance(op, RemoveOp):
        _remove(parent, tokens[-1])
    else:
        _put(parent, tokens[-1], _changed(_child(parent, tokens[-1]), op), op.path)
    return value


def _changed(current: Json, op: SetOp | IncOp | AppendOp) -> Json:
    match op:
        case SetOp():
            return copy.deepcopy(op.value)
        case IncOp():
            return _increased(current, op)
        case AppendOp():
            if current is not None and not isinstance(current, list):
                raise _conflict(op.path, f"append needs an array, found {_kind(current)}")
            return [*(current or []), copy.deepcopy(op.value)]


def _increased(current: Json, op: IncOp) -> float:
    if current is not None and (isinstance(current, bool) or not isinstance(current, int | float)):
        raise _conflict(op.path, f"inc needs a number, found {_kind(current)}")
    result = (current or 0) + op.by
    if not _storable(result):
        raise _conflict(op.path, f"{result} is no number that JSON readers keep exactly")
    if (op.min is not None and result < op.min) or (op.max is not None and result > op.max):
        raise _conflict(op.path, f"{result} is outside {_bound(op.min, '-∞')} to {_bound(op.max, '∞')}")
    return result


def _storable(number: float) -> bool:
    return abs(number) <= MAX_INTEGER if isinstance(number, int) else math.isfinite(number)


def _bound(value: float | None, unbounded: str) -> str:
    return unbounded if value is None else str(value)


def _tokens(path: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def _parent(value: Json, tokens: Sequence[str], *, create: bool, path: str) -> Any:
    node = value
    for token in tokens[:-1]:
        child = _child(node, token)
        if child is None and create and isinstance(node, dict):
            child = node[token] = {}
        if child is None and not create:
            return None
        node = child
    if not isinstance(node, dict | list):
        if create:
            raise _conflict(path, f"the path leads through {_kind(node)}")
        return None
    return node


def _child(node: Json, token: str) -> Json:
    if isinstance(node, dict):
        return node.get(token)
    if isinstance(node, list) and (index := _index(token)) is not None and index < len(node):
        return node[index]
    return None


def _put(parent: Any, token: str, value: Json, path: str) -> None:
    if isinstance(parent, dict):
        parent[token] = value
        return
    index = _index(token)
    if index is None or index >= len(parent):
        raise _conflict(path, f"{token!r} is no index of an array of {len(parent)}")
    parent[index] = value


def _remove(parent: Any, token: str) -> None:
    if isinstance(parent, dict):
        parent.pop(token, None)
    elif (index := _index(token)) is not None and index < len(parent):
        del parent[index]


def _index(token: str) -> int | None:
    digits = token.isascii() and token.isdigit() and (token == "0" or not token.startswith("0"))
    return int(token) if digits and len(token) < 10 else None


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _conflict(path: str, message: str) -> TurnwrightError:
    return TurnwrightError(Code.COMMIT_CONFLICT, message, where=path or "/")
