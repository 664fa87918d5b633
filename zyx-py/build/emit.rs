//! Writes the bindings of the entries of the stub.
//!
//! A function takes what Python gives, each parameter as the type of `src/arguments.rs` that its
//! annotation names, makes it ready on the tensor's device, and calls the method of the same name
//! without holding the interpreter's lock. A parameter `axis` may also be called `dim`, `keepdim`
//! also `keepdims`; with `keepdim=True` the method's `_keepdim` sister is called.

use crate::stub::{Entry, Parameter};

/// Second names of parameters.
const ALIASES: &[(&str, &str)] = &[
    ("axis", "dim"),
    ("axis0", "dim0"),
    ("axis1", "dim1"),
    ("axis2", "dim2"),
    ("keepdim", "keepdims"),
    ("start_axis", "start_dim"),
    ("end_axis", "end_dim"),
    ("other", "rhs"),
    ("lr", "learning_rate"),
    ("negative_slope", "slope"),
    ("min_val", "min"),
    ("max_val", "max"),
];

/// Operators of Python that exist in both directions, and the methods they call.
const OPERATORS: &[(&str, &str)] = &[
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("truediv", "div"),
    ("floordiv", "floor_divide"),
    ("mod", "remainder"),
    ("and", "bitwise_and"),
    ("or", "bitwise_or"),
    ("xor", "bitwise_xor"),
    ("lshift", "shl"),
    ("rshift", "shr"),
];

/// How the arguments of an annotation are declared and passed on.
struct Kind {
    /// The annotation.
    name: &'static str,
    /// The type of the argument.
    rust: &'static str,
    /// What stands before the name in the call.
    prefix: &'static str,
    /// What stands behind it.
    suffix: &'static str,
}

const fn kind(name: &'static str, rust: &'static str) -> Kind {
    Kind { name, rust, prefix: "", suffix: "" }
}

/// One row per annotation.
const KINDS: &[Kind] = &[
    kind("float", "Float"),
    kind("bool", "bool"),
    // In a class with methods of these names.
    kind("_float", "Float"),
    kind("_bool", "bool"),
    kind("str", "String"),
    kind("Text", "String"),
    kind("Int", "Int"),
    kind("Size", "Size"),
    kind("Axis", "Axis"),
    kind("Axes", "AxesArg"),
    Kind { prefix: "&", ..kind("AxisList", "AxisList") },
    kind("Shape", "ShapeArg"),
    Kind { prefix: "&", ..kind("Sizes", "Sizes") },
    Kind { prefix: "&", ..kind("Ints", "Ints") },
    Kind { prefix: "&", ..kind("Floats", "Floats") },
    Kind { prefix: "&", ..kind("Quantiles", "Quantiles") },
    Kind { prefix: "&", ..kind("Sections", "Sections") },
    Kind { prefix: "&", ..kind("Pads", "Pads") },
    kind("One", "One"),
    kind("Pair", "Pair"),
    kind("Triple", "Triple"),
    Kind { prefix: "&", ..kind("Padding", "Padding") },
    kind("Operand", "OperandArg"),
    Kind { prefix: "&", ..kind("TensorLike", "TensorArg") },
    Kind { prefix: "&", suffix: ".list()", ..kind("Tensors", "TensorList") },
    kind("DTypeLike", "DTypeArg"),
    kind("DeviceLike", "DeviceArg"),
    kind("Reduction", "ReductionArg"),
    Kind { prefix: "&mut ", ..kind("Generator", "GeneratorArg") },
    kind("Indexing", "IndexingArg"),
    kind("Interpolation", "InterpolationArg"),
    kind("PadMode", "PadModeArg"),
    kind("FftNorm", "FftNormArg"),
    kind("ScanOp", "ScanOpArg"),
    kind("Float8", "Float8Arg"),
    kind("MatrixNorm", "MatrixNormArg"),
    kind("ScatterReduce", "ScatterReduceArg"),
    Kind { prefix: "&", ..kind("Key", "KeyArg") },
    kind("Scalar", "Number"),
    kind("Parameters", "ParametersArg"),
    kind("Betas", "Betas"),
    kind("Bytes", "RawBytes"),
];

/// Methods that take a tensor without axes as one with a single element where they are given an axis, as PyTorch's
/// do. The result has no axes either.
const LIFTED: &[&str] = &[
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "any",
    "all",
    "logsumexp",
    "norm",
    "var",
    "std",
    "argmax",
    "argmin",
    "amax",
    "amin",
    "aminmax",
    "count_nonzero",
    "nansum",
    "nanmean",
    "median",
    "mode",
    "vector_norm",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "logcumsumexp",
    "softmax",
    "log_softmax",
    "softmin",
    "sort",
    "argsort",
    "topk",
    "kthvalue",
    "flip",
    "transpose",
    "swapaxes",
    "movedim",
    "squeeze",
    "index_select",
    "index_fill",
    "std_mean",
    "var_mean",
    "msort",
    "norm_p",
    "normalize",
    "cov",
    "corrcoef",
    "sum_keepdim",
    "prod_keepdim",
    "max_keepdim",
    "min_keepdim",
    "mean_keepdim",
    "any_keepdim",
    "all_keepdim",
    "logsumexp_keepdim",
    "norm_keepdim",
    "var_keepdim",
];

/// Methods that convert: what is that already is given itself.
const CONVERSIONS: &[&str] = &[
    "cast",
    "astype",
    "to_device",
    "float",
    "double",
    "half",
    "bfloat16",
    "long",
    "int",
    "short",
    "char",
    "byte",
    "bool",
];

/// Methods that are called most and add nodes to a graph alone: to let other threads run meanwhile would take longer
/// than the method. Operators of Python do not do that either.
const LAZY: &[&str] = &[
    "abs",
    "add",
    "cat",
    "clamp",
    "cos",
    "div",
    "eq",
    "exp",
    "ge",
    "gelu",
    "gelu_exact",
    "gt",
    "le",
    "log",
    "lt",
    "masked_fill",
    "matmul",
    "maximum",
    "mean",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "relu",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "sqrt",
    "square",
    "stack",
    "sub",
    "sum",
    "tanh",
    "where_",
];

/// Methods that take one example for a batch of them, as PyTorch's do, and how many axes the example has.
const UNBATCHED: &[(&str, usize)] = &[
    ("conv1d", 2),
    ("conv2d", 3),
    ("conv3d", 4),
    ("conv_transpose1d", 2),
    ("conv_transpose2d", 3),
    ("conv_transpose3d", 4),
    ("im2col", 3),
    ("col2im", 2),
];

/// Methods whose operands keep the dtype of the tensor.
const UNPROMOTED: &[&str] = &[
    "masked_fill",
    "index_fill",
    "scatter",
    "heaviside",
    "isclose",
    "allclose",
    "repeat_interleave",
    "ldexp",
];

/// The statements that promote operands as PyTorch does: a tensor without axes is no wider than one with axes.
fn promotion(entry: &Entry) -> String {
    let operands: Vec<&Parameter> =
        entry.parameters.iter().filter(|p| p.kind == "Operand").collect();
    if entry.is_static || UNPROMOTED.contains(&entry.name.as_str()) {
        return String::new();
    }
    match operands.as_slice() {
        [x, y] if entry.name == "where_" => {
            format!("let ({0}, {1}) = settle_pair({0}, {1});\n", x.name, y.name)
        }
        [one] if entry.parameters.len() == 1 && one.default.is_none() => {
            format!("let (settled_t, {0}) = settle(t, {0});\nlet t = &*settled_t;\n", one.name)
        }
        several => several
            .iter()
            .map(|p| match p.default.as_deref() == Some("None") || p.or_none {
                true => format!("let {0} = {0}.map(|x| settled(t, x));\n", p.name),
                false => format!("let {0} = settled(t, {0});\n", p.name),
            })
            .collect(),
    }
}

/// The methods of `Tensor`.
pub(crate) fn methods(entries: &[Entry]) -> Result<String, String> {
    let mut out = "#[pymethods]\nimpl PyTensor {\n".to_owned();
    for entry in entries.iter().filter(|entry| entry.class == "Tensor") {
        out += &method(entry).map_err(|problem| format!("{}: {problem}", entry.name))?;
    }
    for (operator, method) in OPERATORS {
        out += &format!(
            "fn __{operator}__(&self, py: Python<'_>, other: OperandArg) -> PyResult<PyTensor> {{\n\
             let t = self.tensor();\nlet (t, other) = beside(&t, other)?;\n\
             caught(py, || t.{method}(other)).map(PyTensor::new)\n}}\n\
             fn __r{operator}__(&self, py: Python<'_>, other: OperandArg) -> PyResult<PyTensor> {{\n\
             reflected(py, &self.tensor(), other, |x, y| x.{method}(y))\n}}\n"
        );
    }
    Ok(out + "}\n")
}

/// The constructors of layers; each also takes the dtype and device of its parameters.
pub(crate) fn layers(entries: &[Entry]) -> Result<String, String> {
    functions(entries, ("PyLayer", "LAYERS"), "init", "nn::")
}

/// The constructors of optimizers.
pub(crate) fn optimizers(entries: &[Entry]) -> Result<String, String> {
    functions(entries, ("PyOptimizer", "OPTIMIZERS"), "", "")
}

/// A function `make_Name` for each class, and one that adds all of them to the module.
fn functions(
    entries: &[Entry],
    (result, list): (&str, &str),
    last: &str,
    path: &str,
) -> Result<String, String> {
    let (mut out, mut all) = (String::new(), String::new());
    let names: Vec<&str> = entries.iter().map(|entry| entry.class.as_str()).collect();
    for entry in entries {
        let (class, lower) = (&entry.class, entry.class.to_lowercase());
        let mut declared = Declared::default();
        let (mut steps, mut passed) = (String::new(), Vec::new());
        for parameter in &entry.parameters {
            let problem = |problem| format!("{class}: {problem}");
            declared.add(parameter).map_err(problem)?;
            steps += &step(class, parameter).map_err(problem)?;
            passed.push(format!("{}{}", find(parameter)?.prefix, parameter.name));
        }
        if !last.is_empty() {
            passed.push(last.to_owned());
            declared.late.push(("device".to_owned(), "DeviceArg"));
            declared.late.push(("dtype".to_owned(), "DTypeArg"));
        }
        let call = match &entry.rust {
            Some(rust) => rust.clone(),
            None => format!("{path}{class}::new({})", passed.join(", ")),
        };
        let start = match last.is_empty() {
            true => "let here = &DeviceArg::default().open()?;\n",
            false => "let init = &mut init(device, dtype)?;\nlet here = &init.device.clone();\n",
        };
        let (signature, text) = (declared.signature(), text_signature(entry, false));
        let arguments = declared.arguments();
        out += &format!(
            "#[doc = {:?}]\n#[pyfunction]\n#[pyo3(signature = ({signature}), \
             name = \"make_{class}\", text_signature = \"{text}\")]\nfn make_{lower}(py: Python<'_>{arguments}) -> PyResult<{result}> {{\n{start}{steps}\
             let _ = here;\n{result}::make(detached(py, || {{ {call} }})?)\n}}\n",
            entry.doc
        );
        all += &format!("module.add_function(wrap_pyfunction!(make_{lower}, module)?)?;\n");
    }
    Ok(format!(
        "{out}fn constructors(module: &Bound<'_, PyModule>) -> PyResult<()> {{\n{all}\
         module.add(\"{list}\", vec!{names:?})\n}}\n"
    ))
}

fn find(parameter: &Parameter) -> Result<&'static Kind, String> {
    let known = KINDS.iter().find(|kind| kind.name == parameter.kind);
    known.ok_or_else(|| format!("no row for the annotation `{}`", parameter.kind))
}

fn alias(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(first, _)| *first == name).map(|(_, second)| *second)
}

/// One `#[pymethods]` function.
fn method(entry: &Entry) -> Result<String, String> {
    let name = &entry.name;
    let mut declared = Declared::default();
    let mut steps = String::new();
    for parameter in &entry.parameters {
        declared.add(parameter)?;
    }
    // The device first: the others are made ready on it.
    let (devices, others): (Vec<_>, Vec<_>) =
        entry.parameters.iter().partition(|p| p.kind == "DeviceLike");
    for parameter in devices.into_iter().chain(others) {
        steps += &step(name, parameter)?;
    }
    if entry.view.is_none() {
        steps += &promotion(entry);
    }
    let (text_signature, signature) = (text_signature(entry, true), declared.signature());
    let call = call(entry)?;
    let given = entry.parameters.iter().any(|p| p.kind == "DeviceLike");
    let (decorator, receiver, here) = match (entry.is_static, given) {
        (true, true) => ("#[staticmethod]\n", "", ""),
        (true, false) => ("#[staticmethod]\n", "", "let here = &DeviceArg::default().open()?;\n"),
        (false, _) => {
            ("", "&self, ", "let t = &self.tensor();\nlet here = t.device();\nlet _ = here;\n")
        }
    };
    if let Some(view) = entry.view {
        let call = match LIFTED.contains(&name.as_str()) {
            true => format!("views::lifted(t, |t| {call})"),
            false => call,
        };
        let (doc, arguments) = (format!("{:?}", entry.doc), declared.arguments());
        return Ok(format!(
            "#[doc = {doc}]\n#[pyo3(name = \"{name}\", signature = ({signature}), \
             text_signature = \"{text_signature}\")]\nfn bound_{name}(&self, py: Python<'_>{arguments}) \
             -> PyResult<Py<PyAny>> {{\n{steps}self.{view}(py, &|t| {call})\n}}\n",
            steps = steps.replace(".ready(here)", ".plain()")
        ));
    }
    let is_lifted = !entry.is_static && LIFTED.contains(&name.as_str());
    let here = if is_lifted {
        "let t = self.tensor();\nlet lifted = t.rank() == 0;\nlet t = &lift(py, t)?;\n\
         let here = t.device();\nlet _ = here;\n"
    } else {
        here
    };
    let call = match UNBATCHED.iter().find(|(method, _)| *method == name) {
        Some((_, rank)) => format!("forms::unbatched(t, {rank}, |t| {call})"),
        None => call,
    };
    // Who holds the lock of a generator keeps the interpreter's.
    let draws = entry.parameters.iter().any(|p| p.kind == "Generator");
    let is_lazy = LAZY.contains(&name.as_str());
    let run = if draws || is_lazy { "run_attached" } else { "run" };
    let run = format!("{run}(py, || {call})");
    let is_conversion = !entry.is_static && CONVERSIONS.contains(&name.as_str());
    let (receiver, here, run) = match is_conversion {
        true => (
            "slf: &Bound<'_, PyTensor>, ",
            "let t = &slf.get().tensor();\nlet here = t.device();\nlet _ = here;\n",
            format!(
                "if {} {{ return Ok(slf.clone().into_any().unbind()); }}\n{run}",
                match entry.parameters.first() {
                    Some(parameter) if parameter.kind == "DeviceLike" =>
                        "device == t.device()".to_owned(),
                    Some(_) => "dtype == t.dtype()".to_owned(),
                    None => format!("t.dtype() == {}", converted(entry)?),
                }
            ),
        ),
        false => (receiver, here, run),
    };
    let run = if is_lifted { format!("lower(py, lifted, {run})") } else { run };
    let run = match entry.parameters.iter().any(is_wish) {
        true => format!("wished(py, requires_grad, {run})"),
        false => run,
    };
    let doc = format!("{:?}", entry.doc);
    let arguments = declared.arguments();
    Ok(format!(
        "#[doc = {doc}]\n{decorator}#[pyo3(name = \"{name}\", signature = ({signature}), \
         text_signature = \"{text_signature}\")]\nfn bound_{name}({receiver}py: Python<'_>{arguments}) \
         -> PyResult<Py<PyAny>> {{\n{here}{steps}let _ = here;\n{run}\n}}\n"
    ))
}

/// The dtype that a conversion without parameters makes: its call is `t.cast(dtype)`.
fn converted(entry: &Entry) -> Result<&str, String> {
    let call = entry.rust.as_deref().and_then(|call| call.strip_prefix("t.cast("));
    call.and_then(|call| call.strip_suffix(')')).ok_or_else(|| "no conversion".to_owned())
}

/// Whether a parameter asks for a leaf that keeps its history, of whatever the call gives.
fn is_wish(parameter: &Parameter) -> bool {
    parameter.name == "requires_grad"
}

/// Parameters as the signature and the function declare them.
#[derive(Default)]
struct Declared {
    signature: String,
    arguments: String,
    /// Second names and the like, given by keyword, with their types.
    late: Vec<(String, &'static str)>,
    has_rest: bool,
    star: bool,
}

impl Declared {
    /// What stands in `signature = (..)`.
    fn signature(&self) -> String {
        let keyword_only = !self.late.is_empty() && !self.has_rest && !self.star;
        let star = if keyword_only { ", *" } else { "" };
        let late: String = self.late.iter().map(|(name, _)| format!(", {name}=None")).collect();
        let all = format!("{}{star}{late}", self.signature);
        all.trim_start_matches(", ").to_owned()
    }

    /// What stands in the parameters of the function.
    fn arguments(&self) -> String {
        let late = self.late.iter().map(|(name, kind)| format!(", {name}: Option<{kind}>"));
        format!("{}{}", self.arguments, late.collect::<String>())
    }

    fn add(&mut self, parameter: &Parameter) -> Result<(), String> {
        let (kind, name) = (find(parameter)?.rust, &parameter.name);
        let second = alias(name);
        if parameter.is_rest {
            self.has_rest = true;
            self.signature += &format!(", *rest_{name}");
            self.arguments += &format!(", rest_{name}: &Bound<'_, PyTuple>");
            self.late.push((name.clone(), kind));
            return Ok(());
        }
        if parameter.keyword_only && !self.has_rest && !self.star {
            self.signature += ", *";
            self.star = true;
        }
        let missing = match &parameter.default {
            Some(default) if parameter.or_none => format!("Some({kind}::from_literal({default}))"),
            _ => "None".to_owned(),
        };
        self.signature += &format!(", {name}={missing}");
        self.arguments += &format!(", {name}: Option<{kind}>");
        if let Some(second) = second {
            self.late.push((second.to_owned(), kind));
        }
        Ok(())
    }
}

/// The statement that makes a parameter ready for the call.
fn step(method: &str, parameter: &Parameter) -> Result<String, String> {
    let (kind, name) = (find(parameter)?, &parameter.name);
    let mut code = String::new();
    if let Some(second) = alias(name) {
        let names = format!("\"{method}\", \"{name}\", \"{second}\"");
        code += &format!("let {name} = either({names}, {name}, {second})?;\n");
    }
    if parameter.is_rest {
        return Ok(format!(
            "let {name} = {}::collect(\"{method}\", \"{name}\", rest_{name}, {name})?;\n",
            kind.rust
        ));
    }
    if kind.name == "DeviceLike" {
        let of = format!("let {name} = &{name}.unwrap_or_default().open()?;\n");
        return Ok(code + &of + if name == "device" { "let here = device;\n" } else { "" });
    }
    match parameter.default.as_deref() {
        None => {
            code += &format!("let {name} = required(\"{method}\", \"{name}\", {name})?;\n");
        }
        Some("None") if ["Axes", "Generator"].contains(&kind.name) => {
            code += &format!("let {name} = {name}.unwrap_or_default();\n");
        }
        default if default == Some("None") || parameter.or_none => {
            return Ok(
                code + &format!("let {name} = {name}.map(|x| x.ready(here)).transpose()?;\n")
            );
        }
        Some(default) => {
            let value = match default {
                "True" => "true".to_owned(),
                "False" => "false".to_owned(),
                text if text.starts_with('"') && kind.rust == "String" => {
                    format!("{text}.to_owned()")
                }
                // The dtype of floats when none is named can be set.
                "\"float32\"" if kind.rust == "DTypeArg" => "DTypeArg::default()".to_owned(),
                text if text.starts_with('"') => format!("{}::parse({text})?", kind.rust),
                number => format!("{}::from_literal({number})", kind.rust),
            };
            let value = match value.as_str() {
                "true" | "false" => format!("{name}.unwrap_or({value})"),
                _ => format!("match {name} {{ Some(x) => x, None => {value} }}"),
            };
            code += &format!("let {name} = {value};\n");
        }
    }
    if kind.name == "Generator" {
        return Ok(code + &format!("let mut {name} = {name}.lock();\n"));
    }
    Ok(code + &format!("let {name} = {name}.ready(here)?;\n"))
}

/// The expression that computes the result.
fn call(entry: &Entry) -> Result<String, String> {
    let on = if entry.is_static { "Tensor::" } else { "t." };
    if let Some(rust) = &entry.rust {
        return Ok(rust.clone());
    }
    let mut passed = Vec::new();
    let mut keepdim = false;
    for parameter in &entry.parameters {
        if parameter.name == "keepdim" {
            keepdim = true;
            continue;
        }
        if is_wish(parameter) {
            continue;
        }
        let (kind, name) = (find(parameter)?, &parameter.name);
        let absent = parameter.default.as_deref() == Some("None");
        passed.push(match kind.name {
            "TensorLike" if absent => format!("{name}.as_ref()"),
            _ => format!("{}{name}{}", kind.prefix, kind.suffix),
        });
    }
    let (name, passed) = (&entry.name, passed.join(", "));
    Ok(if keepdim {
        format!("if keepdim {{ {on}{name}_keepdim({passed}) }} else {{ {on}{name}({passed}) }}")
    } else {
        format!("{on}{name}({passed})")
    })
}

/// The signature that `help` shows.
fn text_signature(entry: &Entry, with_self: bool) -> String {
    let mut parts = Vec::new();
    if with_self && !entry.is_static {
        parts.push("$self".to_owned());
    }
    let mut star = false;
    for parameter in &entry.parameters {
        if parameter.is_rest {
            star = true;
            parts.push(format!("*{}", parameter.name));
            continue;
        }
        if parameter.keyword_only && !star {
            star = true;
            parts.push("*".to_owned());
        }
        parts.push(match &parameter.default {
            Some(default) => format!("{}={}", parameter.name, default.replace('"', "'")),
            None => parameter.name.clone(),
        });
    }
    format!("({})", parts.join(", "))
}
