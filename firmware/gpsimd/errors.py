"""What a user of the firmware tools may meet: one sentence with the file, the value and the rule."""

__all__ = ["FirmwareError"]


class FirmwareError(Exception):
    """Something about firmware that the user can put right."""
