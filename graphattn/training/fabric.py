"""Lightning Fabric on one device, without the traces it leaves in a process.

Imported the plain way, ``lightning_fabric`` sets an environment variable, adds warning filters, replaces
``warnings.formatwarning`` and ``torch.compile``, and gives its logger a handler that prints. A library may not do
that to its caller, so all of it is put back here.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import nn

from graphattn.errors import SettingError
from graphattn.training.config import TrainingConfig

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@contextmanager
def one_device(config: TrainingConfig, network: nn.Module) -> Iterator["Fabric"]:
    """Fabric for the device and precision of the settings: it places tensors, autocasts and clips; the loop is ours.

    A cluster's or launcher's environment variables (SLURM, torchrun) are not looked at: one process, one device.
    Fabric moves the network there; afterwards it is back on the device that it came from.

    Raises:
        SettingError: ``accelerator="cuda"`` without a CUDA GPU.
    """
    has_gpu = torch.cuda.is_available()
    if config.accelerator == "cuda" and not has_gpu:
        raise SettingError(
            f"accelerator 'cuda' was asked for, but torch {torch.__version__} sees no CUDA GPU; "
            "take 'cpu', or 'auto' for whichever there is."
        )
    with _undone_afterwards():
        # About 1.5 s on top of torch: imported where a run begins, not with the package.
        from lightning_fabric import Fabric  # noqa: PLC0415
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment  # noqa: PLC0415
    home = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    try:
        yield Fabric(
            accelerator="cpu" if config.accelerator == "cpu" or not has_gpu else "cuda",
            devices=1,
            precision=config.precision,
            plugins=[LightningEnvironment()],
        )
    finally:
        network.to(home)


@contextmanager
def _undone_afterwards() -> Iterator[None]:
    """Put back what the first import of ``lightning_fabric`` changes; a later import changes nothing."""
    if "lightning_fabric" in sys.modules:
        yield
        return
    environment, format_warning, compile_function = dict(os.environ), warnings.formatwarning, torch.compile
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        warnings.formatwarning = format_warning
        torch.compile = compile_function
        logger = logging.getLogger("lightning_fabric")
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)
        logger.propagate = True
