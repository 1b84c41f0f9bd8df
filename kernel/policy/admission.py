"""Whether the code of a package may run. Spec: plugin-model §25; DECISIONS 24b, 25."""

from __future__ import annotations

from kernel.errors import Code, TurnwrightError


def admits(*, bundled: bool, has_code: bool, granted: bool) -> bool:
    """Whether a package may run: it is bundled, has no code, or somebody said that it may."""
    return bundled or not has_code or granted


def not_admitted(package_id: str, session_id: str = "") -> TurnwrightError:
    """The refusal of code that nobody has approved, or whose approval was revoked."""
    scope = f" --session {session_id}" if session_id else ""
    return TurnwrightError(
        Code.PACKAGE_APPROVAL,
        f"nobody has approved the code of package {package_id!r} in this version",
        accepted=f"`turnwright package approve {package_id}{scope}`, after reading it",
    )
