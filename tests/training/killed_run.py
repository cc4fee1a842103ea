"""A training run that is killed again and again; run as ``python killed_run.py FOLDER`` by ``test_resume``.

Every attempt is a process of its own, forked from this one before it has computed anything (so that an attempt costs
milliseconds, not the seconds of importing torch), and dies by SIGKILL: at a chosen line of writing a checkpoint, or
whenever this process finds that it is time. What the attempts leave behind is compared by ``test_resume``.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import lightning_fabric  # noqa: F401 (imported here once, not by every attempt)
from safetensors import safe_open
from safetensors.torch import save_file
from toy_graphs import toy_dataset, toy_network, without_seconds

from graphattn.training import checkpoint as checkpoint_file
from graphattn.training.config import TrainingConfig
from graphattn.training.loop import train

CONFIG = TrainingConfig(epochs=40, batch_size=16, patience=40, learning_rate=0.01, seed=4, accelerator="cpu")
CRASHES = ("half written", "before rename", "after rename")
RANDOM_KILLS = 6


def run(checkpoint):
    """The run itself, from the checkpoint if there is one; the network and what became of it."""
    network = toy_network(batch_norm=True, dropout=0.3)
    result = train(
        network,
        toy_dataset(120),
        toy_dataset(30, seed=1),
        CONFIG,
        task="regression",
        checkpoint=checkpoint,
        resume=True,
    )
    return network, result


def keep(folder, network, result):
    """Write down all that must be equal in two runs."""
    save_file(network.state_dict(), folder / "network.safetensors")
    outcome = {"history": without_seconds(result.history), "best_epoch": result.best_epoch}
    (folder / "outcome.json").write_text(json.dumps(outcome))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def crash(moment, write):
    """Arrange for this process to die at a moment of its ``write``-th checkpoint."""
    writes = iter(range(1, 1000))
    replace, fsync = Path.replace, os.fsync

    def fsync_or_die(descriptor):
        if next(writes) == write and moment == "half written":
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            die()
        fsync(descriptor)
        fsync_or_die.done += 1

    def replace_or_die(path, target):
        if fsync_or_die.done == write and moment == "before rename":
            die()
        replace(path, target)
        if fsync_or_die.done == write and moment == "after rename":
            die()

    fsync_or_die.done = 0
    checkpoint_file.os.fsync = fsync_or_die
    Path.replace = replace_or_die


def attempt(folder, prepare=lambda: None):
    """Start the run in a process of its own; its number."""
    child = os.fork()
    if child == 0:
        prepare()
        keep(folder, *run(folder / "run.safetensors"))
        os._exit(0)
    return child


def was_killed(child):
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    if os.WEXITSTATUS(status):
        sys.exit(f"an attempt failed by itself with exit code {os.WEXITSTATUS(status)}")
    return False


def version(path):
    """Changes with every checkpoint."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def epochs_done(path):
    with safe_open(path, framework="pt") as file:
        return len(json.loads(file.metadata()["history"]))


def kill_at_random(child, path, chance):
    """Let some checkpoints pass, then a moment, then kill."""
    last, left = version(path), chance.randrange(6)
    while left and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if version(path) != last:
            last, left = version(path), left - 1
        time.sleep(0.001)  # leave the processor to the run
    time.sleep(chance.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)


def main(folder):
    whole, killed = folder / "whole", folder / "killed"
    whole.mkdir()
    killed.mkdir()
    assert not was_killed(attempt(whole))

    seed = random.SystemRandom().randrange(10**6)
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    kills = []
    for moment in CRASHES:
        write = chance.randrange(1, 4)
        if was_killed(attempt(killed, lambda moment=moment, write=write: crash(moment, write))):
            kills.append(f"{moment}, write {write}")
    for _ in range(RANDOM_KILLS):
        child = attempt(killed)
        kill_at_random(child, killed / "run.safetensors", chance)
        if was_killed(child):
            kills.append(f"at random, after epoch {epochs_done(killed / 'run.safetensors')}")
    assert not was_killed(attempt(killed))
    sys.stdout.write(json.dumps({"kills": kills, "seed": seed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
