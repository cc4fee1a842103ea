"""Attention that is a convolution: equal to torch.nn.Conv2d in values, in gradients and through training."""

import copy

import pytest
import torch
from torch import nn

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import BACKENDS
from graphattn.errors import SettingError
from graphattn.featurize.positions import pixel_positions, relative_kinds
from graphattn.model.convolution import ConvolutionAttention, attention_from_conv2d

SIZES = ((1, 1), (1, 7), (6, 1), (2, 3), (9, 8))  # images: smaller and larger than the kernels
NORMALIZERS = ("softmax", "relu")


def convolution(kernel: int | tuple[int, int], channels: int = 3, out_channels: int = 4, **more: object) -> nn.Conv2d:
    torch.manual_seed(0)
    return nn.Conv2d(channels, out_channels, kernel, **{"padding": "same", "dtype": torch.float64} | more)


def patches(conv: nn.Conv2d, height: int, width: int, images: int = 1) -> tuple[Adjacency, torch.Tensor]:
    """The grid that ``conv`` sees, for each image of a batch, and the place in its kernel of each edge."""
    grid = Adjacency.batch([Adjacency.grid(height, width, size=conv.kernel_size)] * images)
    radius = tuple(side // 2 for side in conv.kernel_size)
    return grid, relative_kinds(grid, pixel_positions(height, width).repeat(images, 1), radius)


def on_images(layer: ConvolutionAttention, conv: nn.Conv2d, images: torch.Tensor) -> torch.Tensor:
    """(B, C, height, width) -> (B, out_channels, height, width) by attention between pixels."""
    count, _, height, width = images.shape
    rows = layer(images.movedim(1, -1).flatten(0, 2), *patches(conv, height, width, count))
    return rows.view(count, height, width, -1).movedim(-1, 1)


def random_images(count: int, height: int, width: int, channels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, channels, height, width, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("kernel", [3, 5])
def test_values_and_gradients_are_those_of_the_convolution(backend, normalizer, kernel):
    conv = convolution(kernel)
    layer = attention_from_conv2d(conv, normalizer=normalizer, backend=backend.name)
    sizes = SIZES[1:4:2] if backend.name == "fused_gpu" else SIZES  # Triton's interpreter is slow
    for height, width in sizes:
        got, want = (random_images(2, height, width).requires_grad_() for _ in range(2))
        out, wanted = on_images(layer, conv, got), conv(want)
        torch.testing.assert_close(out, wanted, rtol=1e-10, atol=1e-12)
        of_layer = torch.autograd.grad(out.square().sum(), [got, layer.merge.weight, layer.merge.bias])
        of_conv = torch.autograd.grad(wanted.square().sum(), [want, conv.weight, conv.bias])
        places = conv.kernel_size[0] * conv.kernel_size[1]
        kernel_gradient = of_layer[1].view(4, places, 3).movedim(1, 2).reshape(conv.weight.shape)
        for one, other in zip((of_layer[0], kernel_gradient, of_layer[2]), of_conv, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("kernel", [(1, 1), (3, 5), (5, 1)])
@pytest.mark.parametrize("bias", [True, False])
def test_kernels_of_other_shapes_with_and_without_bias(normalizer, kernel, bias):
    conv = convolution(kernel, channels=2, out_channels=1, bias=bias, padding=tuple(side // 2 for side in kernel))
    layer = attention_from_conv2d(conv, normalizer=normalizer)
    assert (layer.merge.bias is None) != bias
    for height, width in SIZES:
        images = random_images(1, height, width, channels=2)
        torch.testing.assert_close(on_images(layer, conv, images), conv(images), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_single_precision_equals_the_convolution_to_1e5(normalizer):
    conv = convolution(5, channels=16, out_channels=8, dtype=torch.float32)
    images = random_images(2, 12, 10, channels=16).float()
    layer = attention_from_conv2d(conv, normalizer=normalizer)
    assert {weight.dtype for weight in layer.parameters()} == {torch.float32}
    torch.testing.assert_close(on_images(layer, conv, images), conv(images), rtol=0, atol=1e-5)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_each_head_attends_to_its_own_place_and_outside_the_image_to_nothing(normalizer):
    conv = convolution(3)
    layer, (grid, places) = attention_from_conv2d(conv, normalizer=normalizer), patches(conv, 3, 4)
    weights = layer.attention.attention_weights(random_images(1, 3, 4)[0].flatten(1).T, grid, places).edges
    assert torch.equal(weights, nn.functional.one_hot(places, 9).double())


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_training_takes_the_same_steps_as_the_convolution(normalizer):
    conv = convolution(3)
    layer, images = attention_from_conv2d(conv, normalizer=normalizer), random_images(2, 4, 4)
    attention = copy.deepcopy(layer.attention)
    target = torch.randn(2, 4, 4, 4, dtype=torch.float64)
    for network in (conv, layer):
        optimizer = torch.optim.AdamW([each for each in network.parameters() if each.requires_grad], lr=0.1)
        for _ in range(5):
            out = conv(images) if network is conv else on_images(layer, conv, images)
            optimizer.zero_grad()
            torch.autograd.backward((out - target).square().mean())
            optimizer.step()
    torch.testing.assert_close(on_images(layer, conv, images), conv(images), rtol=1e-7, atol=1e-9)
    for before, after in zip(attention.parameters(), layer.attention.parameters(), strict=True):
        assert torch.equal(before, after)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_values_may_learn_once_they_are_let(normalizer):
    conv = convolution(3)
    layer = attention_from_conv2d(conv, normalizer=normalizer)
    layer.attention.requires_grad_()
    torch.autograd.backward(on_images(layer, conv, random_images(1, 4, 4)).square().sum())
    for weight in layer.parameters():
        assert weight.grad is not None
        assert weight.grad.isfinite().all()  # from a bias of -inf as well
    assert layer.attention.value.weight.grad.abs().max() > 0


def test_the_layer_has_weights_of_its_own():
    conv = convolution(3)
    layer, before = attention_from_conv2d(conv), conv.weight.clone()
    with torch.no_grad():
        layer.merge.weight.zero_()
        layer.merge.bias.zero_()
    assert torch.equal(conv.weight, before)
    assert conv.bias.abs().min() > 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"stride": 2, "padding": 1}, r"stride must be \(1, 1\), got \(2, 2\)"),
        ({"dilation": (1, 2)}, r"dilation must be \(1, 1\), got \(1, 2\)"),
        ({"groups": 2, "channels": 4}, "groups must be 1, got 2"),
        ({"padding_mode": "reflect", "padding": 1}, "padding_mode must be 'zeros', got 'reflect'"),
        ({"padding": 0}, r"padding must be \(1, 1\) or 'same'.*; got \(0, 0\)"),
        ({"padding": "valid"}, r"padding must be \(1, 1\) or 'same'.*; got 'valid'"),
        ({"kernel": (3, 2)}, r"kernel_size must be odd.*; got \(3, 2\)"),
    ],
)
def test_other_convolutions_are_refused_by_name(changed, message):
    with pytest.raises(SettingError, match=message):
        attention_from_conv2d(convolution(**{"kernel": 3} | changed))


def test_other_layers_and_normalizers_are_refused():
    with pytest.raises(SettingError, match=r"a torch\.nn\.Conv2d is wanted, got ConvTranspose2d"):
        attention_from_conv2d(nn.ConvTranspose2d(1, 1, 3))
    with pytest.raises(SettingError, match="normalizer must be 'softmax' or 'relu', got 'sigmoid'"):
        attention_from_conv2d(convolution(3), normalizer="sigmoid")
