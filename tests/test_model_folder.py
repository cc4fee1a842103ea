"""A model on disk: the same bits in another process, all or nothing, and refused by name of what is wrong."""

import hashlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import MOLECULES, tiny_predictor

import graphattn
from graphattn import model_folder
from graphattn.errors import ModelFolderError
from graphattn.model_folder import check_place, load_model, read_model_file, save_model

FIXTURE = Path(__file__).parent / "fixtures" / "model_format_1"


@pytest.fixture
def folder(tmp_path):
    save_model(tiny_predictor(), tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, change):
    """Change what model.json says and give it the hash of a file that was written so."""
    content = json.loads((folder / "model.json").read_text())
    del content["sha256"]
    change(content)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    (folder / "model.json").write_text(json.dumps(content | {"sha256": hashlib.sha256(canonical).hexdigest()}))


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_a_loaded_model_is_the_saved_one_to_the_bit(task, tmp_path):
    saved = tiny_predictor(task, ensemble=2)
    save_model(saved, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert np.array_equal(loaded.predict(MOLECULES).values, saved.predict(MOLECULES).values)
    assert replace(loaded, networks=()) == replace(saved, networks=())
    for one, other in zip(saved.networks, loaded.networks, strict=True):
        assert all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))
        assert not other.training


def test_a_new_process_predicts_the_same_bits(folder):
    code = (
        "import sys, json; from graphattn.model_folder import load_model;"
        "print(json.dumps(load_model(sys.argv[1]).predict(json.loads(sys.argv[2])).values.tolist()))"
    )
    command = [sys.executable, "-c", code, str(folder), json.dumps(MOLECULES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == tiny_predictor().predict(MOLECULES).values.tolist()


def test_the_folder_of_an_earlier_version_still_loads_and_predicts_what_it_did():
    predictor = load_model(FIXTURE)
    content = read_model_file(FIXTURE)
    assert content["format_version"] == 1
    assert [target.name for target in predictor.targets] == ["length", "odd"]
    np.testing.assert_allclose(
        predictor.predict(content["self_check"]["molecules"]).values, content["self_check"]["predictions"], atol=1e-3
    )


def test_the_folder_holds_json_and_safetensors_and_no_training_molecule(folder):
    assert sorted(file.name for file in folder.iterdir()) == ["model.json", "weights-0.safetensors"]
    assert "ClC(Cl)Cl" in MOLECULES
    assert "ClC(Cl)Cl" not in (folder / "model.json").read_text()


@pytest.mark.parametrize("settings", [{"hydrogens": "add"}, {"stereo": False}], ids=str)
def test_the_options_of_a_model_travel_with_it(settings, tmp_path):
    save_model(tiny_predictor(**settings), tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for name, value in settings.items():
        assert getattr(loaded.featurizer, name) == value
    expected = tiny_predictor(**settings).predict(["C[C@H](N)C(=O)O"]).values
    assert np.array_equal(loaded.predict(["C[C@H](N)C(=O)O"]).values, expected)


# What stands in the way when saving


def test_a_model_folder_is_replaced_by_a_newer_model(folder):
    save_model(tiny_predictor("binary", ensemble=2), folder)
    assert load_model(folder).task == "binary"
    save_model(tiny_predictor(), folder)
    assert sorted(file.name for file in folder.iterdir()) == ["model.json", "weights-0.safetensors"]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_model_is_saved_through_a_link_and_into_new_folders(folder):
    link = folder.parent / "latest"
    link.symlink_to(folder)
    save_model(tiny_predictor("binary"), link)
    assert link.is_symlink()
    assert load_model(folder).task == "binary"
    save_model(tiny_predictor(), folder.parent / "new" / "deep")
    load_model(folder.parent / "new" / "deep")


def test_a_circle_of_links_is_no_place(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    with pytest.raises(ModelFolderError, match="one is a link in a circle of links; name another place"):
        check_place(tmp_path / "one")


def test_a_name_too_long_is_no_place(tmp_path):
    with pytest.raises(ModelFolderError, match="cannot be written: File name too long; name another place"):
        save_model(tiny_predictor(), tmp_path / "new" / ("x" * 252))
    assert not list(tmp_path.iterdir())


def test_nothing_but_a_model_folder_is_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("text")
    with pytest.raises(ModelFolderError, match=r"thesis holds 'chapter1\.txt', which no model folder"):
        save_model(tiny_predictor(), tmp_path / "thesis")
    with pytest.raises(ModelFolderError, match=r"chapter1\.txt is a file; a model is a folder, so name another place"):
        save_model(tiny_predictor(), tmp_path / "thesis" / "chapter1.txt")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.json").write_text('{"format": "keras"}')
    with pytest.raises(
        ModelFolderError, match=r"other holds 'model\.json' but no model\.json of graphattn, so it is left"
    ):
        save_model(tiny_predictor(), tmp_path / "other")
    with pytest.raises(
        ModelFolderError, match=r"chapter1\.txt is a file, so there can be no folder .*/deep/model; name another place"
    ):
        save_model(tiny_predictor(), tmp_path / "thesis" / "chapter1.txt" / "deep" / "model")
    (tmp_path / "empty").mkdir()
    save_model(tiny_predictor(), tmp_path / "empty")
    (tmp_path / "empty" / "my notes.txt").write_text("precious")
    with pytest.raises(
        ModelFolderError, match=r"holds 'my notes\.txt', which no model folder does, so it is left alone"
    ):
        save_model(tiny_predictor(), tmp_path / "empty")
    assert (tmp_path / "empty" / "my notes.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "other", "thesis"]


def test_a_save_that_fails_leaves_the_old_model_and_nothing_else(folder, monkeypatch):
    before = (folder / "model.json").read_bytes()

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_folder, "_content", broken)
    with pytest.raises(OSError, match="No space left"):
        save_model(tiny_predictor("binary"), folder)
    assert (folder / "model.json").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_rename_that_fails_puts_the_old_model_back(folder, monkeypatch):
    rename = Path.rename

    def unlucky(self, target):
        if self.name.endswith(".new"):
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", unlucky)
    with pytest.raises(OSError, match="Permission denied"):
        save_model(tiny_predictor("binary"), folder)
    assert load_model(folder).task == "regression"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


# What is wrong when loading


def test_a_place_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelFolderError, match=r"there is no folder .*nowhere; train a model first, or check the path"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFolderError, match="file is a file; a model is the folder that training wrote"):
        load_model(tmp_path / "file")
    with pytest.raises(ModelFolderError, match=r"holds no model\.json, so it is no model folder of graphattn"):
        load_model(tmp_path)


def test_a_truncated_description_is_refused(folder):
    text = (folder / "model.json").read_text()
    (folder / "model.json").write_text(text[: len(text) // 2])
    with pytest.raises(ModelFolderError, match=r"model\.json is truncated or damaged: .*line"):
        load_model(folder)
    (folder / "model.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFolderError, match=r"model\.json is truncated or damaged: 'utf-8' codec"):
        load_model(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "maximum recursion depth|[Tt]oo many nested"),
        ('{"format": ' + "[" * 100_000 + "]" * 100_000 + "}", "maximum recursion depth|[Tt]oo many nested"),
        ("1" * 5000, "Exceeds the limit"),
    ],
    ids=["deep and open", "deep", "a number of 5000 digits"],
)
def test_json_made_to_break_the_reader_is_refused(folder, text, message):
    (folder / "model.json").write_text(text)
    with pytest.raises(ModelFolderError, match=rf"model\.json is truncated or damaged: .*({message})"):
        load_model(folder)


def test_text_that_nothing_can_print_is_refused(folder):
    rewrite(folder, lambda content: content["targets"][0].update(name="half \ud83d"))
    with pytest.raises(ModelFolderError, match=r"model\.json is truncated or damaged: .*surrogates not allowed"):
        load_model(folder)


@pytest.mark.parametrize("version", [True, 1.0, 0, -1, "1", None, [1]])
def test_a_version_that_none_wrote_is_refused(folder, version):
    rewrite(folder, lambda content: content.update(format_version=version))
    with pytest.raises(ModelFolderError, match=re.escape(f"has format version {version!r}, which no graphattn wrote")):
        load_model(folder)


@pytest.mark.parametrize("text", ['{"format": "other"}', "[1, 2]", "{}"])
def test_a_foreign_description_is_refused(folder, text):
    (folder / "model.json").write_text(text)
    with pytest.raises(ModelFolderError, match=r"does not say format 'graphattn-model': another program wrote it"):
        load_model(folder)


def test_a_newer_format_says_which_version_wrote_it(folder):
    rewrite(folder, lambda content: content.update(format_version=2, library_version="7.0"))
    with pytest.raises(ModelFolderError) as caught:
        load_model(folder)
    assert str(caught.value).endswith(
        f"model.json has format version 2, written by graphattn 7.0; graphattn {graphattn.__version__} "
        "reads versions up to 1: upgrade it"
    )


@pytest.mark.parametrize("change", [('"letters"', '"meters"'), ('"std": [', '"std": [NaN, ')], ids=["unit", "NaN"])
def test_a_description_changed_by_hand_is_refused(folder, change):
    text = (folder / "model.json").read_text()
    assert change[0] in text
    (folder / "model.json").write_text(text.replace(*change))
    with pytest.raises(ModelFolderError, match="was changed after it was saved: its content and its SHA-256 differ"):
        load_model(folder)


@pytest.mark.parametrize("damage", ["truncated", "one bit"])
def test_damaged_weights_are_refused(folder, damage):
    file = folder / "weights-0.safetensors"
    raw = bytearray(file.read_bytes())
    if damage == "truncated":
        del raw[-100:]
    else:
        raw[-5] ^= 1
    file.write_bytes(raw)
    found = hashlib.sha256(raw).hexdigest()[:12]
    wanted = rf"weights-0\.safetensors is not the file that was saved: its SHA-256 begins {found}, that of the saved"
    with pytest.raises(ModelFolderError, match=wanted):
        load_model(folder)


def test_missing_weights_are_refused(folder):
    (folder / "weights-0.safetensors").unlink()
    with pytest.raises(ModelFolderError, match=r"weights-0\.safetensors is missing; copy the model folder again"):
        load_model(folder)


def hash_of(folder):
    return hashlib.sha256((folder / "weights-0.safetensors").read_bytes()).hexdigest()


def test_weights_that_are_no_safetensors_are_refused(folder):
    (folder / "weights-0.safetensors").write_bytes(b"\x80\x04pickle of something else")
    rewrite(folder, lambda content: content.update(weights_sha256=[hash_of(folder)]))
    with pytest.raises(ModelFolderError, match=r"weights-0\.safetensors is no safetensors file: "):
        load_model(folder)


@pytest.mark.parametrize("change", ["shape", "dtype", "missing", "extra"])
def test_weights_of_another_network_are_refused_by_the_tensor(folder, change):
    weights = load_file(folder / "weights-0.safetensors")
    name = max(weights, key=lambda name: weights[name].numel())
    kind = f"float32 {tuple(weights[name].shape)}"
    got, want, called = kind, kind, name
    if change == "shape":
        weights[name] = torch.zeros(3, 5)
        got = "float32 (3, 5)"
    elif change == "dtype":
        weights[name] = weights[name].half()
        got = kind.replace("float32", "float16")
    elif change == "missing":
        del weights[name]
        got = "nothing"
    else:
        weights["spy"] = torch.zeros(2)
        got, want, called = "float32 (2,)", "nothing", "spy"
    save_file(weights, folder / "weights-0.safetensors")
    rewrite(folder, lambda content: content.update(weights_sha256=[hash_of(folder)]))
    wanted = re.escape(f"has {got} for the tensor {called!r} where the network has {want}")
    for self_check in (True, False):
        with pytest.raises(ModelFolderError, match=wanted):
            load_model(folder, self_check=self_check)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_weights_that_are_no_numbers_are_refused_by_the_tensor(folder, value):
    weights = load_file(folder / "weights-0.safetensors")
    weights["head.0.bias"][3] = value
    save_file(weights, folder / "weights-0.safetensors")
    rewrite(folder, lambda content: content.update(weights_sha256=[hash_of(folder)]))
    with pytest.raises(ModelFolderError, match=r"has NaN or infinity in the tensor 'head\.0\.bias'; no model predicts"):
        load_model(folder, self_check=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("targets"), "model.json lacks the entry 'targets'"),
        (lambda content: content["network"].update(wings=2), "lacks or misplaces an entry: TypeError.*'wings'"),
        (lambda content: content.update(task="ranking"), "has task 'ranking'; wanted one of regression, binary"),
        (lambda content: content["network"].update(heads=3), "does not fit this version of graphattn: .*heads"),
        (lambda content: content["scaler"].update(std=[-1, 1]), "does not fit this version of graphattn: .*std"),
    ],
    ids=["entry missing", "unknown setting", "unknown task", "impossible network", "impossible scaler"],
)
def test_a_description_that_cannot_be_is_refused(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(ModelFolderError, match=message):
        load_model(folder)


FORGED = {
    "no self-check": (lambda content: content.pop("self_check"), "model.json lacks the entry 'self_check'"),
    "an empty self-check": (
        lambda content: content.update(self_check={"molecules": [], "predictions": []}),
        "self_check has [] as molecules; wanted at least one SMILES",
    ),
    "a self-check of numbers": (
        lambda content: content["self_check"].update(molecules=[1, 2, 3, 4, 5, 6]),
        "self_check has [1, 2, 3, 4, 5, 6] as molecules; wanted at least one SMILES",
    ),
    "a self-check too short": (
        lambda content: content["self_check"]["predictions"].pop(),
        "self_check has 5 predictions for 6 molecules",
    ),
    "a self-check of one target": (
        lambda content: content["self_check"]["predictions"].__setitem__(2, [0.5]),
        "self_check: predictions[2] is [0.5]; wanted one number for each of 2 targets",
    ),
    "a self-check of text": (
        lambda content: content["self_check"].update(predictions="abcdef"),
        "self_check has 'abcdef' as 'predictions'; wanted a list",
    ),
    "no weights": (
        lambda content: content.update(weights_sha256=[]),
        "has [] as weights_sha256; wanted the SHA-256 of",
    ),
    "weights of null": (lambda content: content.update(weights_sha256=[None]), "has [None] as weights_sha256"),
    "weights as text": (lambda content: content.update(weights_sha256="ab"), "has 'ab' as 'weights_sha256'; wanted a"),
    "a billion layers": (
        lambda content: content["network"].update(layers=10**9),
        "does not fit this version of graphattn: layers must be between 1 and 1000, got 1000000000",
    ),
    "a thousand layers": (
        lambda content: content["network"].update(layers=1000),
        "numbers, too few for 1000 layers of 8 channels, which model.json says the network has",
    ),
    "thousands of channels": (
        lambda content: content["network"].update(channels=2**14),
        "numbers, too few for 1 layers of 16384 channels",
    ),
    "as many channels as the file might hold": (
        lambda content: content["network"].update(channels=1000),
        "for the tensor 'embed.table' where the network has float32 (78, 1000)",
    ),
    "a layer more": (
        lambda content: content["network"].update(layers=2),
        "has nothing for the tensor 'blocks.1.attention_norm.weight'",
    ),
    "layers of half": (lambda content: content["network"].update(layers=1.5), "layers must be a whole number, got 1.5"),
    "a network that is a list": (lambda content: content.update(network=[]), "has [] as 'network'; wanted an object"),
    "a featurizer that is null": (
        lambda content: content.update(featurizer=None),
        "has None as 'featurizer'; wanted an",
    ),
    "versions as text": (lambda content: content.update(written_with="rdkit"), "has 'rdkit' as 'written_with'; wanted"),
    "no RDKit version": (lambda content: content["written_with"].pop("rdkit"), "written_with lacks the entry 'rdkit'"),
    "no targets": (lambda content: content.update(targets=[]), "targets is empty; a model has at least one target"),
    "a target that is text": (
        lambda content: content["targets"].__setitem__(1, "odd"),
        "targets[1] is 'odd'; wanted an object with name, unit, classes",
    ),
    "a target without name": (
        lambda content: content["targets"][1].update(name=None),
        "targets[1] has None as 'name'; wanted a text",
    ),
    "classes of a regression": (
        lambda content: content["targets"][0].update(classes=[0, 1]),
        "targets[0] has the classes [0, 1]; wanted 0 labels",
    ),
    "no scaler of a regression": (
        lambda content: content.update(scaler=None),
        "has the scaler None with task 'regression'",
    ),
    "a scaler of three": (
        lambda content: content["scaler"].update(mean=[0, 0, 0], std=[1, 1, 1]),
        "has a scaler of 3 for 2 targets",
    ),
    "a scaler beyond floats": (
        lambda content: content["scaler"].update(mean=[10**400, 0]),
        "lacks or misplaces an entry: OverflowError",
    ),
    "a scaler that is a list": (
        lambda content: content.update(scaler=[]),
        "has [] as 'scaler'; wanted an object or null",
    ),
    "training of another ensemble": (
        lambda content: content["training"].update(best_epochs=[1, 2, 3]),
        "training has 3 best_epochs for 1 weights files",
    ),
    "training settings as text": (
        lambda content: content["training"].update(training="long"),
        "training has 'long' as 'training'; wanted an object",
    ),
    "scores that are no list": (
        lambda content: content["training"]["scores"].update(test=5),
        "training has 5 as scores of test; wanted a list",
    ),
    "a score that is text": (
        lambda content: content["training"]["scores"]["test"][0]["values"].update(rmse="low"),
        "training: scores of test[0] has {'rmse': 'low',",
    ),
    "a self-check beyond floats": (
        lambda content: content["self_check"]["predictions"][0].__setitem__(1, 10**400),
        "self_check: predictions[0] is [",
    ),
    "a history of numbers": (
        lambda content: content["training"].update(histories=[[1, 2]]),
        "lacks or misplaces an entry: TypeError",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_description_is_refused_by_name_though_its_hash_fits(folder, what):
    change, message = FORGED[what]
    rewrite(folder, change)
    for self_check in (True, False):
        with pytest.raises(ModelFolderError, match=re.escape(message)):
            load_model(folder, self_check=self_check)


@pytest.mark.parametrize("classes", [[0], [1, 1], ["a", None], [[0], [1]]], ids=str)
def test_forged_classes_are_refused(classes, tmp_path):
    save_model(tiny_predictor("binary"), tmp_path / "model")
    rewrite(tmp_path / "model", lambda content: content["targets"][0].update(classes=classes))
    with pytest.raises(ModelFolderError, match=re.escape(f"targets[0] has the classes {classes}; wanted 2 labels")):
        load_model(tmp_path / "model")


def test_a_binary_model_is_checked_by_its_probabilities(tmp_path):
    save_model(tiny_predictor("binary"), tmp_path / "model")
    rewrite(tmp_path / "model", lambda content: content["self_check"]["predictions"].insert(0, [math.nan, 0.5]))
    rewrite(tmp_path / "model", lambda content: content["self_check"]["predictions"].pop())
    with pytest.raises(ModelFolderError, match=r"now predicts 'length' of 'C' inf of probability away"):
        load_model(tmp_path / "model")


def test_other_features_of_the_same_molecule_are_refused_unless_accepted(folder):
    def shift(content):
        content["self_check"]["predictions"][1][1] += 1.0
        content["written_with"]["rdkit"] = "2001.01"

    rewrite(folder, shift)
    with pytest.raises(ModelFolderError, match=r"now predicts 'odd' of 'CCO' .* standard deviations away") as caught:
        load_model(folder)
    assert "It was written with RDKit 2001.01, this is RDKit" in str(caught.value)
    assert load_model(folder, self_check=False).predict(["CCO"]).bad_rows == []


def test_weights_of_a_name_that_is_not_ours_are_left_alone(folder):
    precious = folder / "weights-backup.safetensors"
    precious.write_text("precious")
    with pytest.raises(ModelFolderError, match=r"holds 'weights-backup.safetensors', which no model folder does"):
        check_place(folder)
    assert precious.read_text() == "precious"
