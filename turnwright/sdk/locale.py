"""Which of the two instruction languages a session's locale reads. Spec: plugin-model §29."""

from __future__ import annotations

from typing import Literal


def instruction_locale_for(locale: str) -> Literal["en", "zh"]:
    """`zh` for Simplified Chinese (`zh`, `zh-CN`, `zh-Hans`, `zh-Hans-…`), `en` for every other locale."""
    tag = locale.replace("_", "-").lower()
    return "zh" if tag in {"zh", "zh-cn", "zh-hans"} or tag.startswith("zh-hans-") else "en"
