"""Text that every store can keep."""


def is_storable(text: str) -> bool:
    """False for text with NUL or lone surrogates. What can't be stored can't be found either."""
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
