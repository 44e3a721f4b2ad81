"""A bandit as a gymnasium environment, for reinforcement-learning code that expects one."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import gymnasium
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError('BanditEnv needs gymnasium; pip install "upheld[bandits]"') from missing

from upheld.bandits.environments import Bandit, RewardTable


class BanditEnv(gymnasium.Env[np.int64, np.int64]):
    """One state, K actions; the episode is truncated after `horizon` pulls.

    The observation is always 0. `info` holds the regret of the pull in its three forms, ``regret``,
    ``regret_threshold`` and ``regret_refined``.

    Parameters
    ----------
    bandit : the arms
    horizon : pulls an episode

    Examples
    --------
    >>> from upheld.bandits.environments import BernoulliBandit
    >>> env = BanditEnv(BernoulliBandit([0.0, 1.0], threshold=0.5), horizon=2)
    >>> observation, info = env.reset(seed=0)
    >>> env.step(1)[1:4]
    (1.0, False, False)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - gymnasium's own declaration

    def __init__(self, bandit: Bandit, horizon: int = 1000) -> None:
        if horizon < 1:
            raise ValueError(f"horizon must be at least 1 pull, got {horizon}")
        self.bandit = bandit
        self.horizon = horizon
        self.action_space = gymnasium.spaces.Discrete(bandit.n_arms)
        self.observation_space = gymnasium.spaces.Discrete(1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        super().reset(seed=seed)
        self._table = RewardTable(self.bandit, int(self.np_random.integers(2**63)))
        self._pulls = 0
        return np.int64(0), {}

    def step(self, action: np.int64 | int) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        arm = int(action)
        reward = self._table.pull(arm)
        self._pulls += 1
        info = {name: float(cost[arm]) for name, cost in self.bandit.costs.items()}
        return np.int64(0), reward, False, self._pulls >= self.horizon, info
