"""The public methods of the Rust `Tensor`, read from its sources, and drafts for the stub.

    python zyx-py/tools/rust_api.py            lists methods that the stub lacks, as drafts of entries
    python zyx-py/tools/rust_api.py --table    writes `docs/names.md`, the names of both side by side

A draft has the parameters in order, the annotations that `build/emit.rs` knows, and the first
paragraph of the Rust documentation. What it cannot translate it marks with `?`.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUB = ROOT / "zyx-py" / "python" / "zyx" / "_core.pyi"

# Rust types of parameters and their annotations.
ANNOTATIONS = {
    "impl Operand": "Operand",
    "impl Axes": "Axes",
    "impl super::Axes": "Axes",
    "isize": "Axis",
    "usize": "Size",
    "i64": "Int",
    "u64": "Size",
    "f64": "float",
    "bool": "bool",
    "&str": "str",
    "&Tensor": "TensorLike",
    "Option<&Tensor>": "TensorLike | None = None",
    "impl Into<Shape>": "Shape",
    "impl AsRef<[isize]>": "AxisList",
    "impl AsRef<[usize]>": "Sizes",
    "&[usize]": "Sizes",
    "&[isize]": "AxisList",
    "[usize; 1]": "One",
    "[usize; 2]": "Pair",
    "[usize; 3]": "Triple",
    "impl AsRef<[(usize, usize)]>": "Pads",
    "&[&Tensor]": "Tensors",
    "DType": "DTypeLike",
    "Option<DType>": "DTypeLike | None = None",
    "&Device": "DeviceLike | None = None",
    "&crate::runtime::Device": "DeviceLike",
    "&mut Rng": "Generator | None = None",
    "Reduction": 'Reduction = "mean"',
    "Option<usize>": "Size | None = None",
    "Option<isize>": "Axis | None = None",
    "Option<f64>": "float | None = None",
    "Option<i64>": "Int | None = None",
}
RESULTS = {
    "Tensor": "Tensor",
    "Vec<Tensor>": "list[Tensor]",
    "(Tensor, Tensor)": "tuple[Tensor, Tensor]",
    "(Tensor, Tensor, Tensor)": "tuple[Tensor, Tensor, Tensor]",
    "bool": "bool",
    "usize": "int",
    "()": "None",
}


class Method:
    """One public method of `Tensor`."""

    def __init__(self, name, parameters, result, doc, file):
        self.name, self.parameters, self.result, self.doc, self.file = name, parameters, result, doc, file

    def draft(self):
        """An entry for the stub."""
        parts = []
        static = not any(p in ("&self", "self") for p in self.parameters)
        for parameter in self.parameters:
            if parameter in ("&self", "self"):
                parts.append("self")
                continue
            name, _, kind = parameter.partition(":")
            name, kind = name.strip().removeprefix("mut "), kind.strip()
            name = {"rhs": "other", "axes": "axis", "lambda": "lambd"}.get(name, name)
            parts.append(f"{name}: {ANNOTATIONS.get(kind, '?' + kind)}")
        result = re.sub(r"^Result<(.*)>$", r"\1", self.result)
        lines = ["    @staticmethod"] if static else []
        lines.append(f"    def {self.name}({', '.join(parts)}) -> {RESULTS.get(result, '?' + result)}:")
        lines.append(f'        """{self.doc}"""')
        return "\n".join(lines)


def sources():
    folder = ROOT / "zyx-core" / "src"
    return sorted((folder / "tensor").rglob("*.rs")) + sorted(folder.glob("autodiff*.rs")) + sorted(
        folder.glob("autodiff/*.rs")
    )


def documentation(lines, at):
    """The first paragraph of the doc comment that ends above a line."""
    doc = []
    while at > 0 and re.match(r"\s*(///|#\[)", lines[at - 1]):
        at -= 1
        if lines[at].strip().startswith("///"):
            doc.append(lines[at].strip()[3:].strip())
    paragraph = []
    for line in reversed(doc):
        if not line and paragraph:
            break
        if line:
            paragraph.append(line)
    text = " ".join(paragraph)
    text = re.sub(r"\[`([^`]*)`\](\([^)]*\))?", r"`\1`", text).replace("Tensor::", "")
    return text.replace("\\", "\\\\")


def template(text):
    """Macros that make methods: the signature after `$name` (and `$other`) of each."""
    found = {}
    for match in re.finditer(r"^macro_rules! (\w+) \{(.*?)^\}", text, re.S | re.M):
        names = re.findall(r"pub fn \$(\w+)(?:<[^>]*>)?\((.*?)\)\s*->\s*([^{]+?)\s*\{", match[2], re.S)
        if names:
            found[match[1]] = names
    return found


def split(text):
    """Splits at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([<{"
        depth -= c in ")]}" or (c == ">" and text[i - 1] != "-")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [re.sub(r"\s+", " ", part).strip() for part in parts if part.strip()]


def methods():
    """Every public method of `Tensor`, by name."""
    found = {}
    for file in sources():
        text = file.read_text().split("#[cfg(test)]")[0]
        lines = text.splitlines()
        macros, owner, rows = template(text), "", None
        for i, line in enumerate(lines):
            if match := re.match(r"impl(?:<[^>]*>)? (\w+)", line):
                owner = "" if " for " in line else match[1]
            if match := re.match(r"(\w+)! \{$", line):
                rows = macros.get(match[1])
            elif line == "}":
                rows = None
            if rows and (match := re.match(r"    ([a-z_][a-z0-9_]*)((?: [a-z_][a-z0-9_]*)*)", line)):
                names = [match[1], *match[2].split()]
                for name, (_, parameters, result) in zip(names, rows):
                    doc = documentation(lines, i)
                    found[name] = Method(name, split(parameters), result, doc, file.name)
            head = re.match(r"    pub fn (\w+)", line)
            attributes = "\n".join(lines[max(0, i - 4) : i])
            if head and owner == "Tensor" and "#[doc(hidden)]" not in attributes:
                whole = "\n".join(lines[i : i + 20])
                match = re.match(
                    r"    pub fn \w+(?:<[^(]*?>)?\((.*?)\)\s*(?:->\s*([^{]+?)\s*)?(?:where[^{]*)?\{", whole, re.S
                )
                result = re.sub(r"\s+", " ", match[2] or "()")
                found[head[1]] = Method(head[1], split(match[1]), result, documentation(lines, i), file.name)
    return found


# Exports of the crates `nn` and `optim` that Python has in another form, or not, and why.
NOT_BOUND = {
    "nn": {
        "Init": "`device` and `dtype` of each layer, and `zyx.manual_seed`",
        "Around": "`padding` and `padding_mode` of convolutions",
        "Fan": "initialisers are the layers' own",
        "Path": "visiting is `named_parameters`",
        "Visitor": "visiting is `named_parameters`",
        "Mode": "the attribute `training`",
        "Forward": "a module is called",
        "Loss": "a module is called",
        "Param": "`nn.Parameter`",
        "RngStream": "each layer keeps its own",
        "Loaded": "what `load_state_dict` gives",
        "AttentionMask": "keyword arguments",
        "BagMode": "a string",
        "RotaryPairs": "halves only",
        "TransformerActivation": "a string",
    },
    "optim": {
        "Proposal": "inside of steps",
        "Param": "`nn.Parameter`",
        "Accumulator": "add gradients, then `apply` them",
    },
}


# Methods of the Rust `Device` that Python has in another form, or not, and why.
DEVICE_ELSEWHERE = {
    "info": "`name`, `kind` and `memory`",
    "caps": "for those who write passes",
    "alloc": "memory is the tensors'",
    "write": "memory is the tensors'",
    "read": "memory is the tensors'",
    "program": "kernels are generated",
    "prepare": "kernels are generated",
    "source": "kernels are generated",
    "set_optimizer": "for those who write passes",
    "submit": "tensors submit",
    "litmus": "look-back in kernels asks for it by itself",
    "progress": "look-back in kernels asks for it by itself",
    "register_pass": "passes are Rust",
    "raw_program": "`Kernel.with_raw`",
    "raw_languages": "`Kernel.with_raw`",
    "set_call_site": "set by each call",
}


def device_methods():
    """The public methods of the Rust `Device`."""
    names = set()
    for file in sorted((ROOT / "zyx-core" / "src" / "runtime").glob("*.rs")):
        text = file.read_text().split("#[cfg(test)]\nmod ")[0]
        for block in re.findall(r"^impl Device \{$(.*?)^\}$", text, re.S | re.M):
            names |= set(re.findall(r"^    pub fn (\w+)", block, re.M))
    return names


# Types of the kernel language that Python has as classes of `zyx.lang`.
LANG = ["Array", "Group", "Lang", "LookBack", "Matrix", "Queue", "Rows", "Val", "Var"]
# Methods of them that Python has in another form, or not, and why.
LANG_ELSEWHERE = {
    "Array.at": "`x[i]`", "Array.set": "`x[i] = value`", "Array.rank": "`ndim`", "Array.extent": "`shape[axis]`",
    "Matrix.each_of": "`each`, of any number of rows",
    "Matrix.map_rows_of": "`map_rows`, of any number of rows", "Rows.map_of": "`map`, of any number of rows",
    "Lang.caps": "parameters are numbers that a device tunes", "Val.literal": "numbers are Python's",
    "Lang.error": "for bindings", "Lang.fail": "for bindings", "Lang.group": "for bindings", "Lang.has_failed": "for bindings",
    "Lang.is_over": "for bindings", "Lang.is_trial": "for bindings", "Lang.set_site": "for bindings", "Lang.val_of": "for bindings",
    "Val.id": "for bindings", "Val.is_nonnegative": "for bindings", "Val.lang": "for bindings",
}  # fmt: skip


def lang_methods():
    """The public methods of the Rust types of the kernel language, as `Type.method`."""
    names = set()
    for file in sorted((ROOT / "zyx-ir" / "src" / "lang").glob("*.rs")):
        for owner, block in re.findall(r"^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? \{$(.*?)^\}$", file.read_text(), re.S | re.M):
            # With the rows of `methods!`.
            found = re.findall(r"^    pub fn (\w+)|^        (\w+)\(self\b[^)]*\) = ", block, re.M)
            names |= {f"{owner}.{name or row}" for name, row in found if owner in LANG}
    return names


def types(crate):
    """The layers or optimizers that a crate exports."""
    text = (ROOT / crate / "src" / "lib.rs").read_text()
    names = re.findall(r"\b[A-Z]\w+", " ".join(re.findall(r"^pub use (.*?);", text, re.S | re.M)))
    return [n for n in names if n not in NOT_BOUND[crate] and not n.endswith("Options")]


# Methods of Rust that Python has under another name or not at all, and why.
ELSEWHERE = {
    "new": "the constructor, `Tensor(data)`",
    "from_slice": "the constructor, `Tensor(data)`",
    "scalar": "the constructor, `Tensor(number)`",
    "param_gradients": "`backward`",
    "from_owner": "`from_dlpack`, which shares memory",
    "from_reader": "`from_bytes`",
    "from_shared": "`from_dlpack`, which shares memory",
    "write_to": "`zyx.save`, or `to_bytes`",
    "host_view": "`numpy()` and `__dlpack__`, which share memory",
    "read_async": "`numpy()` in a thread of its own",
    "realize_replacing": "optimizers, which give up their old state by themselves",
    "is_tracked": "the attribute `requires_grad`",
    "vmap_many": "`vmap`; what a function writes to its arguments is further results",
}


# Names that Python has beside Rust's, and what they are in Rust.
PYTHON_ONLY = {
    "T": "`permute` with the axes in reverse order",
    "mT": "`t`",
    "astype": "`cast`",
    "to": "`cast` and `to_device`",
    "cpu": "`to_device`",
    "bfloat16": "`cast`", "bool": "`cast`", "double": "`cast`", "float": "`cast`", "half": "`cast`", "int": "`cast`",
    "long": "`cast`", "type_as": "`cast`", "byte": "`cast`", "char": "`cast`", "short": "`cast`",
    "backward": "`param_gradients`", "is_leaf": "`is_tracked`", "data": "`detach`",
    "clamp_max": "`minimum`", "clamp_min": "`maximum`", "fill": "`full_like`", "positive": "nothing", "rsub": "`sub`",
    "cuda": "`to_device`", "pin_memory": "nothing: copies need no preparation", "reshape_as": "`reshape`",
    "tensorsolve": "`solve`", "new_empty": "`zeros` with the dtype and device of another",
    "compile": "nothing: every computation is compiled", "load": "`Module::load` and files of `io`", "save": "`Module::save` and files of `io`",
    "clip": "`clamp`",
    "clone": "`Clone`; of a `Param` its `tensor`",
    "dim": "`rank`", "ndim": "`rank`",
    "dist": "`vector_norm` of the difference",
    "element_size": "`dtype().size()`", "itemsize": "`dtype().size()`", "nbytes": "`numel` and `dtype().size()`",
    "is_floating_point": "`dtype().is_float()`",
    "size": "`numel`",
    "expand_as": "`expand`",
    "view": "`reshape`", "view_as": "`reshape`",
    "ravel": "`flatten`",
    "gradient": "`grad`, with zeros where the value does not depend on a leaf",
    "requires_grad": "`is_tracked`",
    "requires_grad_": "`tracked`, `detach`",
    "mm": "`matmul`",
    "new_full": "`full` with the dtype and device of another", "new_ones": "`ones` with the dtype and device of another",
    "new_zeros": "`zeros` with the dtype and device of another",
    "numpy": "`host_view`, `to_vec`", "tolist": "`to_vec`",
    "where": "`where_`, which is the condition's method",
    # Functions of the module.
    "addbmm": "`bmm`, `sum`, `add`",
    "addmv": "`mv`, `add`",
    "addr": "`outer`, `add`",
    "as_tensor": "`Tensor::new`",
    "broadcast_shapes": "`broadcast_tensors`",
    "combinations": "`index_select`",
    "empty": "`zeros`; a tensor has a value", "empty_like": "`zeros_like`; a tensor has a value",
    "from_numpy": "`from_shared`",
    "isin": "`eq`, `any`",
    "mvlgamma": "a sum of `lgamma`",
    "renorm": "`norm_p`, `mul`",
    "value_and_grad": "`tracked`, `grad`",
    "jit": "`Jit`",
    "Kernel": "`kernel::Kernel`",
    "kernel": "`kernel::Kernel`",
    "enable_grad": "no mode in Rust: `detach`", "inference_mode": "no mode in Rust: `detach`",
    "is_grad_enabled": "no mode in Rust: `detach`", "no_grad": "no mode in Rust: `detach`",
    "set_grad_enabled": "no mode in Rust: `detach`",
    "devices": "`Device::list`", "tensor": "`Tensor::new`", "manual_seed": "`zyx::seed`",
    "from_dlpack": "`from_shared`",
    "load_npy": "`io::npy::load`", "save_npy": "`io::npy::save`", "load_npz": "`io::npz::load`", "save_npz": "`io::npz::save`",
    "load_pytorch": "`io::pytorch::load`",
    "open_gguf": "`io::gguf::Gguf::open`", "open_safetensors": "`nn::safetensors::open`",
    "load_safetensors": "`nn::safetensors::load`", "save_safetensors": "`nn::safetensors::save`",
    "safetensors_from_bytes": "`nn::safetensors::from_bytes`", "safetensors_to_bytes": "`nn::safetensors::to_bytes`",
    "clip_norm": "`optim::clip_norm`", "clip_value": "`optim::clip_value`",
    # Layers in PyTorch's spelling that mean another thing than Rust's, or take other options.
    "GELU": "`GeluExact`, or `Gelu` with `approximate=\"tanh\"`",
    "BCELoss": "`BceLoss`, with a weight", "BCEWithLogitsLoss": "`BceWithLogitsLoss`, with weights",
    "KLDivLoss": "`KlDivLoss`", "NLLLoss": "`NllLoss`, with weights",
} | {f"{kind}Pad{axes}d": "`Pad`" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for axes in (1, 2, 3)}  # fmt: skip


# Methods that write, beside those of `_writes.py` that write what a method of another name gives.
WRITES = {
    "copy_": "a new value", "zero_": "`zeros_like`", "fill_diagonal_": "`diagonal_scatter`", "detach_": "`detach`",
    "apply_": "`to_vec`, `from_slice`", "share_memory_": "nothing", "normal_": "`normal`", "uniform_": "`rand_range`",
    "random_": "`randint`", "exponential_": "`exponential`", "geometric_": "`geometric`", "cauchy_": "`cauchy`",
    "log_normal_": "`lognormal`", "is_contiguous": "nothing: views share no memory", "fill_": "`full_like`",
}  # fmt: skip


def writing(name):
    """What a method that writes is in Rust, where tensors never change."""
    if name in WRITES:
        return WRITES[name]
    return f"`{name[:-1]}`, which gives a new tensor" if name.endswith("_") else None


def second_names(text):
    """What a stub gives a second name: `name = other`."""
    found = dict(re.findall(r"^ *(\w+) = (\w+)$", text, re.M))
    return {name: other for name, other in found.items() if name not in ("Param", "Text")}


def python_names():
    """The names that Python has beside Rust's, each with what it is in Rust, or nothing."""
    rust, package = set(methods()), STUB.parent
    core, top = STUB.read_text(), (package / "__init__.pyi").read_text()
    layers = (package / "nn" / "__init__.pyi").read_text()
    names = bound() | set(re.findall(r"^def (\w+)", core + top, re.M)) | set(re.findall(r"^from \.(?:_grad_mode|_types|_summary|_kernel|sparse|amp) import (\w+)", top, re.M))
    found = {name: PYTHON_ONLY.get(name, writing(name)) for name in names - rust if not name.startswith("_")}
    found |= {name: PYTHON_ONLY.get(name) for name in set(re.findall(r"^class (\w+)", layers, re.M)) - set(types("nn"))}
    # Names in the part that `python_stubs.py` writes are made in Python.
    for text in (core, top, layers):
        written = text.split("# Written by tools/python_stubs.py from here", 1)[1].split("# to here.", 1)[0]
        for name in re.findall(r"^ *(?:def|class) (\w+)|^from \.\w+ import (\w+)", written, re.M):
            name = name[0] or name[1]
            if name in found and found[name] is None:
                found[name] = "nothing: made in Python of others"
    # Layers in PyTorch's spelling, by their names of Rust.
    spelled = {name.lower(): name for name in types("nn")}
    found |= {name: f"`{spelled[name.lower()]}`" for name in found if name.lower() in spelled and spelled[name.lower()] != name}
    return found | {name: f"`{other}`" for name, other in (second_names(core) | second_names(layers)).items()}


def reason(name, methods):
    """Why Python lacks a name of Rust, or nothing."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    base = name.removesuffix("_with")
    if base != name and base in methods:
        return f"`{base}`, whose options are keyword arguments"
    return None


def bound():
    """The names that the stub gives to `Tensor`."""
    text = STUB.read_text()
    inside = re.search(r"^class Tensor.*?(?=^class |\Z)", text, re.S | re.M)[0]
    return set(re.findall(r"^    def (\w+)", inside, re.M))


NAMES = ROOT / "docs" / "names.md"


def table():
    """The text of `docs/names.md`."""
    rust, python = methods(), bound()
    same = sorted(name for name in rust if name in python)
    lines = [
        "# Names in Rust and in Python",
        "",
        "Written by `python zyx-py/tools/rust_api.py --table`; a test fails when it is not current, or a name is not explained.",
        "",
        "## The same in both",
        "",
        f"{len(same)} methods of `Tensor` have one name, and every one of them is also a function of the module `zyx`:",
        "",
        " ".join(f"`{name}`" for name in same),
        "",
        "So have the layers of `nn` and the optimizers of `optim`:",
        "",
        " ".join(f"`{name}`" for crate in ("nn", "optim") for name in sorted(set(types(crate)))),
        "",
        "## Rust's that Python has in another form",
        "",
        "| Rust | Python |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {reason(name, rust) or 'MISSING'} |" for name in sorted(rust) if name not in python]
    for crate, names in NOT_BOUND.items():
        lines += [f"| `{crate}::{name}` | {why} |" for name, why in sorted(names.items())]
    lines += [f"| `Device::{name}` | {why} |" for name, why in sorted(DEVICE_ELSEWHERE.items())]
    lines += ["", "## Python's beside these, as users of PyTorch and NumPy write them", "", "| Python | Rust |", "|---|---|"]
    lines += [f"| `{name}` | {why or 'UNEXPLAINED'} |" for name, why in sorted(python_names().items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--table" in sys.argv:
        NAMES.write_text(table())
    else:
        known, all_methods = bound(), methods()
        for method in all_methods.values():
            if method.name not in known and not reason(method.name, all_methods):
                print(f"    # {method.file}\n{method.draft()}\n")
