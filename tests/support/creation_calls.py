"""The functions `empty`, `zeros`, `ones` and `full`, and the value of the elements that the last three write."""

import arrayhub

CREATE = {
    "empty": arrayhub.empty,
    "zeros": arrayhub.zeros,
    "ones": arrayhub.ones,
    "full": lambda shape, *dtype, **options: arrayhub.full(shape, 3, *dtype, **options),
}
VALUES = {"zeros": 0, "ones": 1, "full": 3}
