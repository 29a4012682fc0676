"""Format amounts of bytes and seconds with a suitable unit."""

_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def of_bytes(nbytes: int) -> str:
    """Format `nbytes` in the largest binary unit that does not exceed `nbytes`, with up to 4 significant digits."""
    power = min(max(nbytes.bit_length() - 1, 0) // 10, len(_BYTES) - 1)
    if power == 0:
        return "1 byte" if nbytes == 1 else f"{nbytes} bytes"
    return f"{nbytes / (1 << 10 * power):.4g} {_BYTES[power]}"


def of_seconds(seconds: float) -> str:
    """Format a time in seconds, milliseconds or microseconds, with up to 3 significant digits."""
    size, unit = next((row for row in _SECONDS if seconds >= row[0]), _SECONDS[-1])
    return f"{seconds / size:.3g} {unit}"
