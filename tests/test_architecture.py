"""The shape of the package, read from its source: data flows one way, and few files know the foreign libraries."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphattn

PACKAGE = Path(graphattn.__file__).parent
LAYERS = (
    "errors",
    "checks",
    "patterns",
    "csr",
    "adjacency",
    "convert",
    "featurize",
    "data",
    "attention",
    "model",
    "training",
    "predict",
    "model_entries",
    "model_folder",
    "prepare",
    "fit",
    "inputs",
    "estimators",
    "explanation",
    "cli",
)

# Who may know a foreign library: files and folders of the package, by the library's import name.
ALLOWED = {
    "rdkit": ("featurize/", "explanation/drawing.py"),
    "networkx": ("convert.py",),
    "sklearn": ("training/metrics.py", "estimators.py"),
    "lightning_fabric": ("training/",),
    "matplotlib": ("explanation/",),
    "triton": ("attention/backends/fused_gpu/",),
    "typer": ("cli/",),
    "rich": ("training/progress.py", "cli/"),
}

# Never, anywhere: a file that is loaded may not run code.
BANNED_IMPORTS = {"pickle", "cloudpickle", "joblib", "dill", "shelve", "marshal"}
BANNED_CALLS = {"torch.load", "torch.save", "np.load", "numpy.load", "eval", "exec"}

FILES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(tree: ast.AST, *, type_checking: bool = True) -> Iterator[tuple[str, ast.AST]]:
    """Every module that a file imports, wherever the import stands, with the dotted name of what it takes."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and not type_checking:
            skipped.update(below for statement in node.body for below in ast.walk(statement))
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write imports from the package's root, not relative ones"
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def layer_of(name: str) -> str:
    """The layer of a file of the package: its first folder, or the file itself."""
    first = name.split("/", maxsplit=1)[0].removesuffix(".py")
    return "cli" if first == "__main__" else first


def imported_layers(path: Path) -> set[str]:
    """The layers that a file imports from; ``graphattn.__version__`` belongs to none."""
    names = {name for name, _ in imported(ast.parse(path.read_text(encoding="utf-8")))}
    ours = {name.split(".")[1] for name in names if name.startswith("graphattn.")} - {"__version__"}
    unknown = sorted(ours - set(LAYERS))
    assert not unknown, f"{path} takes {unknown} from graphattn itself; import from the file it lives in"
    return ours


@pytest.mark.parametrize("name", [name for name in FILES if name != "__init__.py"])
def test_imports_flow_one_way(name):
    here = layer_of(name)
    assert here in LAYERS, f"{name} is in no layer of the design; add {here!r} to LAYERS and to docs/design.md"
    later = sorted(layer for layer in imported_layers(FILES[name]) if LAYERS.index(layer) > LAYERS.index(here))
    assert not later, f"{name} belongs to {here!r} but imports {later}, which stand to its right"


@pytest.mark.parametrize("name", FILES)
def test_foreign_libraries_stay_where_they_belong(name):
    roots = {dotted.split(".")[0] for dotted, _ in imported(ast.parse(FILES[name].read_text(encoding="utf-8")))}
    for library in sorted(roots & ALLOWED.keys()):
        assert name.startswith(ALLOWED[library]), f"{name} imports {library}; only {', '.join(ALLOWED[library])} may"


@pytest.mark.parametrize("name", FILES)
def test_no_file_can_run_code_that_it_loads_or_swallow_an_error(name):
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    roots = {dotted.split(".")[0] for dotted, _ in imported(tree)}
    assert not roots & BANNED_IMPORTS, f"{name} imports {sorted(roots & BANNED_IMPORTS)}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in BANNED_CALLS, f"{name}:{node.lineno} calls {ast.unparse(node.func)}"
        if isinstance(node, ast.ExceptHandler):
            caught = "" if node.type is None else ast.unparse(node.type)
            broad = caught in {"", "Exception", "BaseException"}
            assert not broad, f"{name}:{node.lineno} catches {caught or 'everything'}; name what can go wrong"


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("__init__.py") and name != "cli/__init__.py"])
def test_package_files_stay_light(name):
    """Importing one part of a package must not import all of it, so that names can load on first use."""
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    names = {dotted.split(".")[0] for dotted, _ in imported(tree, type_checking=False)}
    assert names <= {"importlib", "typing"}, f"{name} imports {sorted(names)}; only __getattr__ may load modules"


@pytest.mark.parametrize("name", FILES)
def test_every_file_says_its_subject_and_has_one(name):
    text = FILES[name].read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), f"{name} does not say on its first line what it is about"
    lines = text.count("\n")
    assert lines <= 400, f"{name} has {lines} lines; look for the second subject that hides in it"
