"""A policy behind a pipe: one JSON event a line in, one answer a line out, for programs in any language.

    in                                       out
    {}                                       {"arm": "b", "certified": [], "rounds": 0, "uncertain_rounds": 0}
    {"arm": "b", "reward": 0.7}              the same, for the arm to play next
    {"event": "certificates"}                {"certificates": [{"arm": "a", "pulls": 0, ...}, ...]}
    anything else                            {"error": "line 3: ..."}, and nothing has changed

A reward counts once its answer is there: the state file is replaced before the answer is written.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from upheld.bandits.policy import RulePolicy, UncertainUCB

SCHEMA = "upheld.bandits.state/1"


class Refused(ValueError):
    """What is wrong with an event."""


def serve(policy: RulePolicy, lines: Iterable[str], *, state: Path | None = None, unit: bool = True) -> Iterator[str]:
    """Answer events with arms.

    Parameters
    ----------
    policy : learns from the rewards
    lines : JSON objects, one a line; blank lines are skipped
    state : file to go on from if it is there, and to keep up to date
    unit : whether rewards outside [0, 1] are refused, as sigma = 1/2 needs it

    Yields
    ------
    One JSON object an event.

    Raises
    ------
    ValueError
        If the state file cannot be read or kept, or was saved by another policy.
    """
    labels = {str(label): label for label in policy.arms}
    if state is not None and not state.parent.is_dir():
        raise ValueError(f"{state} cannot be kept there: {state.parent} is no folder; name another with --state")
    if state is not None and state.exists():
        _load(policy, state)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            answer = _answer(policy, _event(line), labels, unit)
        except Refused as refused:
            answer = {"error": f"line {number}: {refused}"}
        else:
            if state is not None:
                _save(policy, state)
        yield json.dumps(answer, allow_nan=False, default=str)


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        raise Refused('this is no JSON; send an object such as {"arm": "a", "reward": 1}') from None
    if not isinstance(event, dict):
        raise Refused('an event is a JSON object, such as {"arm": "a", "reward": 1}')
    if unknown := sorted(event.keys() - {"event", "arm", "reward"}):
        raise Refused(f"an event has no {unknown[0]!r}; it has arm and reward, or event")
    return event


def _answer(policy: RulePolicy, event: dict[str, Any], labels: dict[str, Any], unit: bool) -> dict[str, Any]:
    wanted = event.get("event", "reward" if event.keys() & {"arm", "reward"} else "select")
    match wanted:
        case "reward":
            policy.update(*_reward(event, labels, unit))
        case "certificates":
            return {"certificates": _certificates(policy)}
        case "select":
            pass
        case _:
            raise Refused(f"no event is called {wanted!r}; there are select, reward and certificates")
    return {
        "arm": _plain(policy.select()),
        "certified": [_plain(arm) for arm in getattr(policy, "certified_", ())],
        "rounds": policy.rounds_,
        "uncertain_rounds": policy.uncertain_rounds_,
    }


def _reward(event: dict[str, Any], labels: dict[str, Any], unit: bool) -> tuple[Any, float]:
    if missing := [key for key in ("arm", "reward") if key not in event]:
        raise Refused(f"a reward event needs {missing[0]!r}")
    arm, reward = event["arm"], event["reward"]
    if str(arm) not in labels:
        raise Refused(f"there is no arm {arm!r}; there are {', '.join(labels)}")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        raise Refused(f"the reward {reward!r} is not a finite number")
    if unit and not 0 <= reward <= 1:
        raise Refused(f"the reward {reward:g} lies outside [0, 1], for which sigma is 1/2; start with --sigma")
    return labels[str(arm)], float(reward)


def _certificates(policy: RulePolicy) -> list[dict[str, Any]]:
    if not isinstance(policy, UncertainUCB):
        raise Refused(f"{policy.rule_.name} certifies nothing")
    return [{str(key): _plain(value) for key, value in row.items()} for row in policy.certificates().to_dict("records")]


def _plain(value: Any) -> Any:
    """As JSON knows it: no scalar of NumPy, null for what is not finite."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _load(policy: RulePolicy, path: Path) -> None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        saved = document["state"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is no state of a policy ({error}); name another file with --state") from error
    try:
        policy.load_state_dict(saved)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}; name another file with --state") from error


def _save(policy: RulePolicy, path: Path) -> None:
    unfinished = path.with_name(f".unfinished.{path.name}")
    try:
        document = {"schema": SCHEMA, "state": policy.state_dict()}
        unfinished.write_text(json.dumps(document, default=_plain), encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror or error}); name a file in a folder of yours with --state"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
