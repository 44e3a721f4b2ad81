from __future__ import annotations

import math

import pytest
import torch

from upheld.diffusion.paths import affine_path
from upheld.flows.likelihoods import (
    ClassifierLikelihood,
    ClipLikelihood,
    Decoded,
    LinearGaussian,
    Product,
    Reward,
    blur,
    checked_log_prob,
    downsample,
    is_differentiable,
    mask,
)
from upheld.flows.lookahead import CalibratedLookAhead, GivenLookAhead, PointLookAhead, View, wants_draws

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).double()
A = torch.randn(2, 4, generator=torch.Generator().manual_seed(1)).double()
Y = torch.tensor([0.3, -1.0]).double()


class Captioner:
    """A model of the interface: pictures are vectors, the text is its length."""

    logit_scale = 2.0

    def encode_image(self, x):
        return x[:, :2]

    def encode_text(self, texts):
        return torch.tensor(
            [[1.0, 0.0] if text == "east" else [0.0, 1.0] if text == "north" else [-1.0, 0.0] for text in texts]
        )


def test_a_measurement_is_torchs_own_normal():
    seen = LinearGaussian(A, Y, torch.tensor([0.5, 2.0]))
    normal = torch.distributions.Normal(X @ A.T, torch.tensor([0.5, 2.0]).double())
    torch.testing.assert_close(seen.log_prob(X), normal.log_prob(Y).sum(1))


def test_a_blurred_measurement_is_torchs_own_multivariate_normal():
    seen = LinearGaussian(A, Y, 0.5)
    cov = 0.25 * torch.eye(2).double() + 0.7 * A @ A.T
    law = torch.distributions.MultivariateNormal(X @ A.T, covariance_matrix=cov)
    torch.testing.assert_close(seen.log_prob_blurred(X, 0.7), law.log_prob(Y))
    torch.testing.assert_close(seen.log_prob_blurred(X, 0.0), seen.log_prob(X))


@pytest.mark.parametrize(
    "operator", [mask(torch.rand(2, 4, 4) < 0.4), downsample(2), blur(torch.tensor([[0.0, 0.1, 0.0], [0.2, 0.4, 0.2], [0.0, 0.1, 0.0]]))],
    ids=["mask", "downsample", "blur"],
)  # fmt: skip
def test_an_operator_and_its_matrix_are_the_same(operator):
    x = torch.randn(3, 2, 4, 4).double()
    y = operator(x)[0]
    seen = LinearGaussian(operator, y, 0.1)
    as_matrix = LinearGaussian(seen.matrix(32, (2, 4, 4)), y, 0.1)
    torch.testing.assert_close(seen.log_prob(x), as_matrix.log_prob(x))
    torch.testing.assert_close(seen.log_prob_blurred(x, 0.3), as_matrix.log_prob_blurred(x, 0.3))
    assert int(seen.log_prob(x).argmax()) == 0


def test_operators_do_what_their_names_say():
    picture = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert downsample(2)(picture)[0].tolist() == [2.5, 4.5, 10.5, 12.5]
    assert mask(torch.tensor([True, False] * 8).reshape(1, 4, 4))(picture)[0].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    one = torch.zeros(1, 1, 3, 3)
    one[0, 0, 1, 1] = 1
    kernel = torch.arange(9.0).reshape(3, 3)
    assert blur(kernel)(one)[0].tolist() == kernel.flip(0, 1).flatten().tolist()


def test_a_classifier_and_its_temper():
    net = torch.nn.Linear(4, 3).double()
    torch.testing.assert_close(ClassifierLikelihood(net, 2).log_prob(X), net(X).softmax(1)[:, 2].log())
    torch.testing.assert_close(
        ClassifierLikelihood(net, 2, temperature=2.0).log_prob_tempered(X, 3.0), (net(X) / 6).softmax(1)[:, 2].log()
    )


def test_a_caption_against_others():
    seen = ClipLikelihood(Captioner(), "east", ["north", "west"])
    logits = torch.tensor([2.0, 0.0, -2.0])
    assert float(seen.log_prob(torch.tensor([[3.0, 0.0]]))) == pytest.approx(float(logits.log_softmax(0)[0]))
    with pytest.raises(ValueError, match="give at least one of negative_prompts"):
        ClipLikelihood(Captioner(), "east", [])


def test_products_and_decoded_states():
    both = Product([LinearGaussian(A, Y, 0.5), Reward(lambda x: x[:, 0], 2.0)])
    torch.testing.assert_close(both.log_prob(X), both.parts[0].log_prob(X) + 2 * X[:, 0])
    assert is_differentiable(both)
    assert not is_differentiable(Product([both, Reward(lambda x: x[:, 0], differentiable=False)]))
    decoded = Decoded(Reward(lambda x: x.sum(1)), lambda x: 2 * x)
    torch.testing.assert_close(decoded.log_prob(X), 2 * X.sum(1))


def view(x: torch.Tensor, t: float, noise: torch.Tensor | None = None) -> View:
    return View(x, t, x, affine_path("linear"), noise)


def test_the_calibrated_look_ahead_of_a_measurement_averages_over_the_spread():
    """Against the same by drawing: mean of l(x1_hat + r xi)."""
    seen, look = LinearGaussian(A, Y, 1.0), CalibratedLookAhead(2.0)
    spread = look.spread(affine_path("linear"), 0.4)
    assert spread == pytest.approx(2 * 0.36 / (2 * 0.16 + 0.36))
    xi = torch.randn(200_000, 4, generator=torch.Generator().manual_seed(3)).double()
    drawn = torch.logsumexp(seen.log_prob(X[:1] + spread**0.5 * xi), 0) - math.log(len(xi))
    assert float(look.log_twist(seen, view(X[:1], 0.4))) == pytest.approx(float(drawn), abs=0.02)


def test_look_aheads_of_each_kind():
    net = torch.nn.Linear(4, 3).double()
    judged, reward = ClassifierLikelihood(net, 1), Reward(lambda x: x.sum(1))
    spread = CalibratedLookAhead(2.0, kappa=3.0).spread(affine_path("linear"), 0.4)
    torch.testing.assert_close(
        CalibratedLookAhead(2.0, kappa=3.0).log_twist(judged, view(X, 0.4)),
        judged.log_prob_tempered(X, 1 + 3 * spread / 2),
    )
    noise = torch.randn(3, 5, 4).double()
    by_hand = torch.stack([(X + spread**0.5 * one).sum(1) for one in noise]).logsumexp(0) - math.log(3)
    torch.testing.assert_close(CalibratedLookAhead(2.0, draws=3).log_twist(reward, view(X, 0.4, noise)), by_hand)
    torch.testing.assert_close(PointLookAhead(0.5).log_twist(reward, view(X, 0.4)), (X.sum(1).exp() + 0.5).log())
    torch.testing.assert_close(
        GivenLookAhead(lambda x, t, end: t * x[:, 0]).log_twist(reward, view(X, 0.4)), 0.4 * X[:, 0]
    )
    both = Product([judged, LinearGaussian(A, Y, 1.0)])
    torch.testing.assert_close(
        CalibratedLookAhead(2.0).log_twist(both, view(X, 0.4)),
        judged.log_prob(X) + both.parts[1].log_prob_blurred(X, spread),
    )
    assert [wants_draws(one) for one in (judged, reward, both, Product([both, reward]))] == [False, True, False, True]


def test_an_end_point_at_the_data_is_not_spread():
    assert CalibratedLookAhead(2.0).spread(affine_path("linear"), 1.0) == 0
    assert CalibratedLookAhead(2.0).spread(affine_path("linear"), 0.0) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearGaussian(A, torch.zeros(3), 1.0), r"A has shape \(2, 4\) and y 3 measurements"),
        (lambda: LinearGaussian(A, torch.zeros(2, 1), 1.0), r"y has shape \(2, 1\)"),
        (lambda: LinearGaussian(A, Y, 0.0), "sigma must be above 0"),
        (lambda: LinearGaussian(A, Y, 1.0).log_prob(X[:, :3]), "A takes 4 numbers and an example has 3"),
        (lambda: LinearGaussian(lambda x: x, torch.zeros(10_000), 1.0).matrix(10_000), "too large to calibrate"),
        (lambda: ClassifierLikelihood(torch.nn.Linear(4, 3).double(), 3).log_prob(X), "target 3 is no class; the classifier has 0 to 2"),
        (lambda: ClassifierLikelihood(lambda x: x[:, 0], 0).log_prob(X), r"gives shape \(5,\) for 5 examples"),
        (lambda: ClassifierLikelihood(lambda x: x, 0, temperature=0.0), "a temperature of 0.0 is none"),
        (lambda: Product([]), "a product of no likelihoods"),
        (lambda: mask(torch.zeros(4, dtype=torch.bool)), "the mask keeps nothing"),
        (lambda: blur(torch.ones(2, 3)), r"a kernel of shape \(2, 3\) has no middle"),
        (lambda: checked_log_prob(lambda x: x, X), r"log_prob of 5 examples gives \(5, 4\)"),
        (lambda: checked_log_prob(lambda x: None, X), "log_prob of 5 examples gives NoneType"),
        (lambda: checked_log_prob(lambda x: x[:, 0] + math.inf, X), r"NaN or \+inf for 5 of 5 examples"),
    ],
)  # fmt: skip
def test_what_is_no_likelihood_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
