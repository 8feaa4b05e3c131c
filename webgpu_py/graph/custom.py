"""Operators of a user's own: WGSL, a signature and a shape rule, checked as the package's are.

@webgpu_py.kernel("my.scaled(x, by=2.0) -> y", WGSL)
def scaled(x, by):
return Launch(x.shape, {"numel": x.numel, "by": by})

y = g.call("my.scaled", x, 3.0)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import FormatError, LimitExceeded, ShapeError, UnsupportedOperator, WebGPUPyError
from .call import Call, TensorRef
from .dims import ceil_div
from .kernel import Number
from .lowering import Lowering
from .operator import Argument, Operator, Signature, parse_signature, register
from .values import BoolList, DoubleList, IntList, Null, SymInt, Tensor, TensorSpec, ValueList
from .wgsl_checks import DTYPES, CheckedKernel, check_wgsl, line_of_field

DEFAULT_WIDTH = 64
"""Invocations of a workgroup where the kernel leaves them to `wg_size`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What one call computes: the result's shape, the fields of Params, how many invocations.

    `shape` is a dict by name where the operator has several results. `threads` is the number of
    invocations that have work, by default one for each element of the first result; `groups`
    counts workgroups instead (one number, or two or three). `constants` sets overrides by name.
    """

    shape: Sequence[int] | Mapping[str, Sequence[int]]
    params: Mapping[str, Number] = field(default_factory=dict)
    threads: int | None = None
    groups: int | tuple[int, ...] | None = None
    constants: Mapping[str, float] = field(default_factory=dict)


Rule = Callable[..., Launch]
R = TypeVar("R", bound=Callable[..., Any])


class CustomOperator(Operator):
    """The operator of a user's kernel; `numpy` is its reference, where it has one."""

    def __init__(self, signature: Signature, checked: CheckedKernel, rule: Rule) -> None:
        super().__init__(signature)
        self.numpy: Callable[..., Any] | None = None
        self._checked = checked
        self._rule = rule

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        return self._specs(call, self._launch(call))

    def lower(self, call: Call, out: Lowering) -> None:
        launch = self._launch(call)
        specs = self._specs(call, launch)
        constants = dict(launch.constants)
        width = self._checked.width
        if width is None:
            width = int(constants.setdefault("wg_size", out.width(DEFAULT_WIDTH)))
        bind: dict[str, Any] = {
            a.name: call.optional_tensor(a.name)
            for a in self.signature.arguments
            if a.name in self._checked.elements
        }
        bind |= {name: call.out(at) for at, name in enumerate(self.signature.results)}
        groups = self._groups(call, launch, specs[0].numel, width, out)
        out.dispatch(self._checked.kernel, bind, launch.params, groups, constants)

    def reference(self, call: Call, **tensors: Any) -> Any:
        if self.numpy is None:
            raise call.error(
                UnsupportedOperator,
                "this kernel has no NumPy reference, so the cpu device can't run it; give it one "
                "with `@<kernel>.reference`, or use a device that runs WGSL",
            )
        given = {a.name: self._plain(call, a) for a in self.signature.arguments}
        return self.numpy(**(given | tensors))

    # -- the rule and what it says

    def _launch(self, call: Call) -> Launch:
        given = {a.name: self._plain(call, a) for a in self.signature.arguments}
        try:
            launch = self._rule(**given)
        except WebGPUPyError:
            raise
        except Exception as error:
            shapes = {k: v.shape for k, v in given.items() if isinstance(v, TensorSpec)}
            raise call.error(
                ShapeError, f"its shape rule refuses {shapes}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(launch, Launch):
            raise call.error(ShapeError, f"its rule gave {launch!r}, must be a webgpu_py.Launch")
        self._check_launch(call, launch)
        return launch

    def _check_launch(self, call: Call, launch: Launch) -> None:
        kernel = self._checked.kernel
        # `node` is the call's own place, which kernels that raise faults report.
        fields = {f.name for f in kernel.fields} - {"node"}
        for name in sorted(fields - set(launch.params)):
            raise call.error(
                FormatError,
                f"Params field {name!r} ({self.name}.wgsl:{line_of_field(kernel.wgsl, name)}) "
                f"is not given; the rule gives {sorted(launch.params)}",
            )
        for what, given, known in (
            ("Params field", launch.params, fields),
            ("override", launch.constants, kernel.overrides),
        ):
            unknown = sorted(set(given) - known)
            if unknown:
                raise call.error(
                    FormatError, f"the WGSL has no {what} {unknown[0]!r}; it has {sorted(known)}"
                )

    def _specs(self, call: Call, launch: Launch) -> list[TensorSpec]:
        results = self.signature.results
        shapes = launch.shape
        if not isinstance(shapes, Mapping):
            shapes = {results[0]: shapes}
        if set(shapes) != set(results):
            raise call.error(
                ShapeError,
                f"the rule gives shapes of {sorted(shapes)}, results are {list(results)}",
            )
        specs = []
        for name in results:
            dims = tuple(int(d) for d in shapes[name])
            call.check(min(dims, default=1) >= 1, f"{name} {list(dims)}, dims must be positive")
            specs.append(TensorSpec(DTYPES[self._checked.elements[name]][0], dims))
        return specs

    def _groups(
        self, call: Call, launch: Launch, numel: int, width: int, out: Lowering
    ) -> int | tuple[int, int, int]:
        most = out.limits.max_compute_invocations_per_workgroup
        if width > most:
            raise call.error(
                LimitExceeded, f"a workgroup of {width} invocations, this device allows {most}"
            )
        if launch.groups is not None:
            call.check(launch.threads is None, "the rule gives both threads and groups; give one")
            if not isinstance(launch.groups, int):
                x, y, z = (*launch.groups, 1, 1)[:3]
                return x, y, z
            groups = launch.groups
        else:
            groups = ceil_div(numel if launch.threads is None else launch.threads, width)
        limit = out.limits.max_compute_workgroups_per_dimension
        if groups > limit and not self._checked.folds:
            raise call.error(
                LimitExceeded,
                f"{groups} workgroups, allowed are {limit} in one dimension; begin the WGSL with "
                "`//! lib: grid` and index by linear_index(id, groups)",
            )
        return groups

    def _plain(self, call: Call, argument: Argument) -> Any:
        """An argument as the rule sees it: a TensorSpec, a number, a string, a list or None."""
        name, value = argument.name, call.value(argument.name)
        if name in self._checked.elements:
            return self._spec(call, name)
        if isinstance(value, Null):
            return argument.default
        if isinstance(value, (IntList, DoubleList, BoolList)):
            return list(value.items)
        if isinstance(value, (Tensor, ValueList)):
            raise call.error(FormatError, f"{name} is a tensor, but no WGSL binding is named so")
        if isinstance(value, SymInt):
            raise call.error(
                UnsupportedOperator,
                f"{name} is a SymInt, which changes without a new plan; pass it to a custom "
                "kernel as an int32 tensor of one element",
            )
        return value.value

    def _spec(self, call: Call, name: str) -> TensorSpec | None:
        found: TensorRef | None = call.optional_tensor(name)
        if found is None:
            return None
        element = self._checked.elements[name]
        return call.tensor(name, DTYPES[element]).spec


@dataclass(frozen=True, slots=True)
class CustomKernel:
    """What `kernel` makes of a shape rule; `@made.reference` lets the cpu device run it too."""

    operator: CustomOperator

    @property
    def name(self) -> str:
        """What `Graph.call` takes."""
        return self.operator.name

    def reference(self, function: R) -> R:
        """Decorator: what the kernel computes, of NumPy arrays and numbers by argument name."""
        _check_parameters(self.operator.signature, function, "reference")
        self.operator.numpy = function
        return function


def kernel(signature: str, wgsl: str) -> Callable[[Rule], CustomKernel]:
    """Make WGSL an operator, called as `g.call(name, ...)`; decorates its shape rule.

    `signature` is `"my.op(x, y=None, eps=1e-5) -> out"`: storage variables of the WGSL have the
    names of tensor arguments (`x!` where it is written in place) and results (`-> [a, b]` for
    several), Params the other numbers. The rule takes the arguments by name (tensors as
    TensorSpec: `shape`, `dtype`, `numel`), and returns a `Launch`; it runs at maximal dims when a
    graph is built and at live dims on each run. `//! lib: grid` on the first line appends
    `linear_index` and the override `wg_size`. Declaring a name again replaces it.

    Errors: FormatError names the line of the WGSL that does not fit.
    """
    try:
        parsed = parse_signature(signature)
    except (ValueError, SyntaxError) as error:
        raise FormatError(f"{error}; write 'my.op(x, eps=1e-5) -> out'") from None
    if parsed.kind == "symint":
        raise FormatError(f"{parsed.name}: a kernel's results are tensors, not a symint")
    checked = check_wgsl(parsed, wgsl)

    def declare(rule: Rule) -> CustomKernel:
        _check_parameters(parsed, rule, "shape rule")
        made = CustomOperator(parsed, checked, rule)
        register(made)
        return CustomKernel(made)

    return declare


def _check_parameters(signature: Signature, function: Callable[..., Any], what: str) -> None:
    have = list(inspect.signature(function).parameters)
    want = [a.name for a in signature.arguments]
    if have != want:
        raise FormatError(
            f"{signature.name}: its {what} takes ({', '.join(have)}), "
            f"must take the arguments ({', '.join(want)})"
        )
