"""Prose of a story as segments, and back. Spec: DECISIONS 11, 21.

Lines between blank lines are one paragraph.

    a paragraph                             narration
    one whose first line starts `Name:`     dialogue, when Name is a known character
    a line of its own in *asterisks*        action

A line that starts `Name:`, and an action line, begin a new paragraph without a blank line before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernel.wire.base import Json

_ACTION = re.compile(r"\*([^*]+)\*")
_SPEAKER = re.compile(r"([^:：]+)[:：](.*)", re.DOTALL)


def split(text: str, characters: Iterable[str] = ()) -> list[dict[str, str]]:
    """Split prose into `narrative-engine@2` segments.

    Args:
        text: the agent's prose.
        characters: names of known characters; case and outer spaces do not matter.
    """
    names = {_key(name): name.strip() for name in sorted(characters, reverse=True)}
    return [_segment(paragraph, names) for paragraph in _paragraphs(text, names)]


def story_text(segments: Sequence[Mapping[str, Json]]) -> str:
    """The segments as prose, which `split` reads back; empty when no segment says anything."""
    return "\n\n".join(_prose(segment) for segment in segments if str(segment.get("text", "")).strip())


def _paragraphs(text: str, names: Mapping[str, str]) -> Iterator[str]:
    lines: list[str] = []
    for line in (*(line.strip() for line in text.splitlines()), ""):
        alone = _ACTION.fullmatch(line) is not None
        if lines and (not line or alone or _speech(line, names)):
            yield "\n".join(lines)
            lines = []
        if alone:
            yield line
        elif line:
            lines.append(line)


def _segment(paragraph: str, names: Mapping[str, str]) -> dict[str, str]:
    action = _ACTION.fullmatch(paragraph)
    if action and action[1].strip():
        return {"kind": "action", "text": action[1].strip()}
    speech = _speech(paragraph, names)
    if speech and speech[1]:
        return {"kind": "dialogue", "text": speech[1], "speaker": speech[0]}
    return {"kind": "narration", "text": paragraph}


def _speech(paragraph: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    """The known speaker and what is said, when the paragraph starts `Name:`."""
    parts = _SPEAKER.fullmatch(paragraph)
    speaker = names.get(_key(parts[1])) if parts else None
    return (speaker, parts[2].strip()) if parts and speaker else None


def _key(name: str) -> str:
    return name.strip().casefold()


def _prose(segment: Mapping[str, Json]) -> str:
    text = str(segment["text"]).strip()
    if segment.get("kind") == "action":
        return f"*{text}*"
    if segment.get("kind") == "dialogue" and segment.get("speaker"):
        return f"{segment['speaker']}: {text}"
    return text
