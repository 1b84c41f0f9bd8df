"""What a worker and a child process say to each other around the invocations.

    worker → child    Start, then Stop at the end
    child  → worker   Started or Refused

Every message is a line: the number of an invocation, a space, JSON text. Number 0 carries these; a line
without text says that the invocation of its number is over.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from kernel.policy import Layer, Level
from kernel.wire.base import Json, Wire
from kernel.wire.host import MAX_MESSAGE_BYTES

MAX_LINE_BYTES: Final = MAX_MESSAGE_BYTES + 64


class Start(Wire):
    """Give up everything that the package has no use for, then load it.

    Attributes:
        folder: where its files lie; nothing else of the machine's data stays readable.
        contributes: the manifest's declarations, as they are written.
        memory_bytes: most of memory that the process may map.
        minimum: the level below which nothing is loaded.
    """

    type: Literal["start"] = "start"
    package: str
    digest: str
    folder: str
    handlers: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    entry: str | None = None
    contributes: Json = None
    memory_bytes: int
    minimum: Level


class ToolEntry(Wire):
    """A tool that the package registered; the worker checks it anew, for the code may have written it."""

    name: Annotated[str, Field(min_length=1, max_length=128)]
    description: Annotated[str, Field(min_length=1)]
    parameters: dict[str, Json]
    risk: Literal["read", "write", "network", "execute", "destructive"]
    needs_approval: bool
    output: Json = None


class Started(Wire):
    """The package is loaded. `missing`: layers that are not in force, each with the reason."""

    type: Literal["started"] = "started"
    level: Level
    missing: dict[Layer, str] = Field(default_factory=dict)
    tools: tuple[ToolEntry, ...] = ()


class Refused(Wire):
    """The package cannot be loaded."""

    type: Literal["refused"] = "refused"
    code: str
    message: str
    where: str = ""
    accepted: str = ""


class Stop(Wire):
    """Clean up and end."""

    type: Literal["stop"] = "stop"


LIFECYCLE: Final[TypeAdapter[Start | Started | Refused | Stop]] = TypeAdapter(
    Annotated[Start | Started | Refused | Stop, Field(discriminator="type")]
)


def line(number: int, text: str = "") -> bytes:
    """One line of the channel."""
    return f"{number} {text}\n".encode()


def split(received: bytes) -> tuple[int, str]:
    """The number and the text of a line.

    Raises:
        ValueError: it is no line of the channel.
    """
    number, space, text = received.decode().rstrip("\n").partition(" ")
    if not space or not number.isascii() or not number.isdigit() or len(number) > 12:
        raise ValueError("a line without the number of an invocation")
    return int(number), text
