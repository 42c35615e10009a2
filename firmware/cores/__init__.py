"""Programs of several cores."""
