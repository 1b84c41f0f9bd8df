"""Small packages that tests play."""

from __future__ import annotations

from tests.support.rig import Files

STORY: Files = {
    "PLUGIN.md": "---\ndescription: A story without tools.\nruntime:\n  schedule: { stage: narrative }\n"
    "  io: { visibility: story, output: { contract: narrative-engine@2 } }\n---\nTell the story.\n",
}


def story_with(tools: str, server: str = "", contributes: str = "", agent: str = "") -> Files:
    """A story agent with builtin or own tools.

    Args:
        tools: the YAML flow value of `agent.tools`.
        server: source of the entry module.
        contributes: YAML lines below `contributes:`, indented by two.
        agent: further YAML lines of `agent:`, indented by four.
    """
    head = f"contributes:\n{contributes}" if contributes else ""
    files = {
        "PLUGIN.md": f"---\ndescription: A story with tools.\n{head}"
        "runtime:\n  schedule: { stage: narrative }\n"
        "  io: { visibility: story, output: { contract: narrative-engine@2 } }\n"
        f"  agent:\n    tools: {tools}\n{agent}---\nTell the story.\n"
    }
    return {**files, **({"server/__init__.py": server} if server else {})}


def function(body: str, *, stage: str = "pre-turn", extra: str = "", root: str = "") -> Files:
    """A function package whose handler has this body.

    Args:
        body: statements of `async def handler(ctx)`, not indented.
        extra: further YAML lines of `runtime:`, indented by two.
        root: further YAML lines of the root.
    """
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return {
        "PLUGIN.md": f"---\ndescription: A function.\n{root}runtime:\n  schedule: {{ stage: {stage} }}\n"
        f"  function: {{}}\n{extra}---\n",
        "handler.py": f"import asyncio\n\n\nasync def handler(ctx):\n{lines}\n",
    }
