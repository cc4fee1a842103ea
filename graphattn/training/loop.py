"""The training loop, in plain sight: epochs of optimizer steps, a validation loss after each, the best epoch kept."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from graphattn.data.dataset import GraphDataset
from graphattn.data.loader import epoch_batches
from graphattn.errors import TrainingError
from graphattn.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from graphattn.training.config import Task, TrainingConfig
from graphattn.training.fabric import one_device
from graphattn.training.history import EpochRecord, TrainingResult, best_record, is_finished, out_of_patience
from graphattn.training.identity import run_identity
from graphattn.training.labels import check_labels
from graphattn.training.losses import MaskedLoss, loss_for
from graphattn.training.optimizer import make_optimizer, optimizer_tensors, restore_optimizer
from graphattn.training.progress import Progress, Silent
from graphattn.training.randomness import own_randomness, seed_epoch
from graphattn.training.schedule import WarmupCosine

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_VALIDATION_BATCH = 256  # graphs at a time where no gradient is kept


def train(
    network: nn.Module,
    train_set: GraphDataset,
    valid_set: GraphDataset,
    config: TrainingConfig,
    *,
    task: Task,
    checkpoint: Path | None = None,
    resume: bool = False,
    details: Mapping[str, object] | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train a network; afterwards it holds the weights of its best epoch, in eval mode, on the device it came from.

    The caller's random generators, warning filters and environment stay as they are.

    Args:
        network: called with a PyG ``Batch``, gives (G, T): scaled values, or logits of a binary task.
        train_set: targets (G, T) already scaled, NaN where a label is missing.
        valid_set: the same, other graphs; its loss decides the best epoch and when to stop.
        config: how to learn; its seed decides everything but the initial weights, which the network brings.
        task: ``"regression"``, or ``"binary"`` with labels 0 and 1.
        checkpoint: a file to keep the run in, rewritten after every epoch; its folder is made if need be.
        resume: go on from the checkpoint, if there is one, to the same bits as a run that was never killed; a run
            that was already finished returns its result at once.
        details: what else must be the same for a run to be resumed, such as the settings of the network; JSON-able.
        progress: what to show meanwhile; nothing when not given.

    Raises:
        TrainingError: labels that cannot be learned from (see ``check_labels``), a loss or gradient that is NaN or
            infinite, a checkpoint that is damaged, a folder or of another run, ``resume`` without ``checkpoint``.
        ShapeError: the network's outputs do not have the targets' shape.
        SettingError: no such task, or a CUDA GPU was asked for and there is none.
    """
    if resume and checkpoint is None:
        raise TrainingError("resume=True needs to know the file to resume from; pass checkpoint=... as well.")
    loss = loss_for(task, config.loss)
    check_labels(train_set.targets, valid_set.targets, task)
    identity = {}
    if checkpoint is not None:
        identity = run_identity(network, train_set, valid_set, config, task=task, details=details or {})
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        if checkpoint.is_dir():
            raise TrainingError(f"{checkpoint} is a folder, so no checkpoint can be there; remove it, or name a file.")

    progress = Silent() if progress is None else progress
    with one_device(config, network) as fabric, own_randomness(fabric.device):
        run = _Run(network, train_set, valid_set, config, loss, fabric)
        if resume and checkpoint is not None and checkpoint.exists():
            run.restore(read_checkpoint(checkpoint, identity))
        progress.start(epochs=config.epochs, steps_per_epoch=run.steps, epochs_done=len(run.history))
        try:
            while not is_finished(run.history, config):
                record = run.next_epoch(progress)
                if checkpoint is not None:
                    write_checkpoint(checkpoint, run.state(), identity)
                progress.epoch(record, best_record(run.history))
        finally:
            progress.stop()
        network.load_state_dict(run.best)
    network.eval()
    return TrainingResult(
        history=tuple(run.history),
        best_epoch=best_record(run.history).epoch,
        stopped_early=out_of_patience(run.history, config),
    )


class _Run:
    """A network on its way: what changes from epoch to epoch, and how one epoch goes."""

    def __init__(
        self,
        network: nn.Module,
        train_set: GraphDataset,
        valid_set: GraphDataset,
        config: TrainingConfig,
        loss: MaskedLoss,
        fabric: "Fabric",
    ) -> None:
        self.network, self.train_set, self.valid_set = network, train_set, valid_set
        self.config, self.loss, self.fabric = config, loss, fabric
        self.optimizer = make_optimizer(network, config)
        self.model, self.stepper = fabric.setup(network, self.optimizer, _reapply_compile=False)
        self.steps = sum(1 for _ in epoch_batches(len(train_set), config.batch_size, None))
        self.schedule = WarmupCosine.for_run(
            peak=config.learning_rate,
            warmup_epochs=config.warmup_epochs,
            epochs=config.epochs,
            steps_per_epoch=self.steps,
        )
        self.history: list[EpochRecord] = []
        self.best: dict[str, Tensor] = {}  # the network's state after the best epoch so far

    def state(self) -> Checkpoint:
        """All that :meth:`restore` needs."""
        return Checkpoint(
            history=tuple(self.history),
            network=self.network.state_dict(),
            best=self.best,
            optimizer=optimizer_tensors(self.optimizer, self.network),
        )

    def restore(self, saved: Checkpoint) -> None:
        """Stand where the run stood when it wrote this."""
        self.history, self.best = list(saved.history), saved.best
        self.network.load_state_dict(saved.network)
        restore_optimizer(self.optimizer, self.network, saved.optimizer)

    def next_epoch(self, progress: Progress) -> EpochRecord:
        """Learn from every training graph once, judge the weights, and keep them if they are the best so far."""
        started = time.perf_counter()
        epoch = len(self.history) + 1
        train_loss = self.learn(epoch, progress)
        valid_loss = self.judge(epoch)
        record = EpochRecord(
            epoch=epoch,
            train_loss=train_loss,
            valid_loss=valid_loss,
            learning_rate=self.schedule(epoch * self.steps - 1),
            seconds=time.perf_counter() - started,
        )
        self.history.append(record)
        if best_record(self.history) is record:
            self.best = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        return record

    def learn(self, epoch: int, progress: Progress) -> float:
        """One pass over the training set; the mean loss over its labels."""
        self.network.train()
        order = seed_epoch(self.config.seed, epoch, self.fabric.device)
        total, labels = 0.0, 0
        for step, rows in enumerate(epoch_batches(len(self.train_set), self.config.batch_size, order)):
            for group in self.optimizer.param_groups:
                group["lr"] = self.schedule((epoch - 1) * self.steps + step)
            batch = self.train_set.batch(rows)
            observed = int((~batch.y.isnan()).sum())
            batch = self.fabric.to_device(batch)

            loss = self.loss(self.model(batch), batch.y)
            self.stepper.zero_grad()
            self.fabric.backward(loss)
            norm = self.clip()
            where = f"epoch {epoch}, step {step + 1} of {self.steps}"
            self.check_finite(f"{where}: the loss", loss.item())
            self.check_finite(f"{where}: the norm of the gradient", norm)
            self.stepper.step()

            total, labels = total + loss.item() * observed, labels + observed
            progress.step()
        return total / labels

    @torch.no_grad()
    def judge(self, epoch: int) -> float:
        """The mean loss over all labels of the validation set at once, whatever batches they come in."""
        self.network.eval()
        total, labels = 0.0, 0
        for rows in epoch_batches(len(self.valid_set), _VALIDATION_BATCH, None):
            batch = self.fabric.to_device(self.valid_set.batch(rows))
            summed, observed = self.loss.total(self.model(batch).double(), batch.y)
            total, labels = total + float(summed), labels + int(observed)
        self.check_finite(f"epoch {epoch}: the validation loss", total / labels)
        return total / labels

    def clip(self) -> float:
        """Shorten the gradient of all weights together to ``clip_norm``; its norm before that."""
        longest = self.config.clip_norm or math.inf
        norm = self.fabric.clip_gradients(self.model, self.stepper, max_norm=longest, error_if_nonfinite=False)
        assert norm is not None, "Fabric gives the norm when it clips by norm"
        return norm.item()

    def check_finite(self, what: str, value: float) -> None:
        """Stop before an optimizer step carries NaN into the weights, or a best epoch is chosen by it."""
        if not math.isfinite(value):
            rate = self.config.learning_rate
            raise TrainingError(
                f"{what} is {value}. Likely causes: a learning rate of {rate:g} that is too high (try {rate / 10:g}), "
                "targets that were not scaled, or features that hold NaN or infinite values. Nothing of this epoch was "
                "kept."
            )
