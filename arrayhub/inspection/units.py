"""Amounts in the unit in which people read them."""

_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def of_bytes(nbytes: int) -> str:
    """Return so many bytes in the largest unit of which there is one, with three digits."""
    power = min(max(nbytes.bit_length() - 1, 0) // 10, len(_BYTES) - 1)
    if power == 0:
        return "1 byte" if nbytes == 1 else f"{nbytes} bytes"
    return f"{nbytes / (1 << 10 * power):.4g} {_BYTES[power]}"


def of_seconds(seconds: float) -> str:
    """Return a time in seconds, milliseconds, or else microseconds."""
    size, unit = next((row for row in _SECONDS if seconds >= row[0]), _SECONDS[-1])
    return f"{seconds / size:.3g} {unit}"
