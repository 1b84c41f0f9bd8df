"""Prose as segments. Spec: DECISIONS 11."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.binding.segments import split, story_text

CAST = ["Mara", "Old Tom"]


def narration(text: str) -> dict:
    return {"kind": "narration", "text": text}


def says(speaker: str, text: str) -> dict:
    return {"kind": "dialogue", "text": text, "speaker": speaker}


def action(text: str) -> dict:
    return {"kind": "action", "text": text}


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", []),
        (" \n\n\t\n", []),
        ("Rain falls.", [narration("Rain falls.")]),
        ("Rain\nfalls.\r\n\r\nStill.", [narration("Rain\nfalls."), narration("Still.")]),
        ("Mara: Who is there?", [says("Mara", "Who is there?")]),
        ("old tom : Me.", [says("Old Tom", "Me.")]),
        ("Mara：是我。", [says("Mara", "是我。")]),
        ("Mara:\nWho?\nYou?", [says("Mara", "Who?\nYou?")]),
        ("Mara: Hi.\nOld Tom: Hm.", [says("Mara", "Hi."), says("Old Tom", "Hm.")]),
        ("Stranger: Hello.", [narration("Stranger: Hello.")]),
        ("Mara:", [narration("Mara:")]),
        ("Note: Mara: hi", [narration("Note: Mara: hi")]),
        ("She says\nMara: hi", [narration("She says"), says("Mara", "hi")]),
        ("*She turns.*", [action("She turns.")]),
        ("Mara: Hi.\n*waves*\nThen dusk.", [says("Mara", "Hi."), action("waves"), narration("Then dusk.")]),
        ("She *runs* home.", [narration("She *runs* home.")]),
        ("**Chapter**", [narration("**Chapter**")]),
        ("* *", [narration("* *")]),
        ("*one* and *two*", [narration("*one* and *two*")]),
        ("12:30", [narration("12:30")]),
    ],
)
def test_paragraphs_become_segments(text: str, segments: list) -> None:
    assert split(text, CAST) == segments


def test_the_same_name_twice_has_one_spelling_whatever_the_order() -> None:
    assert split("MARA: x", ["Mara", "MARA"]) == split("MARA: x", ["MARA", "Mara"]) == [says("MARA", "x")]


def test_segments_read_as_prose() -> None:
    segments = [
        narration("Rain."),
        says("Mara", "Hi."),
        action("waves"),
        narration("  "),
        {"kind": "dialogue"},
    ]
    assert story_text(segments) == "Rain.\n\nMara: Hi.\n\n*waves*"
    assert story_text([{"kind": "dialogue", "text": "Hm."}]) == "Hm."


@pytest.mark.parametrize("segments", [[], [narration(" \n")], [says("Mara", "")]])
def test_a_story_that_says_nothing_is_empty(segments: list) -> None:
    assert story_text(segments) == ""


@given(st.text(alphabet="aM:* \n", max_size=40) | st.text(max_size=40))
def test_prose_survives_the_way_there_and_back(text: str) -> None:
    segments = split(text, ["M", "a"])
    assert split(story_text(segments), ["M", "a"]) == segments
    assert all(segment["text"].strip() for segment in segments)
    assert bool(segments) is bool(text.strip())
