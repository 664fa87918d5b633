"""The public names of PyTorch, and how many of them zyx has: `data/pytorch_names.txt`.

A line of the file has a module and a name of it. A name is *same* if zyx has it with the parameters that
`data/pytorch_signatures.txt` lists, *different* if a parameter is missing, else *absent*.

    python zyx-py/tests/pytorch_names.py --write     writes the file again; this needs `torch`
    python zyx-py/tests/pytorch_names.py [module]    prints the shares; of a module also its names

`HIDDEN` lists names that are reachable and that PyTorch does not document for users.
"""

import collections
import pathlib
import re
import sys

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_names.txt"
MODULES = ("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data")
# Patterns of names that are no part of the interface for users, and why.
HIDDEN = {
    r"(cudnn|miopen|mkldnn|fbgemm|quantized|embedding_renorm|native|unsafe|constant_pad_nd|thnn|slow_conv).*": "kernels behind functions",
    r"q_(per_channel|scale|zero).*|quantize_per.*|fake_quantize.*|fused_moving_avg.*|dequantize|int_repr|choose_qparams.*|qscheme|per_(channel|tensor).*|(Q|qu?)[iu]?int\d.*|QU?Int.*": "quantised tensors",
    r".*_copy|.*_backward(_.*)?|.*_forward|max_pool\dd_with_indices|batch_norm_.*|.*_lstm|.*_gru|ctc_loss|.*_(with|and)_.*_out|convolution|lstm(_cell)?|gru(_cell)?|rnn_(tanh|relu)(_cell)?": "functions of the dispatcher; users call nn.functional",
    r"sym_.*|Sym(Int|Float|Bool)|.*Storage(Base)?|storage|Storage|typename|LoggerBase|ErrorReport|Graph|.*ObserverBase|.*(JIT|Script|Jit).*": "the compiler of PyTorch and storages",
    r"(u?int|bits)[1-7](x\d)?|bits\d*(x\d)?|float8.*|float4.*|c?half|complex32|chalf|quint.*|qint.*": "dtypes of less than a byte, of quantisation and experiments",
    r"AVG|SUM|AliasDb|(Complete)?Argument(Spec)?|Benchmark.*|Block|BufferDict|CallStack|Capsule|Code|CompilationUnit|ConcreteModule.*|DeepCopy.*|"
    r"(Des|S)erialization.*|DisableTorch.*|DispatchKey(Set)?|ExcludeDispatch.*|ExecutionPlan|FatalError|FileCheck|FunctionSchema|Gradient|GraphExecutor.*|"
    r"IODescriptor|LockingLogger|ModuleDict|Node|NoopLogger|OperatorInfo|PyTorchFile.*|StaticModule|Tag|ThroughputBenchmark|TracingState|Type|Value|"
    r"cpp|eig|symeig|profiler_allow.*|thread_safe_generator|has_(lapack|mkl|openmp|spectral)|[A-Z]+[a-zA-Z]*Type|Use.*|USE.*|PRIVATE.*|TYPE_CHECKING|.*Error_?Report|(import|merge|unify|parse|wait|fork|read|init|vitals|set_vital).*|.*Future": "parts of PyTorch's JIT",
    r"classproperty|(get|prepare)_(file_path|multi).*|autocast_(inc|dec).*|(is|set|get|clear)_auto(cast|grad)_?.*|compiled_with.*|.*_legacy.*|classes|ops|library|foreach|return_types|overrides|functional|ao|contiguous_format|(channels|preserve|legacy)_.*": "internals",
    r"(mps|mtia|xpu|hpu|ipu|cpu|maia|vulkan|mkldnn)|is_(mps|mtia|xpu|hpu|ipu|maia|vulkan|mkldnn)|is_(vulkan|metal)_available": "other devices",
    r"handle_torch_function|has_torch_function.*|assert_int_or_pair|boolean_dispatch|BroadcastingList\d|GRID_.*|.*_notes|(Scaling|Swizzle)Type|scaled_(addmm_?|mm|grouped_mm)|grouped_mm|(common|factory)_.*|Container|LinearCrossEntropyOptions|intrinsic|modules|qat|quantizable|quantized|parameter": "internals of nn",
    r"datapipes|graph|graph_settings|functional_datapipe|.*DataPipe|runtime_validation.*|guaranteed_.*|argument_validation|non_deterministic|.*_DataPipe.*": "data pipes, deprecated",
    r"names|align_(to|as)|refine_names|rename_?|has_names|imag|real|is_conj|is_neg|resolve_(conj|neg)|adjoint_?": "named tensors and complex numbers",
    r"is_distributed|ccol_indices|crow_indices|col_indices|row_indices|(sparse|to_sparse|is_sparse|is_coalesced|coalesce|sspaddmm|smm|hspmm|dsmm|saddmm|hsmm|spmm|ssp).*|to_dense|to_padded.*|to_mkldnn|.*sparse.*|masked|nested|jagged|layout|strided|indices|values|is_nested": "sparse and nested tensors",
}
_HIDDEN = re.compile("|".join(f"(?:{pattern})" for pattern in HIDDEN))


def collect():
    """Module and name of each, in PyTorch."""
    import types

    import torch
    import torch.utils.data

    for module in MODULES:
        owner = torch
        for part in module.split(".")[1:]:
            owner = getattr(owner, part)
        for name in sorted(dir(owner)):
            item = getattr(owner, name, None)
            home = str(getattr(item, "__module__", "") or "").split(".")[0]
            foreign = isinstance(item, types.ModuleType) and not item.__name__.startswith("torch.")
            # Names that a module imports for its own use.
            foreign |= home in ("typing", "typing_extensions", "functools", "bisect", "collections", "weakref", "warnings", "_bisect")
            foreign |= module.count(".") > 1 and (item in (torch.Tensor, torch.optim.Optimizer) or name in ("annotations", "DType", "inf", "EPOCH_DEPRECATION_WARNING"))
            if not name.startswith("_") and not foreign and name != "grad" * module.startswith("torch.nn"):
                yield module, name


def entries():
    """Module and name of each, from the file."""
    return [tuple(line.split()) for line in FILE.read_text().splitlines()]


def is_hidden(name):
    """Whether a name is no part of the interface for users."""
    return _HIDDEN.fullmatch(name) is not None


def is_write(name):
    """Whether a name of a tensor changes its elements in place."""
    return name.endswith("_") and not name.startswith("_") and name != "requires_grad_"


def statuses():
    """For each module and name: `same`, `different` or `absent`."""
    from test_pytorch_signatures import missing, ours

    lacking = missing()
    for module, name in entries():
        full = f"{module}.{name}"
        there = ours(full) is not None or full in ("torch.newaxis", "torch.Tensor.grad")
        yield module, name, "absent" if not there else "different" if full in lacking else "same"


def shares():
    """For each module the numbers of names by status, of those for users; writes in place of tensors apart."""
    found = {}
    for module, name, status in statuses():
        if is_hidden(name):
            continue
        group = f"{module} (in place)" if module == "torch.Tensor" and is_write(name) else module
        found.setdefault(group, collections.Counter())[status] += 1
    return found


def main():
    if "--write" in sys.argv:
        FILE.write_text("".join(f"{module} {name}\n" for module, name in collect()))
    wanted = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    for module in wanted:
        for status in ("absent", "different"):
            names = [n for m, n, s in statuses() if m == module and s == status and not is_hidden(n)]
            print(f"{module}, {status} ({len(names)}):", *names)
    for module, found in shares().items():
        total, here = sum(found.values()), found["same"] + found["different"]
        print(f"{module:28} {here:4} of {total:4} {100 * here / total:5.1f} %  same {found['same']}, different {found['different']}, absent {found['absent']}")


if __name__ == "__main__":
    main()
