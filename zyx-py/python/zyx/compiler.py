"""Names of `torch.compiler` that scripts use. Every computation is compiled, so they change nothing."""


def _itself(fn=None, recursive=True, *, reason=None):
    """The function itself."""
    return (lambda fn: fn) if fn is None else fn


disable = allow_in_graph = assume_constant_result = substitute_in_graph = _itself


def compile(model=None, **options):
    """The model itself: every computation is compiled."""
    return _itself(model)


def is_compiling():
    """Whether PyTorch's compiler reads the program: it does not."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset():
    """Nothing: plans are kept by the shapes that they are for."""


def cudagraph_mark_step_begin():
    """Nothing: memory of a step is used again when nothing holds it."""


def set_stance(stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
    """A block that changes nothing."""
    import contextlib

    return contextlib.nullcontext()


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of compilers that PyTorch could take: none."""
    return []
