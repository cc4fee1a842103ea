"""The checkpoint file: comes back to the same bits, is replaced as a whole, and refuses what it is not."""

import json
import re

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save, save_file

from graphattn.errors import TrainingError
from graphattn.training.checkpoint import FORMAT, Checkpoint, read_checkpoint, write_checkpoint
from graphattn.training.history import EpochRecord

IDENTITY = {"settings.seed": 0, "settings.learning_rate": 0.1, "training set.nodes": "ab12"}


def some_checkpoint(value=1.0):
    return Checkpoint(
        history=(EpochRecord(1, 1 / 3, 0.1 + 0.2, 1e-3, 2.5), EpochRecord(2, 0.25, 1e-12, 1e-4, 2.0)),
        network={"best.head": torch.tensor([[value, -0.0]]), "count": torch.tensor(3), "none": torch.empty(0, 4)},
        best={"best.head": torch.tensor([[torch.pi, 1e-38]]), "count": torch.tensor(2), "none": torch.empty(0, 4)},
        optimizer={"step.best.head": torch.tensor(2.0), "exp_avg.best.head": torch.ones(2, 3).T},
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.safetensors"
    write_checkpoint(path, some_checkpoint(), IDENTITY)
    return path


def rewritten(path, **metadata):
    """The same file with other words in its metadata; None takes an entry out."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        kept = file.metadata()
    path.write_bytes(save(tensors, {name: text for name, text in (kept | metadata).items() if text is not None}))
    return path


def test_everything_comes_back_to_the_same_bits(path):
    found, wanted = read_checkpoint(path, IDENTITY), some_checkpoint()
    assert found.history == wanted.history
    for part in ("network", "best", "optimizer"):
        tensors = getattr(wanted, part)
        assert getattr(found, part).keys() == tensors.keys()
        for name, tensor in getattr(found, part).items():
            assert tensor.dtype == tensors[name].dtype
            assert tensor.shape == tensors[name].shape
            assert tensor.numpy().tobytes() == tensors[name].numpy().tobytes()


def test_weights_that_share_memory_are_kept_under_each_of_their_names(path):
    tied = torch.arange(6.0).view(2, 3)
    state = {"table.weight": tied, "out.weight": tied, "turned": tied.T}
    write_checkpoint(path, Checkpoint(some_checkpoint().history, state, state, {}), IDENTITY)
    found = read_checkpoint(path, IDENTITY)
    assert all(torch.equal(found.best[name], tensor) for name, tensor in state.items())


def test_a_write_replaces_the_file_and_leaves_nothing_beside_it(path):
    write_checkpoint(path, some_checkpoint(value=9.0), IDENTITY)
    assert read_checkpoint(path, IDENTITY).network["best.head"][0, 0] == 9
    assert [entry.name for entry in path.parent.iterdir()] == ["run.safetensors"]


def test_what_a_killed_write_left_behind_is_no_obstacle(path):
    path.with_name("run.safetensors.partial").write_bytes(b"half a che")
    assert read_checkpoint(path, IDENTITY).history
    write_checkpoint(path, some_checkpoint(), IDENTITY)
    assert [entry.name for entry in path.parent.iterdir()] == ["run.safetensors"]


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_refused(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(TrainingError, match=r"run\.safetensors cannot be read as a checkpoint \(.+\): it is truncated"):
        read_checkpoint(path, IDENTITY)


@pytest.mark.parametrize("content", [b"SMILES,y\nCCO,1\n" * 9, b"\x80\x04\x95" + b"." * 90, b"\xff" * 64])
def test_a_file_of_another_kind_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=r"a file of another kind\. Remove it, or start over without resuming"):
        read_checkpoint(path, IDENTITY)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_somebody_elses_weights_are_refused(path, metadata):
    save_file({"weight": torch.zeros(2)}, path, metadata)
    found = re.escape(repr(metadata and metadata["format"]))
    with pytest.raises(TrainingError, match=rf"no checkpoint of a graphattn training run \(its format is {found}, wan"):
        read_checkpoint(path, IDENTITY)


def test_another_format_version_is_refused(path):
    rewritten(path, format_version="7", library_version="3.1.4")
    with pytest.raises(
        TrainingError, match=r"checkpoint format version 7, written by graphattn 3\.1\.4; .* reads versio"
    ):
        read_checkpoint(path, IDENTITY)


@pytest.mark.parametrize(
    ("name", "entry", "why"),
    [
        ("identity", None, "'identity'"),
        ("identity", '{"settings.seed": ', "Expecting value"),
        ("identity", "[1]", "it is no dict"),
        ("history", None, "'history'"),
        ("history", "[" * 100_000, "maximum recursion depth|[Tt]oo many nested"),
        ("history", "7", "it is no list"),
        ("history", "[7]", "must be a mapping"),
        ("history", '[{"epoch": 1}]', "missing 4 required"),
    ],
)
def test_a_damaged_entry_is_refused_by_name(path, name, entry, why):
    rewritten(path, **{name: entry})
    words = (
        rf"run\.safetensors is damaged: its entry '{name}' is missing or cannot be read \(.*({why}).*\)\. Remove it,"
    )
    with pytest.raises(TrainingError, match=words):
        read_checkpoint(path, IDENTITY)


def test_a_version_that_is_not_there_is_refused(path):
    rewritten(path, format_version=None, library_version=None)
    with pytest.raises(TrainingError, match="has checkpoint format version None, written by graphattn None; this is"):
        read_checkpoint(path, IDENTITY)


def test_another_run_is_refused_by_what_differs(path):
    with pytest.raises(
        TrainingError, match=r"belongs to another run: settings.learning_rate was 0\.1 and is now 0\.2\."
    ):
        read_checkpoint(path, IDENTITY | {"settings.learning_rate": 0.2})
    changed = {f"network.{layer}": "float32 [1]" for layer in range(5)}
    with pytest.raises(
        TrainingError, match=r"network\.2 was absent and is now 'float32 \[1\]'; and 2 more\. Resume with"
    ):
        read_checkpoint(path, IDENTITY | changed)


def test_the_file_says_what_it_is_to_any_reader_of_safetensors(path):
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    assert metadata["format"] == FORMAT
    assert json.loads(metadata["identity"]) == IDENTITY
    assert json.loads(metadata["history"])[0]["epoch"] == 1
