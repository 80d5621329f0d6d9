"""Random calls of single operators: every public name with a schema, with arguments that fit and arguments that do not.

    python -m tests.random_programs.calls --programs 2000
    python -m tests.random_programs.calls --replay 1234
    python -m tests.random_programs.calls --names 'index_*' --once

A program makes a few tensors, calls one operator on them, notes all that the call returned or raised, looks at the
tensors, and differentiates the result. Not compared: the words of TypeErrors for calls that Python refuses to bind,
where the function is one of the smallest and has no guard (`argument_errors/guards.py`).
"""

from __future__ import annotations

import argparse
import fnmatch
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from ..parity.deviations import Deviation, read
from .comparison import Disagreement, compare
from .differential import explained, libraries
from .execution import Step, run
from .shrinking import decided

#: names that are not called: they depend on the machine, ask for memory, or are PyTorch's for other backends
_LEFT_OUT = (
    "cudnn*", "miopen*", "mkldnn*", "quantize*", "dequantize", "fbgemm*", "fake_quantize*", "q_*", "int_repr",
    "from_file", "to_mkldnn*", "choose_qparams*", "quantized*", "is_vulkan*", "to_padded_tensor", "is_pinned",
    "pin_memory", "sparse_*", "copy_sparse*", "fused_moving*", "rnn_*", "lstm*", "gru*", "ccol*", "crow*", "row_*",
    "col_*", "set_", "set_data", "resize_as_sparse_", "resize_as_sparse", "storage*", "empty*", "new_empty*",
    "record_stream", "_*", "get_gradients", "to_sparse*", "sspaddmm", "hspmm", "smm", "align_*", "rename*",
    "refine_names", "unsafe_*", "sym_*", "is_set_to", "hash", "resize", "resize_", "is_distributed",
    "conv_depthwise3d", "slow_conv*", "thnn_*", "nested*", "batch_norm_*", "native_*", "segment_reduce",
    "squeeze_copy", "ctc_loss", "is_grad_enabled", "set_grad_enabled", "save", "manual_seed", "seed", "get_device",
    "index", "item", "len", "list", "Size", "grad", "backward", "is_coalesced", "coalesce", "indices", "values",
    "ormqr", "abs_", "numpy_T", "matrix_H", "device", "layout", "normal_functional", "uniform", "random",
    "geometric", "cauchy", "exponential", "log_normal", "is_leaf", "output_nr", "requires_grad_", "retain_grad",
    "retains_grad", "data", "names", "qscheme", "values_copy", "grid_sampler*", "conv_tbc_backward", "dim_order",
    "result_type", "multilabel_margin_loss_forward", "linalg_ldl*", "adaptive_max_pool?d", "linalg__*",
)
_FLOATS = ("float32", "float32", "float64", "float64", "float32", "float16", "bfloat16")
_DTYPES = (*_FLOATS, "int64", "int64", "int32", "bool", "uint8", "int8", "int16", "complex64", "complex128")
_SHAPES = ((2, 3), (2, 3), (3,), (3, 3), (2, 2, 3), (1, 3), (3, 1), (), (0,), (2, 0), (1,), (2, 3, 4, 4), (1, 2, 4, 4),
           (4, 4))
_WRONG = ("None", "'a'", "1.5", "2", "[1]", "(1.5,)", "True", "1j", "{}", "torch.tensor(1)", "torch.float32", "[[1]]",
          "torch.ones(2)", "object", "-1", "'mean'", "[torch.ones(1)]", "torch.tensor([0, 1])", "slice(1)", "...",
          "[None]", "()", "float('nan')", "2**70", "b'x'")
#: decompositions whose vectors are compared up to a factor of size 1, and eigenvalues up to their order
_UP_TO_PHASES = ("linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_svd", "svd")
#: types of parameters that are not made here
_NOT_MADE = ("Dimname", "Dict", "t[]", "List[t]", "Future", "Any", "RRef", "Storage", "Stream")


@cache
def schemas() -> dict[str, list[Any]]:
    """PyTorch's schemas by public name: those whose arguments can be made here."""
    import torch

    found: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace != "aten" or any(fnmatch.fnmatchcase(name, pattern) for pattern in _LEFT_OUT):
            continue
        if not _callables(name, torch):
            continue
        types = [str(argument.real_type) for argument in schema.arguments]
        if any(part in text for text in types for part in _NOT_MADE):
            continue
        if not any("Tensor" in text for text in types) and any("str" in text or text == "t" for text in types):
            continue  # TorchScript's own functions of Python's objects
        if not any("Tensor" in text for text in types) and name not in _FACTORIES:
            continue
        found.setdefault(name, []).append(schema)
    return found


_FACTORIES = ("arange", "linspace", "logspace", "full", "zeros", "ones", "eye", "rand", "randn", "randint", "randperm",
              "tril_indices", "triu_indices", "hann_window", "hamming_window", "kaiser_window", "blackman_window",
              "bartlett_window", "scalar_tensor", "complex", "fft_fftfreq", "fft_rfftfreq")


def _callables(name: str, library: ModuleType) -> list[str]:
    """How an operator is called: as a function, `torch.{}(`, or as a method of its first argument."""
    found = []
    for prefix, path in (("linalg_", "torch.linalg"), ("special_", "torch.special"), ("fft_", "torch.fft")):
        if name.startswith(prefix) and callable(getattr(getattr(library, prefix[:-1]), name[len(prefix):], None)):
            return [f"{path}.{name[len(prefix):]}"]
    if callable(getattr(library, name, None)):
        found.append(f"torch.{name}")
    if callable(getattr(library.Tensor, name, None)):
        found.append(f".{name}")
    functional = library.nn.functional
    if not found and callable(getattr(functional, name, None)):
        found.append(f"torch.nn.functional.{name}")
    return found


class Caller:
    """A program of one call being written."""

    def __init__(self, seed: int, names: Sequence[str]) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.tensors = 0
        self.name = self.choose(*names)
        self.schema = self.choose(*schemas()[self.name])
        self.shape = self.choose(*_SHAPES)
        self.dtype = self.choose(*_DTYPES)
        self.alike = self.chance(0.7)  # whether tensors share shape and dtype
        self.wild = self.choose(0.0, 0.0, 0.1, 0.3)  # how often an argument is of another type

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def choose(self, *options: Any) -> Any:
        return self.random.choice(options)

    def tensor(self, name: str) -> str:
        """A new tensor's name, for a parameter's name."""
        self.tensors += 1
        x = f"x{self.tensors}"
        shape = self.shape if self.alike or self.chance(0.4) else self.choose(*_SHAPES)
        dtype = self.dtype if self.alike or self.chance(0.4) else self.choose(*_DTYPES)
        low, high = -2, 3
        if name in ("index", "indices", "target", "offsets", "repeats", "tau") and self.chance(0.85):
            dtype, low, high = self.choose("int64", "int64", "int64", "int32"), 0, 2
            if self.chance(0.1):
                low, high = -3, 9
        elif name in ("mask", "condition") and self.chance(0.85):
            dtype = "bool"
        if self.chance(0.08):
            shape = self.choose(*_SHAPES)
        if self.chance(0.06):
            dtype = self.choose(*_DTYPES)
        if name == "offsets" and (len(shape) != 1 or not shape[0]):
            shape = (2,)  # of others PyTorch may crash
        options = f", {low}, {high}" if (low, high) != (-2, 3) else ""
        if dtype[:3] in ("flo", "com", "bfl") and self.chance(0.45):
            options += ", grad=True"
        if self.chance(0.15):
            how = self.choose("permuted", "expanded", "stepped", "view", "offset", "inference")
            options += f", how='{how}'"
        self.lines.append(f"{x} = given({shape}, '{dtype}', {self.random.randrange(999)}{options})")
        return x

    def argument(self, argument: Any) -> str:
        """An expression for a parameter of the schema."""
        if self.chance(self.wild / 2):
            return str(self.choose(*_WRONG))
        return self.of_type(str(argument.real_type), argument.name, argument.N)

    def of_type(self, kind: str, name: str, n: int | None) -> str:
        if kind.startswith("Optional["):
            return "None" if self.chance(0.2) else self.of_type(kind[9:-1], name, n)
        if kind == "Tensor":
            return self.tensor(name)
        if kind.startswith("List["):
            inner = kind[5:-1]
            if inner.startswith("int") or inner == "SymInt":
                if self.chance(0.3):
                    return self.of_type("int", name, None)
                count = n if n and self.chance(0.7) else self.choose(0, 1, 2, 2, 3)
                made = ", ".join(self.of_type("int", name, None) for _ in range(count))
                return f"[{made}]" if self.chance(0.5) else f"({made}{',' if count == 1 else ''})"
            count = n if n and self.chance(0.7) else self.choose(1, 2, 2, 3)
            return "[" + ", ".join(self.of_type(inner, name, None) for _ in range(count)) + "]"
        if kind in ("int", "SymInt"):
            if self.name in ("special_multigammaln", "mvlgamma") and name == "p":
                return str(self.choose(1, 2, 3, 0, -1))  # PyTorch makes a tensor of so many elements
            if "size" in name or name in ("n", "repeats", "num", "shape", "dims", "num_classes", "minlength"):
                return str(self.choose(0, 1, 2, 2, 3, 3, 4, -1))
            return str(self.choose(0, 0, 0, 1, 1, -1, -1, 2, -2, 3, 7, -5)) if self.chance(0.97) else str(
                self.choose("True", "2**40", "torch.tensor(1)", "1.0"))
        if kind == "float":
            return str(self.choose(0.5, 1.0, 2, 0.0, -1.5, 1, "float('inf')", 1e-5, "float('nan')"))
        if kind in ("number", "Scalar"):
            return str(self.choose(0.5, 1, 2, 0, -1, -1.5, 3, "True", "1j", "torch.tensor(2)", "float('inf')", 300))
        if kind == "bool":
            return str(self.choose("True", "False")) if self.chance(0.95) else str(self.choose("1", "0", "None"))
        if kind == "ScalarType":
            return f"torch.{self.choose(*_DTYPES)}"
        if kind == "Layout":
            return str(self.choose("torch.strided", "torch.strided", "torch.strided", "torch.sparse_coo"))
        if kind == "Device":
            return str(self.choose("'cpu'", "torch.device('cpu')", "'meta'", "'cuda'", "'nowhere'", "'cpu:1'"))
        if kind == "MemoryFormat":
            return f"torch.{self.choose('contiguous_format', 'preserve_format', 'channels_last')}"
        if kind == "Generator":
            return str(self.choose("torch.Generator().manual_seed(3)", "torch.Generator().manual_seed(3)", "None"))
        if kind == "str":
            return repr(self.choose(*_STRINGS.get(name, ("mean", "sum", "other"))))
        if kind == "complex":
            return str(self.choose("1j", "0.5", "(1+2j)"))
        return str(self.choose(*_WRONG))

    def call(self) -> str:
        """The call's expression."""
        how, positional, named = self.parts()
        return joined(how, positional, named)

    def parts(self) -> tuple[str, list[str], list[str]]:
        """How the operator is called, and the arguments by position and by name."""
        import torch

        how = self.choose(*_callables(self.name, torch))
        positional: list[str] = []
        named: list[str] = []
        arguments = list(self.schema.arguments)
        started = False
        for argument in arguments:
            if argument.has_default_value() and self.chance(0.55):
                started = True
                continue
            if self.chance(self.wild * 0.1):
                started = True
                continue
            value = self.argument(argument)
            if argument.kwarg_only or started or (positional and self.chance(0.12)):
                started = True
                named.append(f"{'input' if argument.name == 'self' else argument.name}={value}")
            else:
                positional.append(value)
        if self.chance(self.wild * 0.2):
            named.append(self.choose("other=2", "wrong=1", "dim=0", "out=None", "dtype=torch.int8", "axis=0", "x=x1"))
        if self.chance(self.wild * 0.1):
            positional.append(str(self.choose(*_WRONG)))
        if how.startswith(".") and (not positional or not positional[0].startswith("x")):
            positional[:1] = [self.tensor("self")]
        return how, positional, named

    def written(self) -> list[str]:
        """The program's statements."""
        call = self.call()
        lines = [*self.lines, "torch.manual_seed(5)"]
        if self.chance(0.1):
            mode = self.choose("no_grad", "inference_mode", "enable_grad")
            lines.append(f"with torch.{mode}():\n    r = {call}")
        else:
            lines.append(f"r = {call}")
        fixed = f"unphased(r, '{self.name}')" if self.name in _UP_TO_PHASES else "r"
        if fixed != "r":
            lines += ["note(without_values(described(r)))", f"note(described({fixed}))"]
            lines += [] if "out=" in call or self.name == "linalg_eigvals" else ["look()"]
        else:
            lines += ["note(described(r))", "look()"]
        given = [f"x{i + 1}" for i, line in enumerate(self.lines) if "grad=True" in line]
        if given and self.chance(0.7):
            lines.append(f"note(differentiated({fixed}, [{', '.join(given)}], {self.chance(0.3)}))")
        lines.append("note(torch.rand(1))")
        return lines


def joined(how: str, positional: list[str], named: list[str]) -> str:
    """The expression of a call: of a method, if `how` begins with a point."""
    if how.startswith("."):
        return f"{positional[0]}{how}({', '.join([*positional[1:], *named])})"
    return f"{how}({', '.join([*positional, *named])})"


_STRINGS = {"reduction": ("mean", "sum", "none", "other"),
            "reduce": ("sum", "prod", "mean", "amax", "amin", "other", "add", "multiply"),
            "rounding_mode": ("trunc", "floor", "other"), "ord": ("fro", "nuc", "other"), "p": ("fro", "nuc", "other"),
            "mode": ("reduced", "complete", "r", "other"), "UPLO": ("L", "U", "X"), "indexing": ("ij", "xy", "other"),
            "interpolation": ("linear", "lower", "higher", "midpoint", "nearest", "other"),
            "norm": ("forward", "backward", "ortho", "other"), "pad_mode": ("reflect", "constant"),
            "approximate": ("none", "tanh", "other"), "side": ("left", "right", "other"),
            "equation": ("ij,jk->ik", "ij->ji", "ii", "...i->...", "ij,kj"), "driver": ("gels", "gelsd", "x"),
            "padding": ("same", "valid", "x")}


def written(seed: int, names: Sequence[str] | None = None) -> list[str]:
    """The program of a seed."""
    return Caller(seed, names or sorted(schemas())).written()


def checked(seed: int, names: Sequence[str] | None = None) -> tuple[list[str], Disagreement | None]:
    """The program of a seed, and where the libraries disagree about it."""
    here, there = libraries()
    program = written(seed, names)
    steps = run(program, there)
    found = compare(run(program, here), steps)
    if found is not None and (is_pythons(found) or is_left_over(found, steps) or is_listed(found, program)):
        return program, None
    return program, decided(program, found, steps, here, there)


def is_left_over(found: Disagreement, steps: Sequence[Step]) -> bool:
    """Whether a value differs that is undefined: of the `out=` of a call that failed under both libraries.

    PyTorch may have resized it, to memory that is not written, or have written a part of the result.
    """
    if found.text == "look()" and "negative dimensions" in str(found.there):
        return True  # PyTorch gave it a negative size
    if found.kind != "value" or found.text != "look()":
        return False
    name = found.what.partition(".")[0]
    return any(step.error and re.search(rf"out=[\[(]?[^)]*\b{name}\b", step.text) for step in steps[:found.index])


def is_listed(found: Disagreement, program: Sequence[str]) -> bool:
    """Whether the ledger lists a call's difference: under the check `calls`, with its kind in place of a dtype, or a
    dtype for values."""
    called = next((text for text in program if "r = " in text), "")
    return any(line.check == "calls" and re.search(rf"\b{_pattern(line.op)}\(", called) and (
        line.dtype == found.kind or (found.kind == "value" and any(f"'{line.dtype}'" in text for text in program)))
               for line in ledger())


@cache
def ledger() -> list[Deviation]:
    """The lines of `tests/torch_deviations.txt`."""
    return read()


def _pattern(name: str) -> str:
    return re.escape(name).replace(r"\*", r"\w*")


def is_pythons(found: Disagreement | None) -> bool:
    """Whether both libraries raise TypeError, and the words here are Python's, which could not bind the call."""
    return found is not None and found.what == "error" and bool(_PYTHONS.match(str(found.here))) and (
        str(found.there).startswith("TypeError"))


#: what Python says of a call that it cannot bind
_PYTHONS = re.compile(r"TypeError: \w+\(\) (got an unexpected keyword argument|got multiple values|takes \d+ positional"
                      r"|takes from|missing \d+ required)")


def main(check: Callable[..., Any] = checked) -> int:
    """Run programs; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.calls", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000, help="how many (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed (default 0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run the program of one seed")
    parser.add_argument("--names", default="*", help="operators, as a pattern")
    parser.add_argument("--once", action="store_true", help="show one disagreement an operator and kind")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--most", type=int, default=10, help="stop after so many disagreements (default 10)")
    given = parser.parse_args()
    libraries()
    names = [name for name in sorted(schemas()) if fnmatch.fnmatchcase(name, given.names)]
    seeds = [given.replay] if given.replay is not None else range(given.seed, given.seed + given.programs)
    failed: list[int] = []
    began, known = time.perf_counter(), set[tuple[str, str]]()
    for seed in seeds:
        program, found = check(seed, names)
        if given.show:
            print(f"# seed {seed}\n" + "\n".join(program) + "\n")
        if found is None:
            continue
        failed.append(seed)
        key = Caller(seed, names).name, found.kind
        if given.once and key in known:
            continue
        known.add(key)
        print(explained(seed, program, found, command="tests.random_programs.calls"), flush=True)
        if len(failed) >= given.most:
            break
    print(f"{len(seeds)} programs, {len(failed)} disagreements, {time.perf_counter() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
