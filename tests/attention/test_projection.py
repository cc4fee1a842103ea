"""The layer's matrix product is the one of PyTorch, whichever library computes it."""

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.nn import functional

from graphattn.attention import projection
from graphattn.attention.projection import WORTHWHILE, linear

ROWS, IN, OUT = 700, 64, 96  # more than WORTHWHILE multiplications


@pytest.fixture(autouse=True)
def _processor_that_wants_onednn(monkeypatch):
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(projection, "onednn_is_faster", lambda: True)


@pytest.fixture
def calls(monkeypatch):
    """The shapes of the products that oneDNN was asked for."""
    shapes, of_projection = [], projection.by_onednn

    def noted(x, weight, bias=None):
        shapes.append((len(x), x.shape[1], len(weight)))
        return of_projection(x, weight, bias)

    monkeypatch.setattr(projection, "by_onednn", noted)
    return shapes


def operands(rows=ROWS, dtype=torch.float32, *, bias=True):
    generator = torch.Generator().manual_seed(0)
    shapes = [(rows, IN), (OUT, IN), (OUT,)][: 3 if bias else 2]
    made = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
    return [tensor.requires_grad_() for tensor in made] + ([] if bias else [None])


def value_and_gradients(product, inputs, grad):
    out = product(*inputs)
    return [out, *torch.autograd.grad(out, [each for each in inputs if each is not None], grad)]


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("grad", [torch.randn(ROWS, OUT), torch.ones(()).expand(ROWS, OUT)], ids=["dense", "expanded"])
def test_values_and_gradients(calls, bias, grad):
    inputs = operands(bias=bias)
    exact = [None if each is None else each.detach().double().requires_grad_() for each in inputs]
    truth = value_and_gradients(functional.linear, exact, grad.double())
    got = value_and_gradients(linear, inputs, grad)
    assert calls == [(ROWS, IN, OUT), (ROWS, OUT, IN), (IN, ROWS, OUT)]
    for own, want in zip(got, truth, strict=True):
        assert (own - want).abs().max() <= 1e-6 * want.abs().max()


def test_gradients_are_computed_only_where_they_are_wanted(calls):
    x, weight, bias = operands()
    torch.autograd.grad(linear(x.detach(), weight, bias).sum(), weight)
    assert calls == [(ROWS, IN, OUT), (IN, ROWS, OUT)]


def test_gradients_can_be_differentiated(calls):
    def penalty(product):
        inputs = operands()
        grads = torch.autograd.grad(product(*inputs).square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(grad.square().mean() for grad in grads), inputs)

    torch.testing.assert_close(penalty(linear), penalty(functional.linear), rtol=1e-3, atol=1e-2)
    assert calls


def test_small_products_other_types_and_autocast_are_pytorchs(calls):
    small = WORTHWHILE // (IN * OUT) - 1
    for inputs in (operands(small), operands(0), operands(dtype=torch.float64), operands(dtype=torch.bfloat16)):
        assert torch.equal(linear(*inputs), functional.linear(*inputs))
    with torch.autocast("cpu"):
        assert linear(*operands()).dtype == torch.bfloat16
    assert calls == []


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp", "compile"])
def test_what_has_no_memory_to_read_is_pytorchs(calls, transform):
    x, weight, bias = (tensor.detach() for tensor in operands())
    got, want = [
        {
            "vmap": lambda f: torch.func.vmap(lambda row: f(row, weight, bias))(x[None]),
            "grad": lambda f: torch.func.grad(lambda row: f(row, weight, bias).square().sum())(x),
            "jvp": lambda f: torch.func.jvp(lambda row: f(row, weight, bias), (x,), (x,))[1],
            "compile": lambda f: torch.compile(lambda row: f(row, weight, bias), backend="eager", fullgraph=True)(x),
        }[transform](product)
        for product in (linear, functional.linear)
    ]
    assert torch.equal(got, want)
    assert calls == []


def test_forward_mode_differentiation_is_pytorchs(calls):
    x, weight, bias = (tensor.detach() for tensor in operands())
    with torch.autograd.forward_ad.dual_level():
        out = linear(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)), weight, bias)
        tangent = torch.autograd.forward_ad.unpack_dual(out).tangent
    torch.testing.assert_close(tangent, torch.ones_like(x) @ weight.T)
    assert calls == []


def test_traced_and_fake_tensors_are_pytorchs(calls):
    x, weight, bias = (tensor.detach() for tensor in operands())
    traced = torch.jit.trace(lambda rows: linear(rows, weight, bias), x, check_trace=False)  # it would call it as well
    torch.testing.assert_close(traced(2 * x), functional.linear(2 * x, weight, bias))
    with FakeTensorMode() as mode:
        fake = linear(*(mode.from_tensor(tensor) for tensor in (x, weight, bias)))
    assert fake.shape == (ROWS, OUT)
    assert calls == []


def test_wrong_shapes_are_pytorchs_errors():
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        linear(torch.ones(ROWS, IN + 1), torch.ones(OUT, IN), None)
