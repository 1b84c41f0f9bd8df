"""A few pleasant sentences about what the player did, the same for the same question.

The system prompt lends the tone, never its words: instructions must not show in a story. The player's own
message lends at most two single words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W\d_]{4,20}")
_DULL = frozenset(
    _WORD.findall("""
    about above after again against also another around back because been before being below both could
    does doing down each every from have having here into just like look make more most much only other over
    please really same should some such take tell than that their them then there these they thing this those
    through under until very want what when where which while will with would your
    """)
)


@dataclass(frozen=True)
class Tone:
    """Words of one kind of place."""

    signs: tuple[str, ...]
    place: tuple[str, ...]
    light: tuple[str, ...]
    sound: tuple[str, ...]
    thing: tuple[str, ...]


_TONES = (
    Tone(
        ("ship", "harbor", "harbour", "island", "coast", "sail"),
        ("the quay", "the grey water", "the long shore"),
        ("Salt light", "A low silver sun", "The glow of harbour lamps"),
        ("ropes creak against the posts", "gulls argue overhead", "the tide counts its stones"),
        ("a coil of wet rope", "a lantern with a cracked pane", "an oar worn smooth by hands"),
    ),
    Tone(
        ("forest", "wood", "tree", "wild", "druid", "river"),
        ("the clearing", "the old path", "the edge of the trees"),
        ("Green light", "Thin morning mist", "The last gold of the day"),
        ("leaves turn over in the wind", "a branch gives way far off", "water talks under the roots"),
        ("a stone with moss on one side", "a feather caught in bark", "a ring of pale mushrooms"),
    ),
    Tone(
        ("city", "street", "market", "detective", "tavern", "castle", "town"),
        ("the narrow street", "the square", "the room above the stairs"),
        ("Lamplight", "The glow of rainy windows", "A stripe of late sun"),
        ("a cart rattles over the stones", "somebody laughs behind a wall", "a bell marks the quarter"),
        ("a key without a label", "a letter folded twice", "a cup that is still warm"),
    ),
    Tone(
        ("star", "space", "orbit", "station", "robot", "engine", "colony"),
        ("the corridor", "the observation deck", "the sleeping hull"),
        ("Starlight", "The blue of the instruments", "A slow amber warning light"),
        ("the air system sighs", "metal ticks as it cools", "a relay clicks and is still"),
        ("a panel left ajar", "a glove drifting by the hatch", "a log entry without a name"),
    ),
    Tone(
        (),
        ("the valley", "the open road", "the quiet house"),
        ("Soft light", "A clear, cold morning", "The blue hour"),
        (
            "the wind finds a loose shutter",
            "a dog barks once and thinks better of it",
            "a kettle begins to hum",
        ),
        ("a map with one corner missing", "a candle burnt halfway", "a small brass bell"),
    ),
)

_OPENINGS = (
    "{light} lies over {place} as you begin.",
    "For a moment {place} holds its breath; then things move with you.",
    "You take your time, and {place} answers in its own slow way.",
    "{light} reaches {place} just as you make up your mind.",
)
_MIDDLES = (
    "Somewhere near, {sound}, and you notice {thing} that nobody has touched for a while.",
    "While {sound}, your eye is caught by {thing}.",
    "You stop and listen while {sound}. At your feet lies {thing}.",
    "There is {thing} here, and beyond it {sound}.",
)
_ECHOES = (
    "You have one word in mind, “{word}”, and it is enough to go on.",
    "Whatever “{word}” means here, the moment takes it seriously.",
    "Of all you might have chosen it was “{word}”, and it changes the air a little.",
)
_CLOSINGS = (
    "It is not an answer yet, but it is the start of one.",
    "Nothing has been lost, and one way forward has become clearer than the rest.",
    "Whoever was here before you left in no hurry, and left a trail.",
    "What you do next will be remembered.",
)


class Prose:
    """The sentences of one question.

    Args:
        system: the system prompt; chooses the tone.
        player: the last user message.
        salt: anything else that should vary the choice.
    """

    def __init__(self, system: str, player: str, salt: str = "") -> None:
        seed = "\x00".join((system, player, salt)).encode("utf-8", "replace")
        self._digest = hashlib.sha256(seed).digest()
        self._tone = _tone(system, self._digest[0])
        self.player = player
        self.words = keywords(player)

    def story(self) -> str:
        """Two short paragraphs."""
        echo = _ECHOES if self.words else ()
        first = [self._pick(1, _OPENINGS), *([self._pick(2, echo)] if echo else [])]
        return " ".join(first) + "\n\n" + " ".join([self._pick(3, _MIDDLES), self._pick(4, _CLOSINGS)])

    def sentence(self, nth: int = 0) -> str:
        """One sentence; different ones for the first few `nth`."""
        kinds = (_MIDDLES, _OPENINGS, _CLOSINGS)
        return self._pick(5 + nth, kinds[nth % len(kinds)])

    def word(self, nth: int = 0) -> str:
        """One word of the player's, or of ours when there is none."""
        known = (*self.words, "lantern", "harbour", "morning", "letter", "compass")
        turn, place = divmod(nth, len(known))
        return known[place] if turn == 0 else f"{known[place]} {turn + 1}"

    def _pick(self, byte: int, templates: Sequence[str]) -> str:
        at = self._digest[byte % 24]
        tone, more = self._tone, self._digest[24 + byte % 8]
        return templates[at % len(templates)].format(
            place=tone.place[more % 3],
            light=tone.light[(more >> 2) % 3],
            sound=tone.sound[(more >> 4) % 3],
            thing=tone.thing[(more >> 6) % 3],
            word=self.word(),
        )


def keywords(text: str) -> tuple[str, ...]:
    """The telling words of a text, first come first, at most six."""
    found = dict.fromkeys(word.lower() for word in _WORD.findall(text))
    return tuple(word for word in found if word not in _DULL)[:6]


def _tone(system: str, byte: int) -> Tone:
    spoken = set(_WORD.findall(system.lower()))
    fitting = [tone for tone in _TONES if spoken.intersection(tone.signs)]
    return fitting[0] if fitting else _TONES[byte % len(_TONES)]
