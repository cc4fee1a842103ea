"""The training loop: learns, stops, restores the best epoch, and one seed gives one set of bits."""

import re
from dataclasses import replace

import pytest
import torch
from torch import nn
from toy_graphs import ToyNetwork, toy_dataset, toy_network, without_seconds

from graphattn.errors import ShapeError, TrainingError
from graphattn.training.config import TrainingConfig
from graphattn.training.loop import train
from graphattn.training.losses import loss_for
from graphattn.training.optimizer import make_optimizer
from graphattn.training.schedule import WarmupCosine

NAN = float("nan")
TRAIN, VALID = toy_dataset(40), toy_dataset(12, seed=1)
QUICK = TrainingConfig(epochs=3, batch_size=16, accelerator="cpu")


def state(network):
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}


def full_loss(network, dataset, task="regression", name="auto"):
    """The loss over a whole data set in one batch."""
    with torch.no_grad():
        return loss_for(task, name)(network(dataset.batch(range(len(dataset)))), dataset.targets).item()


class Recorder:
    """A progress that writes down what it is told."""

    def __init__(self):
        self.calls = []

    def start(self, *, epochs, steps_per_epoch, epochs_done):
        self.calls.append(f"start {epochs} x {steps_per_epoch}, {epochs_done} done")

    def step(self):
        self.calls.append("step")

    def epoch(self, record, best):
        self.calls.append(f"epoch {record.epoch}, best {best.epoch}")

    def stop(self):
        self.calls.append("stop")


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_ten_graphs_are_overfitted(task):
    ten = toy_dataset(10, task=task)
    network = toy_network(dropout=0.0, channels=32)
    config = TrainingConfig(epochs=150, batch_size=5, learning_rate=0.02, patience=150, accelerator="cpu")
    before = full_loss(network.eval(), ten, task)
    result = train(network, ten, ten, config, task=task)
    assert result.best.valid_loss < 0.02 * before
    if task == "binary":
        with torch.no_grad():
            assert ((network(ten.batch(range(10))) > 0) == (ten.targets > 0)).all()


@pytest.mark.parametrize("loss", ["mse", "huber", "mae"])
def test_the_validation_loss_is_over_all_labels_at_once(loss, monkeypatch):
    """Not the mean of batch means: batches hold different numbers of labels."""
    monkeypatch.setattr("graphattn.training.loop._VALIDATION_BATCH", 5)
    targets = VALID.targets.clone()
    targets[:5, 0] = NAN
    targets[7:9] = NAN
    valid = replace(VALID, targets=targets)
    network = toy_network()
    result = train(network, TRAIN, valid, replace(QUICK, loss=loss), task="regression")
    assert result.best.valid_loss == pytest.approx(full_loss(network, valid, name=loss), rel=1e-5)


def test_the_training_loss_is_the_mean_over_labels():
    """With a learning rate next to nothing every step sees the same network."""
    targets = TRAIN.targets.clone()
    targets[::3] = NAN
    thinned = replace(TRAIN, targets=targets)
    network = toy_network(dropout=0.0)
    wanted = full_loss(network, thinned)
    result = train(network, thinned, VALID, replace(QUICK, epochs=1, learning_rate=1e-12), task="regression")
    assert result.history[0].train_loss == pytest.approx(wanted, rel=1e-5)


class Scripted(nn.Module):
    """Its error is 1 plus a number that only training mode moves: a loss curve to order."""

    def __init__(self, curve):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("curve", torch.tensor(curve))
        self.register_buffer("passes", torch.tensor(-1))

    def forward(self, batch):
        if self.training:
            self.passes += 1
        return (self.curve[self.passes] + 0 * self.weight).expand(batch.num_graphs, 1)


def scripted_run(curve, **settings):
    dataset = toy_dataset(4, targets=1)
    dataset = replace(dataset, targets=torch.zeros(4, 1))
    config = TrainingConfig(epochs=len(curve), batch_size=4, accelerator="cpu", **settings)
    network = Scripted(curve)
    return network, train(network, dataset, dataset, config, task="regression", progress=None)


def test_early_stopping_restores_the_best_epoch():
    network, result = scripted_run([5.0, 3.0, 2.0, 4.0, 2.5, 2.2, 1.0, 1.0], patience=3)
    assert [record.valid_loss for record in result.history] == [25, 9, 4, 16, 6.25, pytest.approx(4.84)]
    assert (result.best_epoch, result.stopped_early) == (3, True)
    assert network.passes == 2  # as it was at the end of epoch 3
    assert not network.training


def test_a_run_that_ends_in_time_is_not_called_stopped_and_still_gets_its_best_epoch_back():
    network, result = scripted_run([5.0, 1.0, 2.0, 1.0], patience=3)
    assert (result.best_epoch, result.stopped_early, len(result.history)) == (2, False, 4)
    assert network.passes == 1


def test_the_history_has_the_learning_rate_of_the_last_step_of_each_epoch():
    config = replace(QUICK, epochs=4, warmup_epochs=1.0, learning_rate=0.5, batch_size=20)
    result = train(toy_network(), TRAIN, VALID, config, task="regression")
    assert [record.epoch for record in result.history] == [1, 2, 3, 4]
    wanted = [0.5, 0.25 * (1 + 0.8660254), 0.25 * 1.5, 0.25 * (1 - 0.8660254)]
    wanted[2] = 0.25  # step 5 of 8: (5 - 2) / 6 is half way down
    assert [record.learning_rate for record in result.history] == pytest.approx(wanted)


def test_every_step_runs_at_the_learning_rate_of_the_schedule(monkeypatch):
    optimizers = []

    def make_and_keep(network, config):
        optimizers.append(make_optimizer(network, config))
        return optimizers[0]

    class Reader(Recorder):
        def step(self):
            self.calls.append([group["lr"] for group in optimizers[0].param_groups])

    monkeypatch.setattr("graphattn.training.loop.make_optimizer", make_and_keep)
    reader = Reader()
    config = replace(QUICK, warmup_epochs=1.0)
    train(toy_network(), TRAIN, VALID, config, task="regression", progress=reader)
    schedule = WarmupCosine(peak=config.learning_rate, warmup_steps=3, total_steps=9)
    assert [call for call in reader.calls if isinstance(call, list)] == [[schedule(step)] * 2 for step in range(9)]


def test_every_epoch_has_an_order_and_a_dropout_of_its_own():
    seen = {"order": [], "dropout": []}

    class Watched(ToyNetwork):
        def forward(self, batch):
            if self.training:
                seen["order"].append(tuple(batch.y[:, 0].tolist()))
                seen["dropout"].append(tuple(torch.nn.functional.dropout(torch.ones(40)).tolist()))
            return super().forward(batch)

    train(Watched(), TRAIN, VALID, replace(QUICK, batch_size=40), task="regression")
    assert [len(set(draws)) for draws in seen.values()] == [3, 3]
    assert len({tuple(sorted(order)) for order in seen["order"]}) == 1  # every graph once in each


def test_one_seed_gives_one_set_of_bits_and_another_seed_another():
    """Case D17."""
    runs = []
    for seed in (0, 0, 1):
        network = toy_network()
        result = train(network, TRAIN, VALID, replace(QUICK, seed=seed), task="regression")
        runs.append((state(network), without_seconds(result.history)))
        torch.rand(5)  # what the caller draws in between changes nothing
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]
    assert runs[0][1] != runs[2][1]


def test_the_callers_random_state_is_untouched():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train(toy_network(), TRAIN, VALID, QUICK, task="regression")
    assert torch.equal(torch.get_rng_state(), before)


def test_the_gradient_is_clipped_as_a_whole():
    """Steps of AdamW hardly show a gradient's length, so the norm is read where the optimizer would see it."""
    norms = []

    class Watched(ToyNetwork):
        def forward(self, batch):
            if self.training and self.head.weight.grad is not None:  # still that of the step before
                norms.append(torch.cat([p.grad.flatten() for p in self.parameters()]).norm().item())
            return super().forward(batch)

    large = replace(TRAIN, targets=TRAIN.targets * 1000)
    for clip_norm in (0.01, 0):
        train(Watched(), large, VALID, replace(QUICK, clip_norm=clip_norm), task="regression")
    assert norms[:8] == pytest.approx([0.01] * 8, rel=1e-3)
    assert len(norms) == 16
    assert min(norms[8:]) > 100


@pytest.mark.parametrize("num_graphs", [1, 17, 33])
def test_a_last_batch_of_one_graph_is_an_ordinary_batch(num_graphs):
    result = train(toy_network(), toy_dataset(num_graphs), toy_dataset(1), QUICK, task="regression")
    assert len(result.history) == 3


def test_a_batch_without_labels_is_no_obstacle():
    """Cases D7 and D8: of 6 graphs in batches of 2 at least one batch has no label, whatever the order."""
    six = toy_dataset(6)
    targets = torch.full((6, 2), NAN)
    targets[0, 0] = targets[1, 1] = 0.5
    network = toy_network()
    result = train(network, replace(six, targets=targets), VALID, replace(QUICK, batch_size=2), task="regression")
    assert all(record.train_loss > 0 for record in result.history)
    assert all(tensor.isfinite().all() for tensor in network.state_dict().values())


def test_targets_in_double_precision_are_taken():
    double = replace(TRAIN, targets=TRAIN.targets.double())
    result = train(toy_network(), double, replace(VALID, targets=VALID.targets.double()), QUICK, task="regression")
    single = train(toy_network(), TRAIN, VALID, QUICK, task="regression")
    assert result.best.valid_loss == pytest.approx(single.best.valid_loss, rel=1e-6)


def test_bfloat16_learns_and_leaves_the_weights_in_single_precision():
    network = toy_network()
    result = train(network, TRAIN, VALID, replace(QUICK, precision="bf16-mixed", epochs=10), task="regression")
    assert result.history[-1].train_loss < result.history[0].train_loss
    assert {tensor.dtype for tensor in network.state_dict().values()} == {torch.float32}


def test_the_network_is_the_callers_own_again():
    network = toy_network()
    attributes, hooks = set(vars(network)), len(network._forward_hooks)
    train(network, TRAIN, VALID, QUICK, task="regression")
    assert set(vars(network)) == attributes
    assert len(network._forward_hooks) == hooks
    network(VALID.batch([0])).sum().backward()  # without Fabric's backward
    assert not network.training


def test_progress_hears_of_every_step_and_is_stopped():
    recorder = Recorder()
    train(
        toy_network(), TRAIN, VALID, replace(QUICK, epochs=2, learning_rate=1e-4), task="regression", progress=recorder
    )
    steps = ["step"] * 3
    assert recorder.calls == ["start 2 x 3, 0 done", *steps, "epoch 1, best 1", *steps, "epoch 2, best 2", "stop"]


def test_progress_is_stopped_by_an_error_too():
    recorder = Recorder()
    poisoned = toy_network()
    nn.init.constant_(poisoned.head.bias, NAN)
    with pytest.raises(TrainingError):
        train(poisoned, TRAIN, VALID, QUICK, task="regression", progress=recorder)
    assert recorder.calls == ["start 3 x 3, 0 done", "stop"]


class Poisoned(ToyNetwork):
    """Goes wrong in its ``at``-th forward pass of a mode: NaN in the output, or only in the gradient."""

    def __init__(self, at, *, mode=True, gradient_only=False):
        super().__init__()
        self.at, self.mode, self.gradient_only, self.passes = at, mode, gradient_only, 0

    def forward(self, batch):
        out = super().forward(batch)
        self.passes += self.training is self.mode
        if self.training is not self.mode or self.passes != self.at:
            return out
        return out + (self.head.bias * 0).sqrt() if self.gradient_only else out * NAN


def test_a_loss_that_is_nan_stops_the_run_and_names_epoch_step_and_causes():
    network = Poisoned(at=5)
    message = (
        r"^epoch 2, step 2 of 3: the loss is nan\. Likely causes: a learning rate of 0\.001 that is too high "
        r"\(try 0\.0001\), targets that were not scaled, or features that hold NaN"
    )
    with pytest.raises(
        TrainingError,
        match=message,
    ):
        train(network, TRAIN, VALID, QUICK, task="regression")
    assert all(tensor.isfinite().all() for tensor in network.state_dict().values())


def test_a_gradient_that_is_nan_stops_the_run_before_it_reaches_the_weights():
    network = Poisoned(at=1, gradient_only=True)
    with pytest.raises(TrainingError, match=r"^epoch 1, step 1 of 3: the norm of the gradient is nan"):
        train(network, TRAIN, VALID, QUICK, task="regression")
    assert all(tensor.isfinite().all() for tensor in network.state_dict().values())


def test_a_validation_loss_that_is_nan_stops_the_run():
    with pytest.raises(TrainingError, match=r"^epoch 3: the validation loss is nan"):
        train(Poisoned(at=3, mode=False), TRAIN, VALID, QUICK, task="regression")


def test_a_run_that_explodes_is_stopped():
    huge = replace(TRAIN, targets=TRAIN.targets * 1e30)
    with pytest.raises(TrainingError, match=r"epoch 1, step 1 of 3: the loss is inf\. .*targets that were not scaled"):
        train(toy_network(), huge, VALID, QUICK, task="regression")


def test_bad_labels_and_shapes_are_refused_before_the_first_step():
    recorder = Recorder()
    with pytest.raises(TrainingError, match="the validation set has no graph"):
        train(toy_network(), TRAIN, VALID.subset([]), QUICK, task="regression", progress=recorder)
    with pytest.raises(TrainingError, match="none of the 12 graphs of the validation set has a label"):
        train(toy_network(), TRAIN, replace(VALID, targets=VALID.targets * NAN), QUICK, task="regression")
    with pytest.raises(TrainingError, match="must be 0 or 1"):
        train(toy_network(), TRAIN, VALID, QUICK, task="binary")
    assert recorder.calls == []
    with pytest.raises(ShapeError, match=re.escape("outputs of shape (16, 3) for targets of shape (16, 2)")):
        train(toy_network(targets=3), TRAIN, VALID, QUICK, task="regression")
