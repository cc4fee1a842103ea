"""Loads an example as a module, so that a test can call its ``main`` and look at what it returns."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    """The module of ``examples/<name>.py``; run once per test session."""
    module_name = f"example_{name}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    return sys.modules[module_name]


def is_picture(path: Path) -> bool:
    """Whether a PNG of more than a blank page lies there."""
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000
