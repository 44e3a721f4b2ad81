from __future__ import annotations

import pytest
import torch

from upheld.diffusion.training import TrainingPlan, train

PLAN = TrainingPlan(steps=60, learning_rate=0.05, warm_up=0.1, ema=0.9)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(2, 1)


def loss(net: torch.nn.Module, generator: torch.Generator) -> torch.Tensor:
    x = torch.randn(16, 2, generator=generator)
    return ((net(x)[:, 0] - x[:, 0] + 3 * x[:, 1]) ** 2).mean()


def weights(found: torch.nn.Module) -> list[float]:
    return [value for p in found.parameters() for value in p.flatten().tolist()]


def test_it_finds_the_line():
    found = train(network(), loss, TrainingPlan(steps=400, learning_rate=0.05), seed=0)
    assert weights(found.averaged) == pytest.approx([1, -3, 0], abs=0.05)
    assert found.losses[-1] < 0.01 < found.losses[0]


def test_stopped_and_resumed_is_the_same_to_the_last_bit(tmp_path):
    whole = train(network(), loss, PLAN, seed=3)
    checkpoint = tmp_path / "state.pt"
    train(network(), loss, PLAN, seed=3, checkpoint=checkpoint, stop_after=23)
    torch.manual_seed(99)
    resumed = train(torch.nn.Linear(2, 1), loss, PLAN, seed=3, checkpoint=checkpoint)
    assert resumed.losses == whole.losses
    assert weights(resumed.network) == weights(whole.network)
    assert weights(resumed.averaged) == weights(whole.averaged)


def test_a_finished_checkpoint_is_not_trained_again(tmp_path):
    checkpoint = tmp_path / "state.pt"
    first = train(network(), loss, PLAN, seed=3, checkpoint=checkpoint)
    steps: list[int] = []
    again = train(network(), loss, PLAN, seed=3, checkpoint=checkpoint, told=lambda step, value: steps.append(step))
    assert steps == []
    assert weights(again.averaged) == weights(first.averaged)


def test_another_plans_checkpoint_is_refused(tmp_path):
    train(network(), loss, PLAN, seed=3, checkpoint=tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"is a checkpoint of .* and seed 3, not of .* and seed 4; name another file"):
        train(network(), loss, PLAN, seed=4, checkpoint=tmp_path / "state.pt")


def test_rate_rises_then_falls_as_a_cosine():
    plan = TrainingPlan(steps=110, learning_rate=1.0, warm_up=10 / 110)
    assert [plan.rate(0), plan.rate(9), plan.rate(10), plan.rate(60)] == pytest.approx([0.1, 1.0, 1.0, 0.5])
    assert plan.rate(109) < 0.001


def test_the_average_forgets_where_it_began():
    """At step i the weight of the past is (1 + i)/(10 + i): after one step of rate so small that nothing moves, nothing moved."""
    plan = TrainingPlan(steps=1, learning_rate=1.0, clip=1e9)
    start = weights(network())
    found = train(network(), loss, plan, seed=0)
    moved = [start_ + 0.9 * (now - start_) for start_, now in zip(start, weights(found.network), strict=True)]
    assert weights(found.averaged) == pytest.approx(moved, rel=1e-5)


def test_a_loss_that_is_not_finite_says_where():
    def broken(net, generator):
        return loss(net, generator) * float("nan")

    with pytest.raises(FloatingPointError, match=r"the loss is nan at step 0; lower learning_rate \(0.05\)"):
        train(network(), broken, PLAN, seed=0)


@pytest.mark.parametrize(("name", "value"), [("steps", 0), ("learning_rate", 0.0), ("clip", 0.0), ("ema", 1.0)])
def test_plans_that_are_none_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        TrainingPlan(**{"steps": 10, name: value})
