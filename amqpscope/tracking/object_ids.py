"""Objects that several places refer to, each dumped once, by number."""

__all__ = ["ObjectIds"]


class ObjectIds:
    """Gives each object a number, in the order in which they were first asked for.

    objects: all of them; a caller that goes through the list may ask for more meanwhile.
    """

    def __init__(self) -> None:
        self.objects: list[object] = []
        self._numbers: dict[int, int] = {}

    def number(self, thing: object) -> int:
        """The object's number."""
        number = self._numbers.get(id(thing), -1)
        if number < 0:
            number = len(self.objects)
            self._numbers[id(thing)] = number
            self.objects.append(thing)
        return number
