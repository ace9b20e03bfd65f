import importlib
import sys

import numpy as np
import pytest

from calibrant.errors import InvalidInput, MissingExtra
from calibrant.metrics import ece

torch = pytest.importorskip("torch")
F = torch.nn.functional
losses = importlib.import_module("calibrant.torch.losses")

ROWS, CLASSES = 12, 4
SOFT = [losses.FocalLoss, losses.EntropyRegularizedLoss, losses.LabelSmoothingLoss]
PLAIN = {  # each at the strength where it is cross-entropy
    "focal": losses.FocalLoss(0.0),
    "focal by row": losses.FocalLoss(torch.zeros_like),
    "entropy": losses.EntropyRegularizedLoss(0.0),
    "smoothing": losses.LabelSmoothingLoss(0.0),
    "mmce": losses.MMCELoss(0.0),
    "soft-binned": losses.SoftBinnedECELoss(0.0),
}
DEFAULTS = {
    "focal": losses.FocalLoss(),
    "focal below one": losses.FocalLoss(0.5),
    "flsd53": losses.FocalLoss(losses.flsd53),
    "entropy": losses.EntropyRegularizedLoss(0.3),
    "smoothing": losses.LabelSmoothingLoss(0.1),
    "mmce": losses.MMCELoss(),
    "mmce weighted": losses.MMCELoss(0.5, weighted=True),
    "soft-binned": losses.SoftBinnedECELoss(),
    "soft-binned 1": losses.SoftBinnedECELoss(norm=1),
}


def batch(rows=ROWS, classes=CLASSES, scale=2.0, seed=0):
    source = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(rows, classes, dtype=torch.float64, generator=source)
    return logits, torch.randint(classes, (rows,), generator=source)


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
def test_gradients_are_those_of_finite_differences(loss):
    logits, y = batch()
    y[3] = -100
    torch.autograd.gradcheck(lambda z: loss(z, y), logits.requires_grad_())


@pytest.mark.parametrize("kind", SOFT)
def test_gradients_for_targets_that_are_probabilities(kind):
    logits, _ = batch()
    q = torch.softmax(batch(seed=1)[0], 1)
    torch.autograd.gradcheck(lambda z: kind()(z, q), logits.requires_grad_())


@pytest.mark.parametrize("loss", PLAIN.values(), ids=PLAIN)
def test_at_no_strength_every_loss_is_cross_entropy(loss):
    logits, y = batch()
    y[5] = -100
    torch.testing.assert_close(loss(logits, y), F.cross_entropy(logits, y))
    loss = type(loss)(
        *([0.0] if not isinstance(loss, losses.FocalLoss) else [loss.gamma]), weight=torch.rand(4).double()
    )
    torch.testing.assert_close(loss(logits, y), F.cross_entropy(logits, y, loss.weight))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", SOFT)
def test_shapes_and_reductions_are_torchs(kind, reduction):
    loss = kind(0.0, reduction=reduction)
    images, labels = torch.randn(3, 5, 2, 2), torch.randint(5, (3, 2, 2))
    labels[0, 0, 0] = -100
    torch.testing.assert_close(loss(images, labels), F.cross_entropy(images, labels, reduction=reduction))
    q = torch.softmax(torch.randn_like(images), 1)
    torch.testing.assert_close(loss(images, q), F.cross_entropy(images, q, reduction=reduction))
    one, label = torch.randn(5), torch.tensor(2)
    torch.testing.assert_close(loss(one, label), F.cross_entropy(one, label, reduction=reduction))


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
def test_a_single_logit_is_the_log_odds_of_an_event(loss):
    z, y = batch(classes=1)[0], batch(classes=2)[1]
    pair = torch.cat([torch.zeros_like(z), z], 1)
    wanted = loss(pair, y)
    assert wanted > 0
    for targets in (y, y[:, None]):
        assert torch.equal(loss(z, targets), wanted)
    image = z[:, :, None].expand(-1, 1, 3)
    assert torch.equal(
        loss(image, y[:, None].expand(-1, 3)), loss(pair[:, :, None].expand(-1, 2, 3), y[:, None].expand(-1, 3))
    )
    torch.autograd.gradcheck(lambda z: loss(z, y), z.requires_grad_())
    with pytest.raises(InvalidInput, match="one logit alone"):
        loss(z[0], y[0])


@pytest.mark.parametrize("kind", SOFT)
def test_a_single_logit_takes_the_targets_of_torchs_binary_loss(kind):
    z, q = batch(classes=1)[0], torch.sigmoid(batch(classes=1, seed=1)[0])
    wanted = kind()(torch.cat([torch.zeros_like(z), z], 1), torch.cat([1 - q, q], 1))
    assert torch.equal(kind()(z, q), wanted)
    assert torch.equal(kind()(z, q[:, 0]), wanted)
    none = kind(0.0, reduction="none")(z, q)
    torch.testing.assert_close(none, F.binary_cross_entropy_with_logits(z, q, reduction="none")[:, 0])


def test_the_entropy_of_a_single_logit():
    z = batch(classes=1)[0]
    torch.testing.assert_close(losses.entropy(z), torch.distributions.Bernoulli(logits=z[:, 0]).entropy())


@pytest.mark.parametrize("kind", SOFT)
def test_class_indices_are_one_hot_probabilities(kind):
    logits, y = batch()
    torch.testing.assert_close(kind()(logits, y), kind()(logits, F.one_hot(y, CLASSES).double()))


def test_focal_loss_is_its_formula():
    logits, y = batch()
    p = torch.softmax(logits, 1)[torch.arange(ROWS), y]
    torch.testing.assert_close(losses.focal_loss(logits, y, 2.5, reduction="none"), -((1 - p) ** 2.5) * p.log())
    gamma = torch.where(p < 0.2, 5.0, 3.0)
    expected = (-((1 - p) ** gamma) * p.log()).mean()
    torch.testing.assert_close(losses.focal_loss(logits, y, losses.flsd53), expected)


@pytest.mark.parametrize(("p", "gamma"), [(0.2, 5), (0.25, 3)])
def test_gammas_of_flsd53_meet_the_gradient_of_cross_entropy(p, gamma):
    """Mukhoti et al. 2020, Proposition 1: (1-p)^γ - γ p (1-p)^(γ-1) log p is the ratio of the gradients."""
    logits = torch.tensor([[np.log(p), np.log(1 - p)]], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0])
    (focal,) = torch.autograd.grad(losses.focal_loss(logits, y, float(gamma)), logits)
    (plain,) = torch.autograd.grad(F.cross_entropy(logits, y), logits)
    ratio = (focal / plain)[0, 0].item()
    assert ratio == pytest.approx((1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * np.log(p))
    assert ratio == pytest.approx(1, abs=0.02)


def test_entropy_and_smoothing_are_their_formulas():
    logits, y = batch()
    p = torch.softmax(logits, 1)
    torch.testing.assert_close(losses.entropy(logits), -(p * p.log()).sum(1))
    torch.testing.assert_close(losses.entropy(torch.zeros(2, 7)), torch.full((2,), np.log(7)).float())
    expected = F.cross_entropy(logits, y) + 0.2 * (p * p.log()).sum(1).mean()
    torch.testing.assert_close(losses.entropy_regularized_loss(logits, y, 0.2), expected)
    q = 0.9 * F.one_hot(y, CLASSES) + 0.1 / CLASSES
    torch.testing.assert_close(losses.label_smoothing_loss(logits, y, 0.1), -(q * p.log()).sum(1).mean())


@pytest.mark.parametrize("weighted", [False, True])
def test_mmce_is_the_double_sum_of_the_paper(weighted):
    logits, y = batch(30)
    p = torch.softmax(logits, 1).numpy()
    r, c = p.max(1), (p.argmax(1) == y.numpy()).astype(float)
    n, m = c.sum(), len(c)
    total = 0.0
    for i in range(m):
        for j in range(m):
            k = np.exp(-abs(r[i] - r[j]) / 0.4)
            if not weighted:
                total += (c[i] - r[i]) * (c[j] - r[j]) * k / m**2
            elif c[i] == c[j] == 0:
                total += r[i] * r[j] * k / (m - n) ** 2
            elif c[i] == c[j] == 1:
                total += (1 - r[i]) * (1 - r[j]) * k / n**2
            elif c[i] == 1:
                total -= 2 * (1 - r[i]) * r[j] * k / ((m - n) * n)
    assert losses.mmce(logits, y, weighted=weighted).item() == pytest.approx(np.sqrt(total))


def test_cold_soft_bins_are_the_binned_error():
    logits, y = batch(400)
    p = torch.softmax(logits, 1).numpy()
    for norm in (1, 2):
        cold = losses.soft_binned_ece(logits, y, 15, 1e-7, norm).item()
        assert cold == pytest.approx(ece(y.numpy(), p, norm=norm), abs=1e-4)
    one_bin = losses.soft_binned_ece(logits, y, 1, norm=1).item()
    assert one_bin == pytest.approx(abs((p.argmax(1) == y.numpy()).mean() - p.max(1).mean()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
def test_sure_tied_and_masked_rows_have_finite_gradients(loss, dtype):
    rows = [[1e4, 0.0, -1e4, 0.0], [0.0] * 4, [800.0, 800.0, 0.0, 0.0], [3.0, -torch.inf, 2.0, 1.0]]
    logits = torch.tensor(rows, dtype=dtype, requires_grad=True)
    masked = not isinstance(loss, losses.LabelSmoothingLoss)  # smoothing asks every class for some mass
    z = logits if masked else logits[:3]
    value = loss(z, torch.zeros(len(z), dtype=torch.long))
    value.backward()
    assert value.dtype == dtype
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("penalty", [losses.mmce, losses.soft_binned_ece])
def test_a_penalty_that_is_zero_has_a_gradient_of_zero(penalty):
    logits = torch.tensor([[200.0, -200.0]] * 5, requires_grad=True)
    value = penalty(logits, torch.zeros(5, dtype=torch.long))
    value.backward()
    assert value.item() == 0
    assert (logits.grad == 0).all()
    ignored = penalty(logits, torch.full((5,), -100))
    assert ignored.item() == 0


def test_mixup_mixes_inputs_and_targets_alike():
    x, y = torch.randn(50, 3, dtype=torch.float64), torch.arange(50) % 4
    mixed, q = losses.mixup(x, y, 4, 1.0, torch.Generator().manual_seed(1))
    again, _ = losses.mixup(x, y, 4, 1.0, torch.Generator().manual_seed(1))
    assert (mixed == again).all()
    torch.testing.assert_close(q.sum(1), torch.ones(50).double())
    share = float(q[torch.arange(50), y].min())  # rows whose partner has another class keep λ alone
    partner = (mixed - share * x) / (1 - share)
    distance = (partner[:, None] - x[None]).norm(dim=2)
    assert distance.min(1).values.max() < 1e-9
    one_hot = F.one_hot(y, 4).double()
    torch.testing.assert_close(q, share * one_hot + (1 - share) * one_hot[distance.argmin(1)])
    shares = [float(losses.mixup(x, y, 4, 0.2)[1].max(1).values.min()) for _ in range(60)]
    assert max(shares) > 0.9  # a small α leaves most batches nearly as they are
    assert losses.FocalLoss()(torch.randn(50, 4), q).isfinite()


@pytest.mark.parametrize(
    "make",
    [
        lambda: losses.FocalLoss(-1.0),
        lambda: losses.FocalLoss("flsd"),
        lambda: losses.FocalLoss(reduction="average"),
        lambda: losses.EntropyRegularizedLoss(float("nan")),
        lambda: losses.LabelSmoothingLoss(1.5),
        lambda: losses.MMCELoss(width=0.0),
        lambda: losses.SoftBinnedECELoss(norm=3),
        lambda: losses.mixup(torch.zeros(3, 2), torch.zeros(3, dtype=torch.long), 4, alpha=0.0),
        lambda: losses.mixup(torch.zeros(3, 2), torch.zeros(2, dtype=torch.long), 4),
        lambda: losses.focal_loss(torch.zeros(3, 2), torch.zeros(4, dtype=torch.long)),
        lambda: losses.mmce(torch.zeros(3, 2), torch.full((3, 2), 0.5)),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(InvalidInput):
        make()


def refused(argument, call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert argument in caught.value.what


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
def test_a_batch_that_does_not_fit_is_refused_by_name(loss):
    logits, y = batch()
    for bad in (logits.numpy(), logits.long(), torch.tensor(1.0), logits[:, :0]):
        refused("logits", lambda bad=bad: loss(bad, y))
    for bad in (y.numpy(), y.int(), y.bool(), y[:5], y[:, None], y + CLASSES, y - CLASSES, 2.0 * y):
        refused("targets", lambda bad=bad: loss(logits, bad))
    refused("targets", lambda: loss(logits, torch.full_like(logits, 1.5)))
    refused("targets", lambda: loss(logits, torch.full_like(logits, torch.nan)))
    refused("targets", lambda: loss(logits, torch.ones_like(logits)))  # probabilities of classes sum to one
    refused("targets", lambda: loss(logits[:, 0], y))  # one logit a row is (n, 1)
    refused("targets", lambda: loss(logits[:, 0], (y > 0).to(logits.dtype)))
    kind = type(loss)
    for bad in ([1.0] * CLASSES, torch.ones(CLASSES, 1), -torch.ones(CLASSES), torch.ones(CLASSES, dtype=torch.bool)):
        refused("weight", lambda bad=bad: kind(weight=bad))
    refused("weight", lambda: kind(weight=torch.ones(CLASSES + 1))(logits, y))
    refused("ignore_index", lambda: kind(ignore_index=None)(logits, y))
    if kind in SOFT:
        refused("ignore_index", lambda: kind(ignore_index=1)(logits, torch.softmax(logits, 1)))


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
def test_weights_and_probabilities_of_another_precision_serve(loss):
    logits, y = batch()
    weight = torch.tensor([1, 2, 0, 3])
    torch.testing.assert_close(type(loss)(weight=weight)(logits, y), type(loss)(weight=weight.double())(logits, y))
    if type(loss) in SOFT:
        q = torch.softmax(batch(seed=1)[0], 1)
        torch.testing.assert_close(loss(logits.float(), q), loss(logits.float(), q.float()))


def test_what_mixup_and_functions_cannot_take_is_refused_by_name():
    x, y = torch.randn(6, 3), torch.arange(6) % 4
    for bad in (y.numpy(), y.int(), y.float(), y[:4], y + 1, y - 1):
        refused("targets", lambda bad=bad: losses.mixup(x, bad, 4))
    for bad in (x.numpy(), torch.tensor(1.0)):
        refused("inputs", lambda bad=bad: losses.mixup(bad, y, 4))
    refused("n_classes", lambda: losses.mixup(x, y, 4.0))
    refused("generator", lambda: losses.mixup(x, y, 4, generator=3))
    refused("logits", lambda: losses.entropy(torch.ones(3, dtype=torch.long)))
    refused("gamma", lambda: losses.focal_loss(x, y % 3, lambda p: p[:2]))


def test_values_elsewhere_than_on_the_cpu_are_not_looked_at():
    """A look would wait for the device; tensors on "meta" have no values to look at, and fail if asked."""
    logits, y = torch.zeros(5, 3, device="meta"), torch.zeros(5, dtype=torch.long, device="meta")
    weight = torch.ones(3, device="meta")
    for kind in SOFT:
        assert kind(weight=weight)(logits, y).shape == ()
    refused("weight", lambda: losses.FocalLoss(weight=weight[:2])(logits, y))


def test_a_compiled_step_is_one_graph():
    logits, y = batch()
    for kind in SOFT:
        loss = kind(weight=torch.ones(CLASSES))
        torch.testing.assert_close(torch.compile(loss, backend="eager", fullgraph=True)(logits, y), loss(logits, y))


@pytest.mark.parametrize("name", ["focal", "flsd53", "entropy", "smoothing", "mmce", "mmce weighted", "soft-binned"])
def test_a_small_network_learns_digits(name):
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
    torch.manual_seed(0)
    net = torch.nn.Linear(64, 10)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        DEFAULTS[name](net(x[:1200]), y[:1200]).backward()
        optimizer.step()
    with torch.no_grad():
        assert (net(x[1200:]).argmax(1) == y[1200:]).float().mean() > 0.85


def test_a_missing_torch_names_the_extra(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("calibrant.torch.losses")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"calibrant\[torch\]"):
        importlib.import_module("calibrant.torch.losses")
