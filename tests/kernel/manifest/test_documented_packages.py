"""The packages of the authoring guide load as printed, with Python modules in place of JavaScript."""

from __future__ import annotations

import json

from kernel.manifest import WELL_KNOWN, unsupported

from .packages import package, text

FACTS_SCHEMA = json.dumps(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
        "required": ["text"],
    }
).encode()

FACT_INDEX = {
    "PLUGIN.md": text(
        """
description: Extracts and retrieves narrative facts.
requires: [narrative-engine@2]
version: 0.1.0
covel: ">=0.0.51"
author:
  name: Jane Doe
  url: https://example.com
  about: I write small mystery worlds.
license: MIT
homepage: https://example.com/fact-index
contributes:
  hooks: [PreToolUse]
  data:
    facts:
      schema: ./schemas/facts.schema.json
      accepts: [facts.index@1]
      authoring:
        title: Known facts
        hint: >-
          Write one record for each fact the story starts with. Keep `text` to
          one sentence.
        example: ./examples/facts.json
        source:
          path: data/facts.yaml
"""
    ),
    "README.md": b"# Facts\n",
    "server/__init__.py": b"def register(host): ...\n",
    "schemas/facts.schema.json": FACTS_SCHEMA,
    "examples/facts.json": b"[]",
    "runtimes/extract/RUNTIME.md": text(
        """
schedule: { stage: post-turn }
io:
  inputs:
    narrative:
      from: { contract: narrative-engine@2 }
      select: /segments
  output:
    contract: facts.index@1
    schema: ../../schemas/facts.schema.json
    recordAs: extracted-facts
permissions:
  http:
    - origin: https://api.example.com
      methods: [GET]
effects:
  reads: ["plugin-data:self:facts"]
  writes: ["plugin-data:self:facts", "http:https://api.example.com"]
agent:
  loop:
    profile: actor
    finalizer:
      deadlineReserveMs: 10000 # with 10 seconds left, stop calling tools and answer
""",
        "Extract only the facts that `runtime-inputs.narrative.value` states.",
    ),
    "runtimes/query/RUNTIME.md": text(
        """
schedule:
  trigger: { type: manual }
io:
  output: { contract: facts.query@1 }
function:
  timeoutMs: 90000
"""
    ),
    "runtimes/query/handler.py": b"async def handler(ctx): ...\n",
    "runtimes/guard/RUNTIME.md": text(
        """
# runtimes/guard/RUNTIME.md
schedule:
  subagentOnly: true
io:
  output:
    contract: gate-actor@1
    schema: ../../schemas/facts.schema.json
agent:
  model: actor
  tools:
    builtin: [get-character]
"""
    ),
}

STORY_FUNCTION = text(
    """
schedule:
  stage: narrative
io:
  visibility: story
  output:
    contract: narrative-engine@2
function: {}
"""
)
STORY_AGENT = text(
    """
schedule:
  stage: narrative
io:
  visibility: story
  output:
    contract: narrative-engine@2
agent:
  tools:
    builtin: [delegate]
    services:
      - { contract: turn-policy@1, as: choose-speakers }
""",
    "Call choose-speakers with present character names and recent story segments.",
)
CONVERSATION = {
    "PLUGIN.md": text(
        """
version: 0.1.0
description: Compose a conversation with optional character contributions.
contributes:
  services:
    - { contract: turn-policy@1, modelFacing: true }
    - { contract: turn-policy@1, modelFacing: true }
"""
    ),
    "server/__init__.py": b"def register(host): ...\n",
    "runtimes/actor/RUNTIME.md": text(
        """
schedule:
  subagentOnly: true
io:
  output:
    contract: character-actor@1
""",
        "Play only the supplied character.",
    ),
}


def test_fact_index_loads() -> None:
    found = package(FACT_INDEX, "fact-index")
    assert [(runtime.id, runtime.kind) for runtime in found.runtimes] == [
        ("fact-index/extract", "agent"),
        ("fact-index/guard", "agent"),
        ("fact-index/query", "function"),
    ]
    assert found.provides == ("facts.index@1", "facts.query@1", "gate-actor@1")
    extract, guard, query = found.runtimes
    assert extract.output_schema == extract.contract_schema == found.data_schemas["facts"]
    assert extract.manifest.loop_limits.deadline_reserve_ms == 10_000
    assert guard.manifest.model_slot == "actor"
    assert query.handler == "runtimes/query/handler.py"


def test_fact_index_names_what_does_not_run_yet() -> None:
    found = unsupported(package(FACT_INDEX, "fact-index"))
    assert [(problem.file, problem.path) for problem in found] == [
        ("PLUGIN.md", "contributes.hooks"),
        ("runtimes/extract/RUNTIME.md", "permissions.http"),
        ("runtimes/extract/RUNTIME.md", "agent.loop.profile"),
        ("runtimes/extract/RUNTIME.md", "agent.loop.finalizer"),
        ("runtimes/guard/RUNTIME.md", "schedule.subagentOnly"),
        ("runtimes/guard/RUNTIME.md", "agent.tools.builtin[0]"),
    ]


def test_conversation_with_a_story_function_loads() -> None:
    content = {
        **CONVERSATION,
        "runtimes/story/RUNTIME.md": STORY_FUNCTION,
        "runtimes/story/handler.py": b"async def handler(ctx): ...\n",
    }
    story = package(content, "conversation").runtime("conversation/story")
    assert story is not None
    assert story.contract_schema == WELL_KNOWN["narrative-engine@2"]


def test_conversation_with_a_story_agent_loads() -> None:
    content = {**CONVERSATION, "runtimes/story/RUNTIME.md": STORY_AGENT}
    story = package(content, "conversation").runtime("conversation/story")
    assert story is not None
    assert story.builtin_tools == ("delegate",)
    assert story.manifest.agent_settings.tools.services[0].tool_name == "choose-speakers"
