"""``graphattn info``: a table for people, JSON for programs, a refusal for what is no model."""

import json
import re
from dataclasses import replace

from command_line import run
from tiny_models import tiny_predictor

import graphattn
from graphattn.model_folder import read_model_file, save_model


def test_the_table_says_what_the_model_is(tmp_path):
    save_model(tiny_predictor(ensemble=2), tmp_path / "model")
    done = run("info", tmp_path / "model")
    assert done.code == 0
    text = re.sub(r"[\s│]+", " ", done.out)
    for words in (
        "length (letters), regression",
        "networks 2 of ",
        "channels 8, layers 1, heads 2",
        "hydrogens implicit, stereo on",
        "random, seed 0: 14 train, 3 valid, 3 test",
        "test error length: rmse ",
        f"written by graphattn {graphattn.__version__} (rdkit ",
    ):
        assert words in text


def test_square_brackets_are_text_and_no_markup(tmp_path):
    predictor = tiny_predictor()
    targets = (replace(predictor.targets[0], name="a[/b]", unit="mol [L]"), *predictor.targets[1:])
    save_model(replace(predictor, targets=targets), tmp_path / "m[solvent]")
    done = run("info", tmp_path / "m[solvent]")
    assert done.code == 0
    assert "a[/b] (mol [L]), regression" in done.out
    assert "[solvent]" in done.out.replace("\n", "")


def test_a_binary_model_says_whose_probability_it_gives(tmp_path):
    save_model(tiny_predictor("binary"), tmp_path / "model")
    text = re.sub(r"[\s│]+", " ", run("info", tmp_path / "model").out)
    assert "length (letters), classification: the probability of 1" in text


def test_json_is_the_whole_description(tmp_path):
    save_model(tiny_predictor(), tmp_path / "model")
    done = run("info", tmp_path / "model", "--json")
    assert json.loads(done.out) == read_model_file(tmp_path / "model")


def test_a_damaged_folder_is_refused(tmp_path):
    save_model(tiny_predictor(), tmp_path / "model")
    (tmp_path / "model" / "weights-0.safetensors").unlink()
    done = run("info", tmp_path / "model")
    assert (done.code, done.out) == (1, "")
    assert "error: " in done.err
    assert "weights-0.safetensors is missing" in done.err
