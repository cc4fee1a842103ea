"""The karate club: side of a member from a handful of known ones."""

from example_modules import is_picture, load


def test_most_members_are_put_on_their_side(tmp_path):
    assert load("13_any_graph").main(tmp_path) >= 0.9
    assert is_picture(tmp_path / "karate_club.png")
