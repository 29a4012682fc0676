"""The four functions that create arrays, with the values of their elements."""

import arrayhub

CREATE = {
    "empty": arrayhub.empty,
    "zeros": arrayhub.zeros,
    "ones": arrayhub.ones,
    "full": lambda shape, *dtype, **options: arrayhub.full(shape, 3, *dtype, **options),
}
VALUES = {"zeros": 0, "ones": 1, "full": 3}
