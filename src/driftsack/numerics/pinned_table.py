"""The table of a pinned call: the addresses of its arrays, and the code with which a kernel reads them.

A table is an array of 64-bit words. It contains the leaves of all pinned arguments, depth first:

- an array: the address of its data, then its shape. It is C-contiguous, so strides follow from the shape;
- a number: its bytes, in one word;
- a ``Generator``: the addresses of its state and of the three functions that Numba calls.

:func:`new_table` writes a table, and :func:`reader_of` returns a function for kernels that reads one. Types are not in
the table, because they are known when the reader is compiled. The reader relies on the native forms that Numba gives
arrays and generators, which a new release of Numba may change.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import typeof, types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from driftsack.core.arrays import Ints
from driftsack.core.errors import CannotPinError

WORD_BYTES: Final = 8
NUMBER_KINDS: Final = "biuf"  # of NumPy: bool, signed, unsigned and floating
GENERATOR_FIELDS: Final = ("state_address", "state", "fnptr_next_uint64", "fnptr_next_uint32", "fnptr_next_double")
"""The fields of Numba's native generator, in the order of the table."""


def types_of(values: tuple[Any, ...], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the types that Numba gives the arguments of an ordinary call; ``CannotPinError`` if one cannot be pinned.

    An argument must consist of C-contiguous arrays, numbers, generators and tuples of them. Messages use ``names``.
    """
    for value, name in zip(values, names, strict=True):
        _check(value, name)
    try:
        return tuple(typeof(value) for value in values)
    except (NumbaError, ValueError) as error:
        raise CannotPinError(f"Numba has no type for an argument among {', '.join(names)}: {error}") from error


def new_table(values: tuple[Any, ...]) -> Ints:
    """Write the table of arguments that :func:`types_of` has accepted; it does not keep them alive."""
    return np.array([word for value in values for word in _words(value)], dtype=np.int64)


def classes_in(kind: Any) -> Iterator[type]:
    """Iterate over the classes of the NamedTuples in a Numba type."""
    if isinstance(kind, types.BaseNamedTuple):
        yield kind.instance_class
    if isinstance(kind, types.BaseTuple):
        for part in kind:
            yield from classes_in(part)


def reader_of(kinds: tuple[Any, ...]) -> Any:
    """Make a function, for kernels, that returns the tuple of arguments of given types whose table is at an address."""
    result = types.Tuple(kinds)

    @intrinsic  # type: ignore[untyped-decorator]
    def read(_typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return _Reader(context, builder, arguments[0]).value(result)

        return result(address), generate

    return read


def _check(value: Any, name: str) -> None:
    """Raise ``CannotPinError`` for a value that a table cannot describe."""
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", range(len(value)))
        for field, part in zip(fields, value, strict=True):
            _check(part, f"{name}.{field}")
    elif type(value) in {np.ndarray, np.memmap}:
        _check_array(value, name)
    elif isinstance(value, np.generic):
        if value.dtype.kind not in NUMBER_KINDS or value.itemsize > WORD_BYTES:
            raise CannotPinError(f"{name} must be a number of at most 64 bits, got {value.dtype}; convert it first.")
    elif type(value) not in {bool, int, float, np.random.Generator}:
        raise CannotPinError(
            f"{name} must be an array, a number, a numpy Generator or a tuple of them, got {type(value).__name__}; "
            "pass it in another form, or call the kernel without pinning."
        )


def _check_array(array: npt.NDArray[Any], name: str) -> None:
    dtype = array.dtype
    if dtype.kind not in NUMBER_KINDS or dtype.itemsize > WORD_BYTES or not dtype.isnative:
        raise CannotPinError(f"{name} must hold native numbers of at most 64 bits, got {dtype!r}; use astype.")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise CannotPinError(
            f"{name} must be C-contiguous and aligned, got shape {array.shape} with strides {array.strides}; "
            "use np.ascontiguousarray and keep the copy."
        )


def _words(value: Any) -> Iterator[int]:
    """Yield the words of a value."""
    if isinstance(value, tuple):
        for part in value:
            yield from _words(part)
    elif isinstance(value, np.ndarray):
        yield value.ctypes.data
        yield from value.shape
    elif isinstance(value, np.random.Generator):
        interface = value.bit_generator.ctypes
        yield interface.state_address
        yield interface.state.value
        for function in (interface.next_uint64, interface.next_uint32, interface.next_double):
            yield ctypes.cast(function, ctypes.c_void_p).value or 0
    else:
        content = np.asarray(value).tobytes().ljust(WORD_BYTES, b"\0")
        yield int(np.frombuffer(content, dtype=np.int64)[0])


class _Reader:
    """Generates the code that reads a table, value by value."""

    def __init__(self, context: Any, builder: Any, address: Any) -> None:
        self.context, self.builder = context, builder
        self.table = builder.inttoptr(address, cgutils.intp_t.as_pointer())
        self.slots_read = 0

    def slot(self) -> Any:
        """Return the address of the next word."""
        slot = cgutils.gep_inbounds(self.builder, self.table, self.slots_read)
        self.slots_read += 1
        return slot

    def word(self) -> Any:
        """Load the next word."""
        return self.builder.load(self.slot())

    def value(self, kind: Any) -> Any:
        """Read the next value, of a given type."""
        if isinstance(kind, types.BaseTuple):
            return self.context.make_tuple(self.builder, kind, [self.value(part) for part in kind])
        if isinstance(kind, types.Array):
            return self.array(kind)
        if isinstance(kind, types.NumPyRandomGeneratorType):
            return self.generator(kind)
        pointer = self.builder.bitcast(self.slot(), self.context.get_data_type(kind).as_pointer())
        return self.context.unpack_value(self.builder, kind, pointer)

    def array(self, kind: Any) -> Any:
        """Read the next array; it has no owner, because kernels do not count references."""
        from numba.np.arrayobj import make_array, populate_array

        array = make_array(kind)(self.context, self.builder)
        data = self.builder.inttoptr(self.word(), array.data.type)
        shape = [self.word() for _ in range(kind.ndim)]
        item = self.context.get_abi_sizeof(self.context.get_data_type(kind.dtype))
        strides, stride = [], cgutils.intp_t(item)
        for length in reversed(shape):
            strides.append(stride)
            stride = self.builder.mul(stride, length, flags=["nsw"])
        populate_array(array, data, shape, strides[::-1], item, meminfo=None)
        return array._getvalue()  # noqa: SLF001

    def generator(self, kind: Any) -> Any:
        """Read the next generator, without an owner."""
        generator = cgutils.create_struct_proxy(kind)(self.context, self.builder)
        bits_kind = types.NumPyRandomBitGeneratorType("bit_generator")
        bits = cgutils.create_struct_proxy(bits_kind)(self.context, self.builder)
        for field in GENERATOR_FIELDS:
            setattr(bits, field, self.word())
        generator.bit_generator = bits._getvalue()  # noqa: SLF001
        return generator._getvalue()  # noqa: SLF001
