"""Table of the node kinds of a NestedArray. The kind of a node determines the layout of its elements.

Arrow's other types (list views, run-end encoded arrays, unions, decimals, intervals and null) are one kind, "opaque". An opaque
node stores the buffers and children of Arrow's layout. It is sliced, moved, pickled and exported like other nodes. Its elements
are converted by `nested/opaque`.

Other modules do not compare kinds. They test a property, with ``tree.has(node, VIEWS)`` in Cython or ``kind_of(node).views`` in
Python, or define a table with `per_kind`. `per_kind` checks on import that the table has a row for each kind.

Source: "Physical Memory Layout" of Arrow's columnar format.
"""

from types import SimpleNamespace

from arrayhub._core.errors import show

# Texts of the column `refusal`. For the kinds with the property NUMBERS or FOREIGN, `adapters/arrow` writes the text, which
# depends on the format. The texts are bytes because Cython converts bytes to `const char*`.
cdef const char* _STRINGS = b"has strings"
cdef const char* _BINARY = b"has byte strings"
cdef const char* _LENGTHS = b"has lists, which may have different lengths"
cdef const char* _ROWS = b"has fixed-size lists whose elements do not form a dense array"
cdef const char* _PACKED = b"packs eight values into a byte; accepted: copy=True, which unpacks them"
cdef const char* _COLUMNS = b"has columns; accepted: one column, or copy=True, which makes a matrix of them"
cdef const char* _ENCODED = b"is dictionary-encoded"
cdef const char* _CHUNKS = b"has several chunks; accepted: one chunk, or copy=True, which concatenates them"

NODE_KINDS[:] = [
    #        name             properties                 buffers  children  refusal
    NodeKind(b"flat",         NUMBERS,                   2,       0,        NULL),
    NodeKind(b"bits",         BIT_PACKED,                2,       0,        _PACKED),
    NodeKind(b"list",         LISTS | ENDS,              2,       1,        _LENGTHS),
    NodeKind(b"regular",      LISTS | WIDTH,             1,       1,        _ROWS),
    NodeKind(b"string",       CHARACTERS | UTF8 | ENDS,  3,       0,        _STRINGS),
    NodeKind(b"bytes",        CHARACTERS | ENDS,         3,       0,        _BINARY),
    NodeKind(b"string_view",  CHARACTERS | UTF8 | VIEWS, ANY,     0,        _STRINGS),
    NodeKind(b"bytes_view",   CHARACTERS | VIEWS,        ANY,     0,        _BINARY),
    NodeKind(b"record",       FIELDS,                    1,       ANY,      _COLUMNS),
    NodeKind(b"categorical",  INDICES,                   2,       0,        _ENCODED),
    NodeKind(b"chunked",      CHUNKS,                    0,       0,        _CHUNKS),      # not an ArrowArray
    NodeKind(b"opaque",       FOREIGN,                   ANY,     ANY,      NULL),
]


cdef object _row(int number):
    """Return the row of a kind for Python code.

    The row contains the properties as bools. `structure` contains the names of the node's arrays, except ``validity`` and
    ``content``.
    """
    cdef int properties = NODE_KINDS[number].properties
    return SimpleNamespace(
        structure=tuple([name for name, property in (("offsets", ENDS), ("indices", INDICES)) if properties & property]),
        numbers=properties & NUMBERS != 0,
        packed=properties & BIT_PACKED != 0,
        lists=properties & LISTS != 0,
        characters=properties & CHARACTERS != 0,
        utf8=properties & UTF8 != 0,
        views=properties & VIEWS != 0,
        fields=properties & FIELDS != 0,
        opaque=properties & FOREIGN != 0,
        named=properties & (FIELDS | FOREIGN) != 0,      # has `field_names` and `children`
        indices=properties & INDICES != 0,
        ends=properties & ENDS != 0,
        width=properties & WIDTH != 0,
        chunks=properties & CHUNKS != 0,
        over_nodes=properties & (LISTS | FIELDS | INDICES | CHUNKS | FOREIGN) != 0,      # has child nodes
    )


KIND_NAMES = tuple([NODE_KINDS[number].name.decode() for number in range(KINDS)])
_ROWS_BY_NAME = {name: _row(number) for number, name in enumerate(KIND_NAMES)}


def kind_of(node):
    """Return the row of a NestedArray's kind."""
    return _ROWS_BY_NAME[node.kind]


def row_named(name):
    """Return the row of the kind with a given name, or raise ValueError."""
    if name not in _ROWS_BY_NAME:
        raise ValueError(f"kind is {show(name)}; accepted: {', '.join(KIND_NAMES)}")
    return _ROWS_BY_NAME[name]


def per_kind(**rows):
    """Return a table with a row for each kind of node. Raise ImportError for a missing kind or an unknown name."""
    if set(rows) != set(KIND_NAMES):
        raise ImportError(f"table of node kinds: missing or unknown kinds are {sorted(set(rows) ^ set(KIND_NAMES))}")
    return rows
