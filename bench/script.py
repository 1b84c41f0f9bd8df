"""What the model of the benchmark says; the same for the product and for the reference.

The player's words choose the script, the number of tool answers in the request chooses the round:

    SMALL     ten rounds that store a small record each, then prose
    LARGE     two rounds that store a record of 8 KB each, eight that read them back in turn, then prose
    PROSE     prose at once
    HANG      an answer that never comes
    SLOW      an answer that never comes, once; the same request sent again is answered at once
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from activities.models.offline.chat_format import CallAnswer, ChatAnswerParts

ROUNDS = 10
RECORD_BYTES = 8 * 1024
NAMESPACE = "notes"
SET, GET = "plugin-data-set", "plugin-data-get"

SMALL = "Keep ten small notes, then tell what happened."
LARGE = "Keep two large notes and read them again and again, then tell what happened."
PROSE = "Tell what happened."
HANG = "Think for ever."
SLOW = "Think, and be lost on the way."

STORY = (
    "The rain stopped. Ten notes lay on the table, each in its own hand, and nobody had seen who wrote them."
)

_TOOL_ANSWER = re.compile(rb'"role":\s?"tool"')


def rounds_done(body: bytes) -> int:
    """How many tool answers a request to the model holds."""
    return len(_TOOL_ANSWER.findall(body))


def answer(body: bytes) -> ChatAnswerParts:
    """What the model says to this request."""
    done = rounds_done(body)
    if done < ROUNDS and SMALL.encode() in body:
        return _calling(done, SET, {"key": f"note-{done}", "value": {"text": f"Note {done} of the evening."}})
    if done < ROUNDS and LARGE.encode() in body:
        # Two records in turn: the same call three times in a row would count as a loop.
        record = {"key": f"large-{done % 2}"}
        stored = {**record, "value": {"text": "x" * RECORD_BYTES}}
        return _calling(done, SET, stored) if done < 2 else _calling(done, GET, record)
    return ChatAnswerParts(model="scripted", text=STORY, prompt_tokens=900, completion_tokens=30)


def _calling(done: int, name: str, arguments: Mapping[str, object]) -> ChatAnswerParts:
    given = json.dumps({"namespace": NAMESPACE, **arguments}, separators=(",", ":"))
    call = CallAnswer(f"call-{done}", name, given)
    return ChatAnswerParts(
        model="scripted", calls=(call,), finish="tool_calls", prompt_tokens=900, completion_tokens=30
    )
