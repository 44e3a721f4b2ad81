"""What every claim's picture has to be, and which claims have one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from matplotlib.figure import Figure

from upheld.claims import Claim
from upheld.report.content import drawn

WIDEST = 5.2  # inches: its text stays readable when the figure is 380 pixels wide


def pictured(claims: Sequence[Claim], pictures: Collection[str]) -> list[Claim]:
    """Claims that have a picture; fails where a picture has no claim."""
    assert set(pictures) <= {claim.id for claim in claims}
    return [claim for claim in claims if claim.id in pictures]


def claim_named(claims: Sequence[Claim], name: str) -> Claim:
    """By its name without the method's."""
    return next(claim for claim in claims if claim.id == f"{claim.method}.{name}")


def check_picture(picture: Any) -> None:
    assert isinstance(picture, Figure)
    assert picture.get_size_inches()[0] <= WIDEST
    assert len(drawn(picture, "png")) > 5000
