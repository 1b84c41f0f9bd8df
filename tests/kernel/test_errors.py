from __future__ import annotations

import pytest

from kernel.errors import Code, TurnwrightError, account_in


@pytest.mark.parametrize(
    ("error", "account"),
    [
        (TurnwrightError(Code.PACKAGE_UNKNOWN, "no package"), "no package"),
        (TurnwrightError(Code.PACKAGE_UNKNOWN, "no package", where="a: b"), "a: b: no package"),
        (TurnwrightError(Code.PACKAGE_UNKNOWN, "no", accepted="dice"), "no (accepted: dice)"),
    ],
)
def test_an_account_says_all_but_the_code(error: TurnwrightError, account: str) -> None:
    assert error.account == account
    assert account_in(str(error), error.code) == account


def test_a_text_without_the_code_is_its_own_account() -> None:
    assert account_in("'seen'", Code.INTERNAL) == "'seen'"
