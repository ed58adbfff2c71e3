"""Rules for imports: layers, no cycles, and modules without Django."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FLOORS = [
    {"config"},
    {"wallets"},
    {"guide"},
    {"explorer", "samples"},
    {"nodeapi"},
    {"keys"},
    {"networks"},
    {"jsonrpc", "outbox"},
    {"abi", "evm", "legible", "portcullis", "postgres", "server"},
]
"""Layers of packages, from the top down. A package may only import packages of layers below."""

HEIGHT = {
    package: len(FLOORS) - depth
    for depth, floor in enumerate(FLOORS)
    for package in floor
}

PURE = [
    "jsonrpc",
    "legible.text",
    "legible.words",
    "outbox.reading",
    "outbox.redis_address",
    "outbox.receiver",
    "outbox.streams",
    "outbox.subscriber",
    "portcullis",
    "postgres",
    "server",
    "abi",
    "nodeapi.encoding",
    "nodeapi.documents",
    "nodeapi.frames.writer",
    "nodeapi.relay.bounds",
    "nodeapi.results",
    "nodeapi.sending",
    "nodeapi.follower.choice",
    "nodeapi.follower.health",
    "nodeapi.upstreams",
    "evm",
    "keys.allowlists",
    "keys.charts",
    "keys.corrections",
    "keys.format",
    "keys.limiter",
    "keys.metering",
    "keys.plans",
    "keys.unknown_keys",
    "wallets.caip",
    "wallets.scopes",
    "wallets.proposals",
]
"""Modules and packages that must not import Django."""

DOCUMENTED_NAMES = {
    "_db",  # https://docs.djangoproject.com/en/stable/topics/db/managers/
    "_exit",  # https://docs.python.org/3/library/os.html#os._exit
    "_meta",  # https://docs.djangoproject.com/en/stable/ref/models/meta/
    "_replace",  # https://docs.python.org/3/library/collections.html
    "_state",  # https://docs.djangoproject.com/en/stable/ref/models/instances/
}
"""Attributes that start with an underscore but are documented."""

DJANGO = {"django", "rest_framework", "channels"}


def modules() -> dict[str, Path]:
    """Return every module of the project by its dotted name."""
    found = {}
    for package in HEIGHT:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            found[".".join(parts)] = path
    return found


def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(), str(MODULES[name]))


@cache
def statements(name: str) -> list[tuple[str, list[str]]]:
    """Return the names in each import statement of a module, including those for types.

    Each item is a module with names in it, or "" with modules.
    """
    return list(_statements(name, MODULES[name]))


def _statements(name: str, path: Path) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Import):
            yield "", [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = (
                    name.split(".")
                    if path.name == "__init__.py"
                    else name.split(".")[:-1]
                )
                kept = package[: len(package) - node.level + 1]
                base = ".".join([*kept, base] if base else kept)
            yield base, [f"{base}.{alias.name}" for alias in node.names]


def imports(name: str) -> Iterator[str]:
    """Yield all imports of a module, also within functions and for types."""
    for base, names in statements(name):
        if base:
            yield base
        yield from names


MODULES = modules()


def imported_modules(name: str) -> set[str]:
    """Return the modules of the project that a module's statements name.

    `from package import module` names the module, not the package.
    """
    return {
        imported if imported in MODULES else base
        for base, names in statements(name)
        for imported in names
    } & MODULES.keys() - {name}


def cycles(modules: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import one another, directly or not."""
    reached = {}
    for name in modules:
        reached[name] = seen = set()
        waiting = [name]
        while waiting:
            for imported in modules[waiting.pop()] & modules.keys() - seen:
                seen.add(imported)
                waiting.append(imported)
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in modules
        if name in reached[name]
    }
    return sorted(map(list, groups))


def needs(names: Iterable[str]) -> set[str]:
    """Return the project's modules that importing these ones loads, including them."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        module = waiting.pop()
        if module in seen or module not in MODULES:
            continue
        seen.add(module)
        waiting.append(module.rpartition(".")[0])  # a package loads before its modules
        waiting.extend(imports(module))
    return seen


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def own_names(tree: ast.Module) -> set[str]:
    """Return the private names that a module defines: its own, and its classes'.

    An attribute that it sets on another object than `self` or `cls` is not its own.
    """
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(
                value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()
            ):
                names.add(name)
    return {name for name in names if is_private(name)}


def private_uses(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each private attribute that a module uses, and the code that does so."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if is_private(name):
                yield name, ast.unparse(node)
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"),
                args=[_, ast.Constant(value=str(name)), *_],
            ) if is_private(name):
                yield name, ast.unparse(node)


def private_imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the private modules and names that are imported from other packages."""
    for node in ast.walk(tree):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in found:
            first, *rest = name.split(".")
            if first != package and any(map(is_private, (first, *rest))):
                yield name


def foreign_private_names(
    package: str, trees: dict[str, ast.Module]
) -> Iterator[tuple[str, str]]:
    """Yield where a package's modules use a private name of another package."""
    own = set().union(*map(own_names, trees.values()))
    for module, tree in trees.items():
        for name in private_imports(tree, package):
            yield module, name
        for name, code in private_uses(tree):
            if name not in own and name not in DOCUMENTED_NAMES:
                yield module, code


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_every_package_stands_on_a_floor():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - {"tests", "bench"} == set(HEIGHT) & packages


def test_no_package_imports_from_a_floor_above_or_beside_its_own():
    wrong = set()
    for name in MODULES:
        package = name.partition(".")[0]
        for imported in imports(name):
            other = imported.partition(".")[0]
            if other != package and HEIGHT.get(other, 0) >= HEIGHT[package]:
                wrong.add(f"{name} imports {imported}")
    assert sorted(wrong) == []


@pytest.mark.parametrize("pure", PURE)
def test_what_must_stand_without_django_does(pure):
    needed = needs(name for name in MODULES if is_within(name, pure))
    wrong = [
        f"{module} imports {imported}"
        for module in needed
        for imported in imports(module)
        if imported.partition(".")[0] in DJANGO
    ]
    assert sorted(wrong) == []


def test_what_must_stand_without_django_exists():
    assert {name for name in PURE if name not in MODULES} == set()


def test_the_environment_is_read_in_one_place():
    """`config.env` reads settings; the rest of config hands the environment on.

    So do the modules that start processes.
    """
    wrong = []
    for name, path in MODULES.items():
        if name.partition(".")[0] != "config" and name not in (
            "server.forking",
            "server.fork_server",
        ):
            text = path.read_text()
            if "os.environ" in text or "os.getenv" in text:
                wrong.append(name)
    assert wrong == []


HOST = re.compile(
    r"build_absolute_uri|get_host\(|request\.scheme|HTTP_HOST|SERVER_NAME|get\(b\"host\""
)
"""Code of modules and templates that reads the host of a request."""

READERS_OF_THE_HOST = {
    "keys.site",  # builds all links
    "keys.accounts.logged_in",  # compares the host with that of the next page
    "nodeapi.endpoint.access",  # finds the network
    "server.reading",  # checks the header's form
    "wallets.sockets.handshake",  # compares the host with the page's origin
}


def test_links_are_built_in_one_place():
    """A link with the host of a request could lead to another site."""
    pages = {str(path): path for path in (ROOT / "templates").rglob("*.*")}
    found = {
        name
        for name, path in {**MODULES, **pages}.items()
        if HOST.search(path.read_text())
    }
    assert found == READERS_OF_THE_HOST


def test_only_the_second_opinion_imports_py_evm():
    """It is slow to import, and is compared with our EVM, so that neither uses the other."""
    adapter = "nodeapi.chain.py_evm"

    def users(package: str) -> set[str]:
        return {
            name
            for name in MODULES
            if any(is_within(imported, package) for imported in imports(name))
        }

    assert users("eth") == {adapter}
    assert users(adapter) == {"nodeapi.management.commands.audit_blocks"}


FOLDERS = sorted(name for name, path in MODULES.items() if path.name == "__init__.py")


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folders_of_a_folder_import_one_another(folder):
    """A module stands for itself, and a folder for all modules in it."""
    depth = folder.count(".") + 2

    def place(name: str) -> str:
        return ".".join(name.split(".")[:depth])

    found: dict[str, set[str]] = {}
    for name in (name for name in MODULES if is_within(name, folder)):
        others = {
            place(other) for other in imported_modules(name) if is_within(other, folder)
        }
        found.setdefault(place(name), set()).update(others - {place(name)})
    assert cycles(found) == []


@pytest.mark.parametrize("package", sorted(HEIGHT))
def test_no_files_of_a_package_import_one_another(package):
    """Imports for type checkers count, because readers follow them as well."""
    names = {name for name in MODULES if is_within(name, package)}
    assert cycles({name: imported_modules(name) for name in names}) == []


def test_cycles_are_found():
    """The graph has three modules in a cycle, one that imports them, and a separate one."""
    imported = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}
    assert cycles(imported) == [["a", "b", "c"]]


@pytest.mark.parametrize("package", sorted(HEIGHT))
def test_no_private_name_of_another_package_is_used(package):
    trees = {name: tree_of(name) for name in MODULES if is_within(name, package)}
    assert sorted(foreign_private_names(package, trees)) == []


@pytest.mark.parametrize(
    "code",
    [
        "import other._hidden",
        "import _other",
        "from other import _hidden",
        "from other._hidden import shown",
        "thing._hidden",
        "thing._hidden = 1",
        "self._hidden",
        "class Own(Foreign):\n    def act(self): return self._hidden",
        "getattr(thing, '_hidden')",
    ],
)
def test_a_private_name_of_another_package_is_found(code):
    assert list(foreign_private_names("own", {"own.module": ast.parse(code)}))


@pytest.mark.parametrize(
    "code",
    [
        "from own.part import _shared",
        "from .part import _shared",
        "from __future__ import annotations",
        "thing._kept",
        "getattr(thing, '_kept')",
        "self._kept",
        "model._meta",
        "thing.__class__",
    ],
)
def test_a_private_name_of_the_own_package_may_be_used(code):
    trees = {
        "own.module": ast.parse(code),
        "own.part": ast.parse("class Part:\n    def __init__(self): self._kept = 1"),
    }
    assert list(foreign_private_names("own", trees)) == []
