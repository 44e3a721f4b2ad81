"""Environments: their means, their laws, and the gymnasium interface."""

import numpy as np
import pytest
from scipy import stats

from upheld.bandits import environments as env

MEANS = [0.3, 0.55, 0.8]


def sample(bandit, arm, size=40_000, seed=0):
    keys = bandit.table_of_run(seed)._keys[arm]
    return env.rewards(bandit, np.full(size, keys), np.arange(1, size + 1), np.full(size, arm))


@pytest.mark.parametrize("law", list(env.LAWS))
def test_rewards_have_the_declared_means(law):
    bandit = env.with_law(law, MEANS, 0.5, name=law)
    for arm, mean in enumerate(MEANS):
        x = sample(bandit, arm)
        assert abs(x.mean() - mean) < 4.5 * x.std() / np.sqrt(x.size)
        if bandit.bounded:
            assert 0 <= x.min() <= x.max() <= 1


def test_gaussian_and_beta_follow_their_laws():
    assert stats.kstest(sample(env.GaussianBandit(MEANS, 0.5, sd=0.7), 1), stats.norm(0.55, 0.7).cdf).pvalue > 1e-3
    x = sample(env.BetaBandit(MEANS, 0.5, concentration=3.0), 0)
    assert stats.kstest(x, stats.beta(0.9, 2.1).cdf).pvalue > 1e-3


def test_beta_table_keeps_its_mean_exactly():
    bandit = env.BetaBandit(MEANS, 0.5)
    for arm, cells in enumerate(bandit.table.reshape(3, -1)):
        assert cells.mean() == pytest.approx(MEANS[arm], abs=1e-12)


def test_rare_rewards_have_the_variance_but_not_the_tails_they_pretend():
    bandit = env.RareBandit(MEANS, 0.5, sd=0.5, p=0.02)
    p, high, low = bandit.params[:, 0]
    assert p * high + (1 - p) * low == pytest.approx(0.3)
    assert p * (1 - p) * (high - low) ** 2 == pytest.approx(0.25)
    # Kearns-Saul: the moment generating function meets exp(proxy^2 t^2 / 2) and never exceeds it
    t = np.linspace(-20, 20, 4001)
    log_mgf = np.log(p * np.exp(t * (high - 0.3)) + (1 - p) * np.exp(t * (low - 0.3)))
    slack = bandit.proxy**2 * t**2 / 2 - log_mgf
    assert slack.min() > -1e-9
    assert (log_mgf > bandit.sigma**2 * t**2 / 2 + 0.1).any()


def test_replay_bandit_resamples_the_logged_rewards():
    bandit = env.ReplayBandit({"a": [0.0, 1.0, 1.0, 1.0], "b": [0.25]}, 0.5)
    assert bandit.labels == ("a", "b")
    assert list(bandit.means) == [0.75, 0.25]
    assert abs(sample(bandit, 0).mean() - 0.75) < 0.01
    assert set(sample(bandit, 1, 100)) == {0.25}


def test_regret_gaps():
    bandit = env.GaussianBandit([0.7, 0.55, 0.3], 0.5)
    assert bandit.gaps == pytest.approx([0, 0.15, 0.4])
    assert bandit.costs["regret"] == pytest.approx([0, 0.15, 0.4])
    assert bandit.costs["regret_threshold"] == pytest.approx([0, 0, 0.2])
    assert bandit.costs["regret_refined"] == pytest.approx([0, 0, 0.4])
    hopeless = env.GaussianBandit([0.4, 0.3], 0.5)
    assert hopeless.costs["regret_refined"] == pytest.approx([0, 0.1])
    assert hopeless.costs["regret_threshold"] == pytest.approx([0, 0.1])


def test_rewards_do_not_depend_on_the_order_of_pulls():
    bandit = env.GaussianBandit(MEANS, 0.5)
    first, second = bandit.table_of_run(3, 5), bandit.table_of_run(3, 5)
    a = [first.pull(0), first.pull(0), first.pull(2)]
    b = [second.pull(2), second.pull(0), second.pull(0)]
    assert a == [b[1], b[2], b[0]]
    assert first.pull(1) != bandit.table_of_run(3, 6).pull(1)


def test_gymnasium_accepts_the_environment():
    pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    bandit = env.BernoulliBandit([0.2, 0.9], 0.5)
    check_env(env.BanditEnv(bandit, horizon=20), skip_render_check=True)


def test_gymnasium_episode():
    pytest.importorskip("gymnasium")
    game = env.BanditEnv(env.BernoulliBandit([0.0, 1.0], 0.5), horizon=3)
    game.reset(seed=1)
    steps = [game.step(a) for a in (0, 1, 1)]
    assert [s[1] for s in steps] == [0.0, 1.0, 1.0]
    assert [s[3] for s in steps] == [False, False, True]
    assert steps[0][4] == {"regret": 1.0, "regret_threshold": 0.5, "regret_refined": 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: env.GaussianBandit([], 0.5), "means must be a non-empty list"),
        (lambda: env.GaussianBandit([[0.1]], 0.5), r"got shape \(1, 1\)"),
        (lambda: env.GaussianBandit([0.1, np.nan], 0.5), "mean of arm 1 is not finite"),
        (lambda: env.GaussianBandit([0.1], 0.5, sd=0), "sd must be a positive number, got 0"),
        (lambda: env.GaussianBandit([0.1], np.nan), "the threshold of gaussian is not a number"),
        (lambda: env.BernoulliBandit([0.1, 1.2], 0.5), "mean of arm 1 is 1.2, but rewards in"),
        (lambda: env.BetaBandit([0.0, 0.5], 0.5), "strictly between 0 and 1; use BernoulliBandit"),
        (lambda: env.GaussianBandit([0.1, 0.2], 0.5, labels=["a"]), "has 2 arms and 1 labels"),
        (lambda: env.RareBandit([0.1], 0.5, p=0.7), "p must lie strictly between 0 and 1/2, got 0.7"),
        (lambda: env.ReplayBandit({"a": [1.0]}, 0.5), "rewards of at least 2 arms, got 1"),
        (lambda: env.ReplayBandit({"a": [1.0], "b": []}, 0.5), "arm 'b' needs a non-empty list"),
        (lambda: env.ReplayBandit({"a": [1.0], "b": [3.0]}, 0.5), "outside .0, 1., so sigma is not 1/2"),
        (lambda: env.with_law("cauchy", [0.1], 0.5, name="x"), "law must be one of gaussian, bernoulli, beta, rare"),
        (lambda: env.GaussianBandit([0.1], 0.5).table_of_run(0).pull(1), r"arm 1 is not one of 0 \.\.\. 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
