"""Functions that create arrays, and the value with which `zeros`, `ones` and `full` fill the elements."""

import arrayhub

CREATE = {
    "empty": arrayhub.empty,
    "zeros": arrayhub.zeros,
    "ones": arrayhub.ones,
    "full": lambda shape, *dtype, **options: arrayhub.full(shape, 3, *dtype, **options),
}
VALUES = {"zeros": 0, "ones": 1, "full": 3}
