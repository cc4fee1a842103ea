"""Lightning Fabric works for us without leaving traces in the process."""

import logging
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
from torch import nn

from graphattn.errors import SettingError
from graphattn.training.config import TrainingConfig
from graphattn.training.fabric import one_device


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with (
        pytest.raises(
            SettingError, match=r"'cuda' was asked for, but torch .+ sees no CUDA GPU; take 'cpu', or 'auto'"
        ),
        one_device(TrainingConfig(accelerator="cuda"), nn.Linear(1, 1)),
    ):
        pass


@pytest.mark.parametrize("variables", [{}, {"SLURM_NTASKS": "4", "SLURM_JOB_NAME": "job", "SLURM_PROCID": "3"}])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_one_process_and_one_device_wherever_it_is_started(monkeypatch, variables, precision):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with one_device(TrainingConfig(accelerator="cpu", precision=precision), nn.Linear(1, 1)) as fabric:
        assert fabric.device == torch.device("cpu")
        assert fabric.world_size == 1


@pytest.mark.parametrize("already", [{}, {"PYTORCH_NVML_BASED_CUDA_CHECK": "0"}], ids=["unset", "set"])
def test_a_fresh_process_is_left_as_it_was(already):
    """In a process of its own: an import leaves its traces only once."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTORCH_NVML_BASED_CUDA_CHECK"}
    program = """
        import logging, os, sys, warnings
        import torch, torch._dynamo
        from torch import nn
        from graphattn.training.config import TrainingConfig
        from graphattn.training.fabric import one_device

        def state():
            return dict(os.environ), list(warnings.filters), warnings.formatwarning, torch.compile

        before = state()
        assert "lightning_fabric" not in sys.modules
        for precision in ("32-true", "bf16-mixed"):
            with one_device(TrainingConfig(accelerator="cpu", precision=precision), nn.Linear(1, 1)):
                pass
        assert "lightning_fabric" in sys.modules
        for one, other in zip(before, state()):
            assert one == other, (one, other)
        assert logging.getLogger("lightning_fabric").handlers == []
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env=environment | already,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_process_that_uses_lightning_itself_keeps_its_own_settings():
    import lightning_fabric  # noqa: F401, PLC0415

    handler = logging.NullHandler()
    logging.getLogger("lightning_fabric").addHandler(handler)
    environment, filters = dict(os.environ), list(warnings.filters)
    try:
        with one_device(TrainingConfig(accelerator="cpu"), nn.Linear(1, 1)):
            pass
        assert handler in logging.getLogger("lightning_fabric").handlers
    finally:
        logging.getLogger("lightning_fabric").removeHandler(handler)
    assert (dict(os.environ), list(warnings.filters)) == (environment, filters)
