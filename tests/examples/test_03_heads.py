"""Two heads by hand, and the task that takes two."""

import torch
from example_modules import is_picture, load


def test_two_heads_do_what_one_cannot(tmp_path):
    found = load("03_heads").main(tmp_path, quick=True)
    torch.testing.assert_close(found.by_layer, found.by_hand)
    assert found.parameters[1] == found.parameters[2]
    assert min(found.accuracies[2]) >= 0.9
    assert max(found.accuracies[1]) <= 0.65
    assert is_picture(tmp_path / "03_heads.png")


def test_heads_by_hand_are_joined_in_their_order():
    module = load("03_heads")
    outputs = [
        (module.INPUTS @ query @ (module.INPUTS @ key).T / 2**0.5).softmax(1) @ (module.INPUTS @ value)
        for query, key, value in zip(module.QUERY, module.KEY, module.VALUE, strict=True)
    ]
    torch.testing.assert_close(module.two_heads_by_layer(), torch.cat(outputs, 1) @ module.MERGE)


def test_a_label_says_how_friend_and_rival_are():
    module = load("03_heads")
    groups = module.make_groups(50, seed=3)
    mood = groups.x[..., -1]
    names = groups.x[..., : module.NAME]
    for group in range(50):
        for member in range(module.MEMBERS):
            friend, rival = int(groups.friend[group, member]), int(groups.rival[group, member])
            assert len({member, friend, rival}) == 3
            given = groups.x[group, member, module.NAME : -1]
            assert torch.equal(given, torch.cat([names[group, friend], names[group, rival]]))
            glad = 2 * int(mood[group, friend] > 0) + int(mood[group, rival] > 0)
            assert int(groups.label[group, member]) == glad
    assert (mood.abs() >= 0.1).all()
