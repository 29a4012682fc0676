"""One adapted function: conversion of the arguments of a call, and of its result. See `adapt`."""

from copy import copy as shallow_copy

import numpy

cimport cython
cimport numpy as cnp

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters.arrow cimport is_stream
from arrayhub.convert.target cimport ArrayType, Target, array_of, array_type, target_like
from arrayhub.libraries.known cimport Library
from arrayhub.libraries.numpy cimport is_value

from arrayhub._core.descriptor import CPU, MAX_NDIM
from arrayhub._core.errors import PASSES_ON, InterfaceError, PlaceError, Refusal, name_argument, name_of_type, reason_of
from arrayhub._core.hooks import hooks
from arrayhub.convert.containers import with_index_columns, with_types_of, without_index
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.convert.labels import TABLES, are_equal, check_labels, get_names, label_kind, rename, shape_of
from arrayhub.convert.names import NESTED, OWN
from arrayhub.convert.placement import find_deciding
from arrayhub.convert.target import device_of
from arrayhub.libraries.known import NESTING
from arrayhub.transfer.host_copies import check_writable

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()

cdef tuple _CONTAINERS = (list, tuple, dict)
cdef tuple _NUMBERS = (bool, int, float, complex, numpy.number, numpy.bool_, type(None))

# Types of the errors that conversions raise. `adapt` raises errors of the same types.
cdef tuple _REFUSALS = (OverflowError, TypeError, ValueError, BufferError)

# Types of arguments that are neither arrays nor containers of arrays.
cdef frozenset _PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None)))

cdef ArrayType _BUILT = ArrayType("numpy", host=True)      # arrays of lists
cdef Target _NUMPY = Target("numpy", None, CPU)
cdef str _ALLOW_COPIES = ". Pass copy=None to arrayhub.adapt to allow copies"
cdef str _MOVE = "device='{}' to arrayhub.adapt, which moves arrays and results"
cdef str _CAN_BE_WRITTEN = "an array on {}, which can be written"
cdef str _MOVE_TO_HOST = _MOVE.format("cpu")


@cython.freelist(8)      # as in convert/target
cdef class Argument:
    """An array among the arguments of a call."""

    cdef str key                # name of the parameter, with the index for an item of a container
    cdef object value
    cdef ArrayType type
    cdef bint writes            # whether the function writes to the array
    cdef object place           # index or name of the argument; for an item of a container, its index or key
    cdef object request         # the request in the annotation of the parameter, or None
    cdef object met             # the array that meets the request
    cdef Descriptor array       # the imported array, or None


cdef Argument new_argument(str key, value, ArrayType type, bint writes, place, request=None):
    cdef Argument argument = Argument.__new__(Argument)      # faster than a call of the type
    argument.key, argument.value, argument.type, argument.writes = key, value, type, writes
    argument.place, argument.request = place, request
    return argument


cdef class Adapter:
    """A function, the target of its arguments, and the options of `adapt`.

    `keys` are the names of the positional parameters. `requests` are the requests of parameters, keyed by their names.
    """

    cdef readonly object function
    cdef readonly str name
    cdef readonly Target target
    cdef readonly object copy, missing
    cdef readonly bint labels
    cdef readonly list keys
    cdef readonly dict requests
    cdef bint is_method         # whether the first parameter is `self` or `cls`, which is passed unchanged

    def __cinit__(self, function, str name not None, Target target not None, copy, bint labels, missing,
                  list keys not None, dict requests not None):
        self.function, self.name, self.target, self.copy, self.labels = function, name, target, copy, labels
        self.missing, self.keys, self.requests = missing, keys, requests
        self.is_method = keys[:1] in (["self"], ["cls"])

    def __reduce__(self):      # cloudpickle sends functions by value, with the objects in their closures
        state = (self.function, self.name, self.target, self.copy, self.labels, self.missing, self.keys, self.requests)
        return Adapter, state

    def call(self, tuple args not None, dict kwargs not None):
        """Call the function with converted arguments, and return the converted result. `kwargs` is changed."""
        cdef Call call = new_call(self)
        given = call.convert_arguments(args, kwargs)
        return call.convert_result(self.function(*given, **kwargs))

    async def call_coroutine(self, tuple args not None, dict kwargs not None):
        """Await the coroutine function with converted arguments, and return the converted result. `kwargs` is changed."""
        cdef Call call = new_call(self)
        given = call.convert_arguments(args, kwargs)
        return call.convert_result(await self.function(*given, **kwargs))

    cdef bint is_own(self, value, ArrayType found, bint writes) except -1:
        """Return whether the function receives an array unchanged."""
        cdef Target target = self.target
        is_foreign = found.owner != target.library and (found.sparse is None or found.sparse != target.row.sparse_by)
        if is_foreign or not writes and (self.copy is True or self.missing is not None):
            return False
        if target.cls is not None and found.sparse is None and not issubclass(type(value), target.cls):
            return False
        return target.device is None or device_of(value) == target.device

    cdef object error_at(self, error, str key, str hint, bint writes=False):
        """Return an error of the same kind whose subject begins with the names of the function and the argument.

        With a hint about an argument of `adapt`, the error does not name another call. Nor does it for an argument that
        the function `writes` to, because the call would return a copy.
        """
        if not isinstance(error, (Refusal, InterfaceError)):
            kind = [kind for kind in _REFUSALS if isinstance(error, kind)][0]
            return kind(f"{self.name}: {key}: {error}{hint}")
        named = name_argument(error, f"{self.name}: {key}")
        if writes:
            accepted = f"writable memory that {self.target.library} can view, because {self.name} writes to this argument"
            return type(error)(named.subject, error.reason, accepted)
        return type(error)(named.subject, f"{reason_of(error)}{hint}") if hint else named

    cdef str hint_for(self, error, value, ArrayType found, bint writes):
        """Return the advice to pass an argument to `adapt`, or "" if no argument helps."""
        if writes or found.refused:
            return ""
        if self.helps_copy(error, value, self.target.library):
            return _ALLOW_COPIES
        lacks = self.missing is None and not self.target.row.nests and lacks_values(value)
        if lacks and (converts(self.target, value, "nan", True) or converts(self.target, value, 0, True)):
            return ". Pass missing='nan' or missing=value to arrayhub.adapt, which replaces missing values"
        return ""

    cdef bint helps_copy(self, error, obj, str library) except -1:
        """Return whether an error is only due to ``copy=False``."""
        if self.copy is not False or not isinstance(error, BufferError) or isinstance(error, PlaceError):
            return False
        return hooks.advice.advise(obj, library).verdict != "cannot"


@cython.freelist(8)
cdef class Call:
    """One call of an adapted function."""

    cdef Adapter adapter
    cdef list arrays            # the arrays in the arguments, as instances of Argument
    cdef list pairs             # arguments of the function, and the caller's objects
    cdef Target target          # target of the results; None until it is needed
    cdef bint has_foreign       # whether an array belongs to another library than the function's
    cdef set open               # ids of the containers of the result that are being converted, or None

    # ----------------------------------------------------------------------------------------------------- arguments

    cdef list convert_arguments(self, tuple args, dict keywords):
        """Return the positional arguments with converted arrays. Convert the arrays in `keywords` in place."""
        cdef list given = list(args), containers = []
        cdef Argument argument
        cdef Py_ssize_t k
        cdef bint bound = self.adapter.is_method and len(args) > 0
        if bound:
            self.pairs.append((args[0], args[0]))
        for k in range(bound, len(args)):
            self.classify(k, args[k], containers)
        for key, value in keywords.items():
            self.classify(key, value, containers)
        top = self.arrays
        items = self.find_items(containers)
        self.check(top)
        received = [self.convert_argument(argument) for argument in top]
        self.check_received(top, received)
        check_lengths(self.adapter.name, top)
        for argument, value in zip(top, received):
            (keywords if type(argument.place) is str else given)[argument.place] = value
        for place, container, inside in items:
            (keywords if type(place) is str else given)[place] = self.convert_items(container, inside)
        return given

    cdef int classify(self, place, value, list containers) except -1:
        """Add an argument to the arrays or to the containers. `place` is its index, or its name for a keyword argument."""
        cdef dict requests = self.adapter.requests
        cdef ArrayType found
        if requests:
            key = self.key_at(place)
            request = requests.get(key)
            if request is not None and value is not None:
                found, writes = array_type(value) or _BUILT, bool(getattr(request, "writable", False))
                self.arrays.append(new_argument(key, value, found, writes, place, request))
                return 0
        if type(value) in _PLAIN:
            return 0
        found = array_type(value)
        if found is not None:
            key = self.key_at(place)
            self.arrays.append(new_argument(key, value, found, key == "out", place))
        elif issubclass(type(value), _CONTAINERS):
            containers.append((place, value))
        return 0

    cdef str key_at(self, place):
        """Return the name of an argument. `place` is its index, or its name for a keyword argument."""
        cdef list keys = self.adapter.keys
        if type(place) is str:
            return place
        return keys[place] if place < len(keys) else f"argument {place + 1}"

    cdef list find_items(self, list containers):
        """Return (place, container, arrays) for the containers with arrays, whose arrays are added to a new list `arrays`.

        If the arguments do not contain arrays, add lists of numbers to the arguments to convert.
        """
        cdef list items = [], inside = []
        cdef Argument argument
        for argument in self.arrays:
            if argument.request is not None and issubclass(type(argument.value), _CONTAINERS):
                inside += find_arrays(argument.key, argument.value)
        for place, container in containers:
            found = find_arrays(self.key_at(place), container)
            if found:
                items.append((place, container, found))
                inside += found
        has_arrays = bool(self.arrays or items)
        for place, container in containers:
            key = self.key_at(place)
            if issubclass(type(container), list) and (key == "out" or not has_arrays) and are_numbers(container):
                self.arrays.append(new_argument(key, container, _BUILT, key == "out", place))
        self.arrays = self.arrays + inside
        return items

    cdef int check(self, list top) except -1:
        """Check the labels and the devices of several arguments. The arrays in `top` are arguments themselves."""
        cdef Adapter adapter = self.adapter
        cdef Argument argument
        cdef str own = adapter.target.library
        for argument in self.arrays:
            self.has_foreign = self.has_foreign or argument.type.owner != own or own == OWN
        if len(self.arrays) < 2 or not self.has_foreign:
            return 0
        if len(top) > 1:
            labelled = [(argument.key, argument.value, argument.type.owner == own) for argument in top]
            check_labels(adapter.name, labelled, not adapter.target.row.nests)
        self.target = self.find_target(adapter.target.device is None)
        return 0

    cdef int check_received(self, list top, list received) except -1:
        """Check the labels that the function receives, where its library aligns arrays by their labels.

        Converted arrays without labels have the default ones. Tables are not compared: their rows have a key in a column.
        """
        cdef Adapter adapter = self.adapter
        cdef Argument argument
        cdef str own = adapter.target.library
        if not adapter.target.row.labels or not self.has_foreign or len(received) < 2:
            return 0
        labelled = []
        for argument, value in zip(top, received):
            is_own = argument.type.owner == own
            if is_own or label_kind(type(argument.value)) not in TABLES:
                labelled.append((argument.key, value, is_own))
        check_labels(adapter.name, labelled, True, {argument.key: argument.value for argument in top})
        return 0

    cdef Target find_target(self, bint one_device):
        """Return the target of the results, which one of the arrays determines."""
        cdef Argument argument
        if len(self.arrays) == 1:
            argument = self.arrays[0]
            return target_like(argument.value, argument.type, argument.array)
        keys, values = zip(*[(argument.key, argument.value) for argument in self.arrays])
        targets = [target_like(argument.value, argument.type, argument.array) for argument in self.arrays]
        advice = "Move one of them with arrayhub.to_device" if one_device else None
        return find_deciding(self.adapter.name, keys, values, targets, advice)[0]

    cdef object convert_argument(self, Argument argument):
        """Return an array as the function receives it."""
        cdef Adapter adapter = self.adapter
        value = argument.value
        cdef bint is_own = adapter.is_own(value, argument.type, argument.writes)
        if argument.request is not None:
            plain = value.detach() if is_own and getattr(value, "requires_grad", False) is True else value
            argument.met = array = argument.request.asarray(plain, name=f"{adapter.name}: {argument.key}")
            source = array_of(plain) if is_own else None
            if source is None or source.ptr != array.ptr or source.dtype != array.dtype:
                return self.convert_value(argument, array)
        if is_own:
            self.pairs.append((value, value))
            return value
        is_subclass = issubclass(type(value), numpy.ndarray) and argument.type.owner == adapter.target.library
        if is_subclass and adapter.copy is True and adapter.missing is None and adapter.target.cls is None:
            return value.copy()      # a masked array, for example, which `as_numpy` refuses
        return self.convert_value(argument, value)

    cdef object convert_value(self, Argument argument, value):
        """Convert an argument to the function's library. `value` is the argument, or the array of its request."""
        cdef Adapter adapter = self.adapter
        cdef Target target = adapter.target
        given = argument.value
        try:
            if argument.writes:
                made = self.make_view(value, given)
            else:
                if target.library in ("arrow", NESTED):      # which `convert` passes the index in columns
                    value = without_index(value)
                if value is given and argument.type is not _BUILT and not argument.type.wraps and adapter.copy is not True:
                    argument.array = array_of(value)
                made = target.convert(value, target.library, adapter.copy, None, False, adapter.missing,
                                      target.device is not None, _MOVE, argument.array)
                if adapter.copy is not True and argument.type.sparse is None:
                    protect_copy(made, given, argument.array)
        except _REFUSALS as error:
            hint = adapter.hint_for(error, value, argument.type, argument.writes)
            raise adapter.error_at(error, argument.key, hint, argument.writes) from error
        cdef bint shares = argument.writes or adapter.copy is not True and adapter.missing is None
        if shares and argument.type is not _BUILT and (value is given or target.library in ("arrow", NESTED)
                                                       or getattr(array_of(given), "dtype", None) == value.dtype):
            self.pairs.append((made, given))
        return made

    cdef object make_view(self, value, given):
        """Return a writable view of an argument that the function writes to."""
        cdef Target target = self.adapter.target
        if is_value(given):
            raise TypeError(f"{name_of_type(type(given))} does not have memory to write to; accepted: a writable array")
        made = target.convert(value, target.library, False, None, False, None, False, _CAN_BE_WRITTEN)
        array = array_of(made)
        if array is None or not is_view(array, array_of(given)):
            raise BufferError(f"{name_of_type(type(given))} would be copied, so writes would be lost")
        check_writable(array, f"{name_of_type(type(given))}, to which {self.adapter.name} writes,")
        return made

    cdef object convert_items(self, container, list items):
        """Return a container with converted arrays, or `container` itself. `items` are its arrays."""
        cdef Argument argument
        converted = replace_items(container, {argument.place: self.convert_argument(argument) for argument in items})
        if converted is not container:
            self.pairs.append((converted, container))
        return converted

    # -------------------------------------------------------------------------------------------------------- result

    cdef object convert_result(self, result):
        """Convert the arrays in a function's result to the caller's library and device. Return the result."""
        cdef Adapter adapter = self.adapter
        cdef Target function = adapter.target, target
        cdef bint moves = function.device is not None
        if not self.arrays or type(result) in _PLAIN:
            return result
        for made, given in self.pairs:
            if result is made:
                if issubclass(type(given), _CONTAINERS):
                    converted = self.convert_results(result)
                    return given if has_items_of(converted, given) else converted
                if made is given or self.is_unchanged(made, given):
                    return given
        cdef ArrayType found = array_type(result)
        if found is None and issubclass(type(result), _CONTAINERS):
            return self.convert_results(result)
        if found is None or found.refused:
            return result
        if self.target is None:
            if not self.has_foreign and found.owner == function.library and not moves:
                return result      # all arguments were passed unchanged, too
            self.target = self.find_target(False)
        target = self.target
        if target.library == "numpy" and issubclass(type(result), numpy.ndarray):
            return result
        is_of_library = target.model_type is not None and target.model_type.owner == target.library
        if found.owner == target.library and is_of_library and (not moves or device_of(result) == target.device):
            return result      # with the labels that the function has set
        try:
            return self.convert_array(result, target, found, moves)
        except _REFUSALS as error:
            hint = f". In this message, x is the value that {adapter.name} returns. Convert this value inside {adapter.name}"
            hint = _ALLOW_COPIES if adapter.helps_copy(error, result, target.library) else hint
            raise adapter.error_at(error, "the result", "" if isinstance(error, PlaceError) else hint) from error

    cdef bint is_unchanged(self, made, given) except -1:
        """Return whether `given` has all that the function wrote to `made`, an argument that was converted from `given`.

        A view may have another shape or element type than before, and tables and labelled arrays other columns or labels. A
        copy may have other elements, unless it is read-only.
        """
        cdef Adapter adapter = self.adapter
        cdef Library row = adapter.target.row
        cdef bint has_names = row.nests or row.labels      # of columns or axes, which the function may have changed
        if row.immutable:
            return True
        array, source = array_of(made), array_of(given)
        if array is not None and is_view(array, source) and not has_names:
            return array.shape == source.shape and array.strides == source.strides and array.dtype == source.dtype
        parts = describe_sparse(made) if array is None and not has_names else []
        if parts:
            return parts == describe_sparse(given)
        flags = getattr(made if array is None else array, "flags", None)      # None of a tensor, for example
        if not has_names and (flags is None or flags.writeable):
            return False
        try:
            again = adapter.target.convert(
                given, adapter.target.library, None, None, False, None, adapter.target.device is not None)
        except _REFUSALS:
            return False
        return are_equal(made, again) if has_names else made.shape == again.shape and made.dtype == again.dtype

    cdef object convert_results(self, result):
        """Convert the items of a container. A container that contains itself remains in its copy."""
        if self.open is None:
            self.open = set()
        if id(result) in self.open:
            return result
        Py_EnterRecursiveCall(" in arrayhub.adapt: containers in the result are nested too deeply")
        self.open.add(id(result))
        try:
            return replace_items(result, {index: self.convert_result(item) for index, item in items_of(result)})
        finally:
            Py_LeaveRecursiveCall()      # first, because calls in this block may need a level, too
            self.open.remove(id(result))

    cdef object convert_array(self, result, Target target, ArrayType found, bint moves):
        """Convert an array to the library of a target.

        - Names of columns in the result take precedence over names in the array that determines the target.
        - If the library lacks 0-d arrays, a 0-d result becomes a NumPy scalar.
        - If the library lacks sparse arrays, a sparse result becomes a SciPy array.
        """
        copy, labels, model = self.adapter.copy, self.adapter.labels, target.model
        if found.sparse is not None and target.row.sparse_by is None:
            target = _NUMPY
        if (target.row.nests or target.library == NESTED) and getattr(result, "ndim", None) == 0:
            return as_numpy(result)[()]
        if found.sparse is not None or not (target.row.nests or target.row.labels):
            return target.convert(result, target.library, copy, None, labels, None, moves, _MOVE_TO_HOST)
        if target.row.nests and not target.row.labels and found.library == "pandas":
            result = with_index_columns(result)
        is_record = getattr(getattr(result, "dtype", None), "names", None) is not None      # of NumPy
        names = get_names(result) if is_record or not found.dense else None
        if target.row.labels:
            # Nested arrays, and those of pyarrow and awkward, do not state a shape.
            dense = result if not labels or hasattr(result, "shape") else array_of(result)
            same = labels and (shape_of(dense) if dense is not None else (len(result),)) == shape_of(model)
            result = dense if same and dense is not None else result
            named = target.library == "pandas" and (
                isinstance(names, list)
                or (labels and names is not None)
                or (found.library in NESTING and not hooks.nested.has_numbers(hooks.nested.import_nested(result)))
            )
            if not same and not named:      # the library of the data
                target, names = Target(target._inner(), None, target.device), None
                if target.library == "numpy" and issubclass(type(result), numpy.ndarray):
                    return result      # such as a masked array
        made = target.convert(result, target.library, copy, None, labels, None, moves, _MOVE_TO_HOST)
        if target.library == "pandas" and label_kind(type(made)) != "index":
            if not found.dense:
                made = with_types_of(made, model)
            if labels and made.index is not getattr(model, "index", made.index) and len(made) == len(model):
                made.index = model.index
        return made if names is None else rename(made, names, model)


cdef Call new_call(Adapter adapter):
    cdef Call call = Call.__new__(Call)
    call.adapter, call.arrays, call.pairs = adapter, [], []
    return call


cdef bint is_view(array, source) except -1:
    """Return whether an array has the memory of the array that it was converted from, which may be None."""
    return source is not None and (not source.size or source.ptr == array.ptr)


cdef list describe_sparse(obj):
    """Return the format, the shape and the memory of a sparse array, or an empty list for another object."""
    x = hooks.sparse.import_or_none(obj)
    if x is None:
        return []
    return [x.format, x.shape, *[(array.ptr, array.shape, array.dtype) for array in (x.data, *(x.coords or x.structure))]]


cdef bint has_items_of(made, container) except -1:
    """Return whether two lists, tuples or dicts of the same type consist of the same objects."""
    if type(made) is not type(container) or len(made) != len(container):
        return False
    pairs = zip(items_of(made), items_of(container))
    return all([index == other_index and item is other for (index, item), (other_index, other) in pairs])


cdef int protect_copy(made, given, Descriptor array) except -1:
    """Make a copy of an argument read-only, so that no write to it is lost. `array` is the imported argument, or None."""
    if array is not None and type(made) is numpy.ndarray and cnp.PyArray_DATA(<cnp.ndarray> made) == array.data_:
        return 0
    memory = made.data if label_kind(type(made)) in ("coords", "dims") else made
    flags = getattr(memory, "flags", None)
    if made is given or not getattr(flags, "writeable", False):      # torch, for example, lacks read-only arrays
        return 0
    source = array_of(given)
    if source is None or (source.size and source.ptr != asarray(memory).ptr):
        flags.writeable = False
    return 0


cdef bint converts(Target target, obj, missing, bint move) except -1:
    """Return whether an object that can be read twice is converted if copies are allowed."""
    try:
        return not is_stream(obj) and target.convert(obj, target.library, None, None, False, missing, move) is not None
    except _REFUSALS:
        return False


cdef bint lacks_values(obj) except -1:
    """Return whether numbers are missing in an object."""
    try:
        x = hooks.nested.import_nested(obj)
        return hooks.nested.has_numbers(x) and hooks.nested.has_missing(x)
    except PASSES_ON:
        raise
    except Exception:
        return False


# ---------------------------------------------------------------------------------------------------------- containers


cdef list items_of(container):
    """Return the items of a list, tuple or dict, with their indices or keys."""
    return list(container.items()) if issubclass(type(container), dict) else list(enumerate(container))


cdef list find_arrays(str key, container):
    """Return the arrays in a list, tuple or dict. `key` is the name of the argument."""
    cdef list found = []
    cdef ArrayType kind
    for index, item in items_of(container):
        kind = None if type(item) in _PLAIN else array_type(item)
        if kind is not None:
            found.append(new_argument(f"{key}[{index!r}]", item, kind, key == "out", index))
    return found


cdef bint are_numbers(values) except -1:
    """Return whether all elements of a sequence, and of sequences in it, are numbers or None. One number must exist.

    Sequences deeper than NumPy's dimensions, such as a list in itself, are not numbers.
    """
    cdef dict level = {id(values): values}, deeper
    for _ in range(MAX_NDIM):
        deeper = {}
        for items in level.values():
            rows = [item for item in items if issubclass(type(item), (list, tuple))]
            kinds = set(map(type, items))
            if rows and len(rows) != sum([item is not None for item in items]):
                return False
            if not rows and (kinds == {type(None)} or not all([issubclass(kind, _NUMBERS) for kind in kinds])):
                return False
            deeper.update([(id(row), row) for row in rows])
        if not deeper:
            return True
        level = deeper
    return False


cdef object replace_items(container, dict made):
    """Return a copy of a container with the items in `made`, or `container` itself if it has these items.

    If a list or mapping cannot be copied or changed, the copy is a list or a dict.
    """
    if all([made[index] is item for index, item in items_of(container) if index in made]):
        return container
    cls = type(container)
    if issubclass(cls, tuple):
        parts = [made.get(index, item) for index, item in enumerate(container)]
        copied = cls(parts) if hasattr(cls, "n_sequence_fields") else tuple.__new__(cls, parts)      # torch.return_types.sort
        getattr(copied, "__dict__", {}).update(getattr(container, "__dict__", {}))      # scipy.stats.ttest_ind(x, y).df
        return copied
    try:
        copied = shallow_copy(container)
        for index, item in made.items():
            copied[index] = item
    except PASSES_ON:
        raise
    except Exception:
        copied = {**container, **made} if issubclass(cls, dict) else [made.get(k, v) for k, v in enumerate(container)]
    return copied


# ------------------------------------------------------------------------------------------------------------ requests


cdef int check_lengths(str name, list arguments) except -1:
    """Raise ValueError if a letter denotes different lengths in two arrays that meet a request."""
    cdef dict lengths = {}
    cdef Argument argument
    for argument in arguments if len(arguments) > 1 else ():
        if argument.request is None or not hasattr(argument.request, "lengths"):
            continue
        for letter, length in argument.request.lengths(argument.met).items():
            other, first = lengths.setdefault(letter, (length, argument.key))
            if other != length:
                raise ValueError(
                    f"{name}: {letter} is {other} in {first}, and {length} in {argument.key}; accepted: equal lengths")
    return 0
