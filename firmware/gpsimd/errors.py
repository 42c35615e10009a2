"""What a user of the firmware tools may meet: one sentence with the file, the value and the rule."""

__all__ = ["FirmwareError"]


class FirmwareError(Exception):
    """Something about firmware that the user can put right. `said` is what the compiler said before, or nothing."""

    def __init__(self, sentence: str, said: str = "") -> None:
        super().__init__(sentence)
        self.said = said
