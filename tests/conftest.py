"""Settings of the whole test run."""

import importlib.util
import os

import pytest

# Small tensors gain nothing from threads, and threads that wait for each other on busy cores are many times slower.
# Set before torch is imported, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The GPU's kernels run on a CPU by Triton's interpreter, which Triton decides on when it is imported.
os.environ.setdefault("TRITON_INTERPRET", "1")


# A kernel takes Triton's interpreter about 10 ms per row, so of the backends' common tests it runs a part: every edge
# term with one score and normalizer of each kind, and each score and normalizer with all edge terms at once; one
# gradcheck, because gradients are held to those of the definition as well. --every-gpu-test runs them all.
INTERPRETED = {
    "test_backend_matches_the_definition": lambda case: (
        any(part in case for part in ("[dot-softmax-", "[additive, leaky relu-relu-"))
        or ("-everything by type-" in case and "scale 1-relu" not in case)
    ),
    "test_gradcheck": lambda case: "[additive, tanh-softmax-nothing-" in case,
}


def pytest_addoption(parser):
    parser.addoption("--every-gpu-test", action="store_true", help="all tests of the Triton backend: 10 minutes more")


def pytest_collection_modifyitems(config, items):
    """Leaves out what the interpreter is too slow for, and skips its tests where there is no Triton."""
    of_triton = [item for item in items if _backend_of(item) == "fused_gpu"]
    if importlib.util.find_spec("triton") is None:
        for item in of_triton:
            item.add_marker(pytest.mark.skip(reason="Triton is not installed; it exists for Linux only"))
    elif not config.getoption("every_gpu_test"):
        left_out = {item for item in of_triton if not INTERPRETED.get(item.originalname, bool)(item.name)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _backend_of(item):
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return getattr(parameters.get("backend"), "name", None)
