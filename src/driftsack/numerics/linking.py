"""Compile a kernel into its callers instead of separately; this module uses Numba's internals.

Numba compiles every function that a kernel calls to separate machine code, with wrappers for Python, although only the
outermost kernel is called from Python. Here a kernel has two forms. The *entry*, made when Python calls it, is
compiled as usual. The *linked* form, made when another kernel calls it, stops at LLVM IR, which the caller links and
inlines; it has no wrappers, no machine code and no file in the cache. ``docs/decisions/0001-kernels.md`` has the
measurements; ``tests/numerics/test_compiled.py`` fails if a new release of Numba changes the internals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.errors import UnsupportedError
from numba.core.ir import Print
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering
from numba.extending import overload

from driftsack.core.stamp import is_covered
from driftsack.numerics.compiled import finders, part_of, source, stamp_of
from driftsack.numerics.kernel_cache import KernelCache, PinnedCache

OPTIONS: Final = {"nogil": True, "forceinline": True, "_nrt": False}
"""No GIL; calls are inlined; no memory manager, so no allocation."""
WITHOUT_WRAPPERS: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM IR that callers link; it is neither optimised as a module nor compiled to machine code."""

    def finalize(self) -> None:
        """Link the functions that this one calls, and do nothing else."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(NativeLowering):  # type: ignore[misc]
    """Lower to LLVM IR and register the result for callers, without an executable."""

    _name = "driftsack_linked_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower one function."""
        if any(isinstance(statement, Print) for block in state.func_ir.blocks.values() for statement in block.body):
            raise UnsupportedError("a kernel that another kernel calls cannot print; debug with NUMBA_DISABLE_JIT=1")
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        never_called: Any = [].append  # Numba finds the function by this object, which must be a distinct builtin
        state.targetctx.insert_user_function(never_called, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=never_called)
        return True


class LinkedCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline, ending in :class:`_LinkedLowering`."""

    def define_pipelines(self) -> list[Any]:
        """Replace the pass that generates machine code."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state, name="driftsack_linked")
        pipeline.passes = [
            (_LinkedLowering if step is NativeLowering else step, reason) for step, reason in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]


LINKED: Final = {**OPTIONS, **WITHOUT_WRAPPERS, "pipeline_class": LinkedCompiler}
"""Options of Numba's ``overload`` for an implementation that is linked into its caller."""


class Dispatcher(CPUDispatcher):  # type: ignore[misc]
    """The machine code of a kernel in both forms: calls from Python compile its entry, calls from kernels link it."""

    def __init__(self, py_func: Callable[..., object]) -> None:
        options = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **OPTIONS}
        super().__init__(py_func, targetoptions=options)
        self._linked = CPUDispatcher(
            py_func, targetoptions={**options, **WITHOUT_WRAPPERS}, pipeline_class=LinkedCompiler
        )
        self.pinned: dict[tuple[Any, ...], Any] = {}  # entries by the types of the pinned arguments

    @classmethod
    def _rebuild(cls, uuid: str, py_func: Callable[..., object], **_: Any) -> Dispatcher:
        """Unpickle: return the dispatcher of this process, or create one."""
        try:
            known: Dispatcher = cls._memo[uuid]
        except KeyError:
            known = cls(py_func)
            known._set_uuid(uuid)
        return known

    @property
    def _numba_type_(self) -> Any:
        """The Numba type that other kernels see: that of the linked form."""
        return self._linked._numba_type_

    def is_on_disk(self, kinds: tuple[Any, ...]) -> bool:
        """Return whether the cache on disk has the machine code for arguments of given types."""
        return isinstance(self._cache, KernelCache) and self._cache.holds(kinds, self.targetctx.codegen())


def new_dispatcher(function: Callable[..., object], cached: bool) -> Dispatcher:
    """Create the dispatcher of a kernel, with a cache on disk if the kernel belongs to the package."""
    for known, find in finders().items():
        if known not in _overloaded:
            _overloaded.add(known)
            overload(known, strict=False, jit_options=LINKED)(_implementation(find, known.__name__))
    dispatcher, part = Dispatcher(function), part_of(function)
    if part and cached:
        with contextlib.suppress(RuntimeError):  # raised by Numba if no directory is writable
            dispatcher._cache = KernelCache(function, stamp_of(part))  # noqa: SLF001
    return dispatcher


def cache_pinned(entry: Dispatcher, of: Dispatcher, pinned: tuple[Any, ...], modules: Iterable[str]) -> None:
    """Cache an entry with pinned arguments on disk, if its kernel is cached there and the stamp covers all types.

    ``pinned`` are the Numba types of the arguments, and ``modules`` define their classes.
    """
    function, part = source(of), part_of(source(of))
    if isinstance(of._cache, KernelCache) and all(is_covered(module, part) for module in modules):  # noqa: SLF001
        with contextlib.suppress(RuntimeError):
            entry._cache = PinnedCache(function, stamp_of(part), pinned)  # noqa: SLF001


_overloaded: Final[set[Callable[..., Any]]] = set()


def _implementation(find: Callable[[type, str], Any], name: str) -> Callable[..., Any]:
    """Return what Numba asks for the implementation of a function, given the types of its arguments."""

    def implementation(first: Any, *others: Any) -> Callable[..., Any]:
        return source(find(first.instance_class, name))

    return implementation
