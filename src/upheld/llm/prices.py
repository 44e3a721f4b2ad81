"""What an answer costs, from the user's price list."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

Prices = tuple[float, float] | str | os.PathLike[str]
"""Per million tokens (read, written), in any currency; or a JSON file ``{"<model>": [read, written]}``."""


def prices_of(model: str, prices: Prices | None) -> tuple[float, float] | None:
    """Prices of one model per million tokens read and written.

    Raises
    ------
    ValueError
        If the file cannot be read, does not list the model, or a price is no number of at least 0.
    """
    if prices is None:
        return None
    where = "prices"
    found: object = prices
    if isinstance(prices, str | os.PathLike):
        where = f"the price list {os.fspath(prices)}"
        try:
            listed = json.loads(Path(prices).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{where} cannot be read: {error.strerror or error}; name a JSON file") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f'{where} is no JSON ({error}); write {{"{model}": [1.5, 6.0]}}') from error
        if not isinstance(listed, dict) or model not in listed:
            raise ValueError(
                f'{where} does not list {model!r}; add "{model}": [price per million read, per million written]'
            )
        found = listed[model]
    if not isinstance(found, list | tuple) or len(found) != 2 or not all(_is_price(price) for price in found):
        raise ValueError(
            f"{where}: two prices per million tokens (read, written), each at least 0, are needed for {model!r}, got {found!r}"
        )
    return float(found[0]), float(found[1])


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
