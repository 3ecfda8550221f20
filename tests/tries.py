"""How many examples a test tries: all by itself and in `make test-all`, three of ten in the gate."""

from __future__ import annotations

from hypothesis import settings

WHOLE = 100
"""What Hypothesis tries where nobody says more."""


def register_profiles() -> None:
    """Make `parlour`, which holds by itself, and `gate` (`--hypothesis-profile=gate`)."""
    # A busy machine is no failure; what must be quick is measured by `bench`.
    settings.register_profile("parlour", deadline=None, max_examples=WHOLE)
    settings.register_profile("gate", deadline=None, max_examples=WHOLE * 3 // 10)
    if settings.get_current_profile_name() == "default":  # else somebody chose
        settings.load_profile("parlour")


def tries(number: int) -> int:
    """As much of a test's own number as the profile wants of a hundred."""
    return max(1, number * (settings.default or settings()).max_examples // WHOLE)
