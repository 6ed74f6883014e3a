"""Compile a kernel into its callers instead of separately; this module uses Numba's internals.

Numba compiles every function that a kernel calls to separate machine code, with wrappers for Python, although only the
outermost kernel is called from Python. Here a kernel has two forms. The *entry*, made when Python calls it, is
compiled as usual. The *linked* form, made when another kernel calls it, stops at LLVM IR, which the caller links and
inlines; it has no wrappers, no machine code and no file in the cache. ``docs/decisions/0001-kernels.md`` has the
measurements; ``tests/numerics/test_compiled.py`` fails if a new release of Numba changes the internals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.errors import UnsupportedError
from numba.core.ir import Print
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

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


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function in both forms: calls from Python compile its entry, calls from kernels link it."""

    def __init__(self, py_func: Callable[..., object]) -> None:
        options = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **OPTIONS}
        super().__init__(py_func, targetoptions=options)
        self._linked = CPUDispatcher(
            py_func, targetoptions={**options, **WITHOUT_WRAPPERS}, pipeline_class=LinkedCompiler
        )
        self.pinned: dict[tuple[Any, ...], Any] = {}  # entries by the types of the pinned arguments

    @classmethod
    def _rebuild(cls, uuid: str, py_func: Callable[..., object], **_: Any) -> Kernel:
        """Unpickle: return the kernel of this process, or create one."""
        try:
            known: Kernel = cls._memo[uuid]
        except KeyError:
            known = cls(py_func)
            known._set_uuid(uuid)
        return known

    @property
    def _numba_type_(self) -> Any:
        """The Numba type that other kernels see: that of the linked form."""
        return self._linked._numba_type_
