"""What activation has to tell."""

from __future__ import annotations

from dataclasses import dataclass

from kernel.errors import Code


@dataclass(frozen=True)
class Problem:
    """Something that keeps a package, or a whole set of them, from being active.

    Attributes:
        package_id: the package that is not active for it; empty when it is about a set.
        blocks: no session is created with it; otherwise the session goes on without the package.
    """

    code: Code
    message: str
    accepted: str = ""
    package_id: str = ""
    blocks: bool = True

    @property
    def account(self) -> str:
        """The message, and what would be accepted."""
        return f"{self.message} (accepted: {self.accepted})" if self.accepted else self.message
