"""Draw a layout as text, in the notation of the USMArray specification."""

from collections.abc import Iterator

from arrayhub.inspection.pictures.scene import Geometry, Place, Scene, index_text, scenes

_WIDTH = 100  # maximum characters per line
_FEW = 16  # maximum number of elements of an abbreviated array


def draw_text(geometry: Geometry) -> str:
    """Return the drawing for ``Picture.text``."""
    scene = next(scenes(geometry))
    if any(place.omitted for place in scene.places):  # a large array
        scene = next(scenes(geometry, _FEW))
    return "\n".join([*_heading(geometry), *_buffer(scene), *geometry.notes()])


def tuple_text(values: tuple[int, ...]) -> str:
    """Format a tuple as Python does, abbreviated in the middle if it is long."""
    return f"({index_text(values, ', ')}{',' * (len(values) == 1)})"


def _heading(geometry: Geometry) -> Iterator[str]:
    if geometry.dtype is not None:
        yield f"dtype: {short(geometry.dtype)}"
    yield f"nd: {geometry.ndim}"
    yield f"shape: {tuple_text(geometry.shape)}"
    if geometry.strides is not None:
        yield f"strides: {tuple_text(geometry.strides)}"
    if geometry.byte_strides is not None:
        yield f"byte strides: {tuple_text(geometry.byte_strides)}"
    yield f"data: points to &{_buffer_name(geometry)}[{geometry.offset}]"
    if geometry.memory is not None:
        yield f"memory: {geometry.memory}, {geometry.access}"
    if geometry.labels is not None:
        yield f"labels: {geometry.labels}"


def _buffer_name(geometry: Geometry) -> str:
    return "buf_flat" if geometry.unit == "element" else "buf_bytes"


def short(text: str) -> str:
    """Truncate a string, such as the dtype of a record, to 60 characters."""
    return text if len(text) <= 60 else f"{text[:57]}..."


def _buffer(scene: Scene) -> Iterator[str]:
    """Yield lines with the elements of the buffer, and below them lines with their positions."""
    geometry = scene.geometry
    opening = f"{_buffer_name(geometry)} = {{ "
    if not scene.places:
        yield f"{opening}}}"
        return
    formula = _formula(geometry) if geometry.offset == 0 and geometry.count and geometry.ndim else None
    addr = "" if formula else "addr:"
    rows = list(_rows([(_label(place), _address(place, geometry)) for place in scene.places]))
    for number, row in enumerate(rows):
        first, last = number == 0, number == len(rows) - 1
        labels, addresses = (" ".join(line) for line in zip(*row, strict=True))
        yield f"{opening if first else ' ' * len(opening)}{labels}{' }' if last else ''}"
        if first and formula:
            yield formula
        if addresses.strip():
            start = f"{addr:<{len(opening) - 2}}{{ " if first else " " * len(opening)
            yield f"{start}{addresses}{' }' if last else ''}".rstrip()


def _rows(cells: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Pad each label and its address to the same width, add commas, and group them into lines."""
    last_address = max((number for number, (_, address) in enumerate(cells) if address), default=0)
    row: list[tuple[str, str]] = []
    used = 0
    for number, (label, address) in enumerate(cells):
        width = max(len(label), len(address))
        label_comma = "," if number < len(cells) - 1 else ""
        address_comma = "," if address and number < last_address else " " * len(label_comma)
        if row and used + width + 2 > _WIDTH:
            yield row
            row, used = [], 0
        row.append((label.rjust(width) + label_comma, address.rjust(width) + address_comma))
        used += width + 2
    yield row


def _label(place: Place) -> str:
    if place.omitted:
        return "..."
    if place.element is None:
        times = f" x{place.length}" if place.length > 1 else ""
        return f"*{times}"
    shared = f" x{place.sharing}" if place.sharing > 1 else ""
    outside = "!" if place.outside else ""
    return f"{outside}a[{index_text(place.element.at) or '()'}]{shared}"


def _address(place: Place, geometry: Geometry) -> str:
    if place.element is None:
        return ""
    distance = place.start - geometry.offset
    if geometry.offset == 0:
        return str(distance)
    return f"offset{distance:+d}" if distance else "offset"


def _formula(geometry: Geometry) -> str:
    """Return the formula for the position of an element: the sum of strides times indices."""
    name = "strides" if geometry.unit == "element" else "byte_strides"
    terms = [f"{name}[{k}]*i[{k}]" for k in range(geometry.ndim)]
    if len(terms) > 3:
        terms[1:-1] = ["..."]
    return " + ".join(terms) + ":"
