"""Table of the protocols, in the order in which `asarray` tries them.

docs/protocols.md explains the order. Dispatch, messages, `via=`, `check`, `doctor` and the type cache read the table.
`tests/adapters/test_table.py` compares the table with the lists of protocols in arrayhub.h, table.pxd, the .pyi files,
docs/protocols.md and the class `USMArray`.
"""

from arrayhub._core.descriptor import IN_MESSAGES, PROTOCOL_NAMES


class Protocol:
    """Row of the table: one protocol, or one interface of a protocol."""

    def __init__(
        self,
        name: str,  # used by `via=`, `USMArray.protocol`, `explain` and `trace`
        number: int,  # value in the C struct: USM_ARRAY_... in arrayhub.h
        words: str,  # prefix of messages
        attributes: tuple[str, ...] = (),  # attributes of the producer's type; () for the buffer protocol
        on_instances: bool = False,  # whether producers may also set the attribute on instances
        in_via: bool = True,  # whether `via=` accepts the name
    ) -> None:
        self.name, self.number, self.words = name, number, words
        self.attributes, self.on_instances, self.in_via = attributes, on_instances, in_via
        self.interfaces = attributes or ("the buffer protocol",)  # named in messages


PROTOCOLS = (
    Protocol("sycl", 4, "__sycl_usm_array_interface__", ("__sycl_usm_array_interface__",), on_instances=True),
    Protocol("cuda", 3, "__cuda_array_interface__", ("__cuda_array_interface__",), on_instances=True),
    Protocol("exchange", 6, "DLPack", ("__dlpack_c_exchange_api__",), in_via=False),  # another interface of DLPack
    Protocol("buffer", 5, "PEP 3118 buffer"),
    Protocol("dlpack", 6, "DLPack", ("__dlpack__",)),
    Protocol("array_interface", 1, "__array_interface__", ("__array_interface__",), on_instances=True),
    Protocol("array_struct", 2, "__array_struct__", ("__array_struct__",), on_instances=True),
    Protocol(
        "arrow",
        7,
        "Arrow",
        ("__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__", "__arrow_c_device_stream__"),
    ),
)

# The protocols that `via=` accepts, by name, ordered by number. `check` compares them in this order.
BY_VIA = {row.name: row for row in sorted(PROTOCOLS, key=lambda row: row.number) if row.in_via}

PROTOCOL_NAMES.update({row.number: row.name for row in BY_VIA.values()})
IN_MESSAGES.update({row.number: row.words for row in BY_VIA.values()})
