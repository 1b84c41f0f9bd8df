from __future__ import annotations

from pathlib import Path

import pytest

from activities.plugins.code import PackageCode
from activities.plugins.host import invoke
from activities.plugins.loader import code_files, forget_code, load_code
from kernel.errors import Code, TurnwrightError
from kernel.manifest.contributes import ContributedTool
from kernel.manifest.features import unsupported
from kernel.manifest.load import load_package
from tests.activities.plugins.packages import ENTRY, call, load

PLUGINS = Path(__file__).parents[3] / "plugins"

TOOL = """
async def greet(args, ctx):
    return args
def register(host):
    host.register_tool(
        name="greet", description="Greets.", parameters={"type": "object"}, handler=greet,
        risk="write", needs_approval=True,
    )
"""


def refusal(folder: Path, files: dict[str, str], **more: object) -> TurnwrightError:
    with pytest.raises(TurnwrightError) as caught:
        load(folder, files, **more)  # type: ignore[arg-type]
    return caught.value


async def test_two_digests_of_one_package_stand_side_by_side(tmp_path: Path) -> None:
    def version(number: int) -> PackageCode:
        files = {
            "lib.py": f"N = {number}",
            "handler.py": "from .lib import N\nasync def handler(ctx): return N",
        }
        return load(tmp_path / str(number), files)

    first, second = version(1), version(2)
    assert [await invoke(code, call(), {}, timeout_s=1) for code in (first, second, first)] == [1, 2, 1]


async def test_relative_imports_climb_through_folders_with_dashes(tmp_path: Path) -> None:
    files = {
        "lib/__init__.py": "",
        "lib/words.py": "WORD = 'found'",
        "runtimes/look-up/handler.py": (
            "from ...lib import words\n"
            "async def handler(ctx):\n    from ...lib.words import WORD\n    return WORD\n"
        ),
    }
    code = load(tmp_path, files)
    module = "runtimes/look-up/handler.py"
    assert await invoke(code, call(module=module), {}, timeout_s=1) == "found"


def test_a_digest_is_loaded_once_and_again_after_it_was_forgotten(tmp_path: Path) -> None:
    files = {"handler.py": "async def handler(ctx): return 1"}
    first = load(tmp_path, files)
    assert load(tmp_path, files) is first
    forget_code("other", first.digest)
    assert load(tmp_path, files) is first
    forget_code(first.package, first.digest)
    assert load(tmp_path, files) is not first


async def test_a_run_of_a_forgotten_digest_goes_on_and_may_still_import(tmp_path: Path) -> None:
    files = {
        "lib/words.py": "WORD = 'found'",
        "handler.py": (
            "from .lib import words\n"
            "async def handler(ctx):\n    from .lib.words import WORD\n    return [WORD, words.WORD]\n"
        ),
    }
    code = load(tmp_path, files)
    forget_code(code.package, code.digest)
    assert await invoke(code, call(), {}, timeout_s=1) == ["found", "found"]


def test_loading_writes_nothing_and_reads_no_bytecode(tmp_path: Path) -> None:
    load(tmp_path, {"handler.py": "async def handler(ctx): return 1", "lib.py": ""})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["handler.py", "lib.py"]


@pytest.mark.parametrize(
    ("source", "place", "said"),
    [
        ("def handler(ctx): return 1", "handler.py:1", "not async"),
        ("value = 1", "handler.py", "no `handler`"),
        ("handler = 5", "handler.py", "not async"),
        ("async def handler(ctx:", "handler.py:1", "SyntaxError"),
        ("x = 1\ny = x / 0\nasync def handler(ctx): ...", "handler.py:2", "ZeroDivisionError"),
        ("import sys\nsys.exit(3)", "handler.py:2", "SystemExit"),
        ("import no_such_module", "handler.py:1", "no_such_module"),
        ("import pydantic.no_such_part", "handler.py:1", "pydantic.no_such_part"),
        ("async def handler(ctx):\n    import no_such_module", "handler.py:2", "no_such_module"),
        ("async def handler(ctx):\n    from no_such.part import x", "handler.py:2", "no_such.part"),
        ("async def handler(ctx):\n    from .gone import x", "handler.py:2", ".gone"),
        ("async def handler(ctx):\n    from ..up import x", "handler.py:2", "outside the package"),
        (
            "import importlib\nasync def handler(ctx):\n    importlib.import_module('no_such')",
            "handler.py:3",
            "no_such",
        ),
    ],
)
def test_code_that_cannot_run_is_refused_with_its_place(
    tmp_path: Path, source: str, place: str, said: str
) -> None:
    error = refusal(tmp_path, {"handler.py": source})
    assert (error.code, error.where) == (Code.PACKAGE_LOAD, place)
    assert said in error.message


def test_an_error_names_the_file_in_which_it_happened(tmp_path: Path) -> None:
    error = refusal(tmp_path, {"lib.py": "\n\nX = {}['k']", "handler.py": "from .lib import X"})
    assert error.where == "lib.py:3"


def test_a_guarded_import_is_the_authors_own_decision(tmp_path: Path) -> None:
    source = """
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        import only_for_types
    try:
        import perhaps_there
    except ImportError:
        perhaps_there = None
    async def handler(ctx): ...
    """
    load(tmp_path, {"handler.py": source})


def test_a_failed_load_is_tried_again(tmp_path: Path) -> None:
    refusal(tmp_path, {"handler.py": "value = 1"})
    load(tmp_path, {"handler.py": "async def handler(ctx): ..."})


def test_what_the_manifest_leaves_out_stands_in_the_registration(tmp_path: Path) -> None:
    code = load(tmp_path, {ENTRY: TOOL}, tools=(ContributedTool(name="greet"),))
    assert (code.tool("greet").risk, code.tool("greet").needs_approval) == ("write", True)
    with pytest.raises(TurnwrightError) as caught:
        code.tool("great")
    assert caught.value.code == Code.TOOL_UNKNOWN


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("value = 1", Code.PACKAGE_LOAD, "no `register`"),
        ("async def register(host): ...", Code.PACKAGE_LOAD, "no plain function"),
        ("def register(host): raise KeyError('k')", Code.PACKAGE_LOAD, "KeyError"),
        ("def register(host): host.register_service(name='x')", Code.PACKAGE_LOAD, "contract"),
        ("def register(host): host.on('PreToolUse', None)", Code.PACKAGE_LOAD, "not async"),
        (
            "def register(host): host.provide_extension('p', 'x', handler=1)",
            Code.PACKAGE_LOAD,
            "no extension",
        ),
    ],
)
def test_an_entry_that_cannot_register_is_refused(tmp_path: Path, body: str, code: Code, said: str) -> None:
    error = refusal(tmp_path, {ENTRY: body})
    assert error.code == code
    assert said in error.message
    assert error.where.startswith(ENTRY)


def test_a_package_without_code_loads_without_a_module(tmp_path: Path) -> None:
    assert load(tmp_path, {}).functions == {}


@pytest.mark.parametrize("name", ["chronicle", "dice", "fact-index"])
def test_a_bundled_package_is_valid_supported_and_loads(name: str) -> None:
    folder = PLUGINS / name
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    loaded = load_package(
        {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}, name=name
    )
    assert loaded.problems == ()
    assert loaded.package is not None
    assert unsupported(loaded.package) == ()
    code = load_code(folder, code_files(loaded.package), digest=f"sha256:bundled-{name}")
    assert set(code.tools) == {tool.name for tool in loaded.package.tools}
