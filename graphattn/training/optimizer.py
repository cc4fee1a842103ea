"""AdamW for a network: which weights decay, and its state by parameter name for a checkpoint."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from graphattn.errors import TrainingError
from graphattn.training.config import TrainingConfig

_STATE = ("exp_avg", "exp_avg_sq", "step")  # what AdamW keeps for each parameter


def decaying_parameters(network: nn.Module) -> set[str]:
    """Names of the parameters that weight decay should pull toward zero: matrices that multiply.

    Those are the parameters of two dimensions or more that their layer calls a weight, as PyTorch's and PyG's layers
    do (``weight``, ``in_proj_weight``, ``weight_hh_l0``). Spared are vectors and scalars (biases, gains of norms), the
    tables of ``nn.Embedding`` and ``nn.EmbeddingBag``, and what a module calls otherwise (``table``, ``seed``): a row
    of a table is looked up in few batches but would shrink in all of them.
    """
    tables = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        for parameter in module.parameters(recurse=False)
    }
    return {
        name
        for name, parameter in network.named_parameters()
        if parameter.dim() >= 2 and "weight" in name.rpartition(".")[2] and id(parameter) not in tables
    }


def make_optimizer(network: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW over all parameters that require a gradient, in PyTorch's fused form.

    Raises:
        TrainingError: there is no such parameter.
    """
    trainable = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
    if not trainable:
        raise TrainingError("the network has no parameter with requires_grad=True, so there is nothing to train.")
    decaying = decaying_parameters(network)
    groups = [
        {"params": [trainable[name] for name in trainable if name in decaying], "weight_decay": config.weight_decay},
        {"params": [trainable[name] for name in trainable if name not in decaying], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=config.learning_rate, fused=True)


def optimizer_tensors(optimizer: torch.optim.AdamW, network: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state under names such as ``exp_avg.head.weight``; parameters never stepped have none."""
    return {
        f"{key}.{name}": optimizer.state[parameter][key]
        for name, parameter in network.named_parameters()
        if parameter in optimizer.state
        for key in _STATE
    }


def restore_optimizer(optimizer: torch.optim.AdamW, network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put back what :func:`optimizer_tensors` gave, into memory that torch allocated itself.

    (Matrix libraries may round differently by memory alignment; fresh memory is aligned as in the run that was
    killed.)
    """
    for name, parameter in network.named_parameters():
        if f"step.{name}" in tensors:
            optimizer.state[parameter] = {
                "step": tensors[f"step.{name}"].to(parameter.device, copy=True),
                "exp_avg": torch.empty_like(parameter, requires_grad=False).copy_(tensors[f"exp_avg.{name}"]),
                "exp_avg_sq": torch.empty_like(parameter, requires_grad=False).copy_(tensors[f"exp_avg_sq.{name}"]),
            }
