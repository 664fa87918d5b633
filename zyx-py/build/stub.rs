//! Reads the stub: classes, `def` lines with their parameters, docstrings and directives.
//!
//! Entries are the methods of the class `Tensor` and the constructors of other classes. Only the
//! shape of Python that the stub is written in is understood: one `def` per entry, its
//! docstring below, and then at most one directive in a comment: `# by hand` (bound in `src`),
//! `# rust: expression` (what to call when it is not the method of that name with the parameters
//! in order), or `# view: expression` (the view and its steps, see `src/views.rs`; `# views:` of a
//! list of them, `# strict view:` of one that must not be a copy).

/// One method of the stub.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) class: String,
    pub(crate) name: String,
    pub(crate) is_static: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) doc: String,
    /// What is called instead of the method of this name.
    pub(crate) rust: Option<String>,
    /// The method of `PyTensor` that makes a view of what is called.
    pub(crate) view: Option<&'static str>,
}

/// Directives of views, and the method of `PyTensor` that each is for.
const VIEWS: [(&str, &str); 3] =
    [("# view: ", "view"), ("# views: ", "views"), ("# strict view: ", "strict_view")];

/// One parameter, `self` left out.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// The annotation without `| None`.
    pub(crate) kind: String,
    pub(crate) default: Option<String>,
    /// May be `None`, which is not the default.
    pub(crate) or_none: bool,
    /// Takes all further positional arguments.
    pub(crate) is_rest: bool,
    /// Given by name only.
    pub(crate) keyword_only: bool,
}

/// The entries to bind.
pub(crate) fn read(text: &str) -> Result<Vec<Entry>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut entries, mut class, mut is_static, mut i) = (Vec::new(), String::new(), false, 0);
    while i < lines.len() {
        let line = lines[i].trim();
        if let Some(rest) = lines[i].strip_prefix("class ") {
            class = rest.split(['(', ':']).next().unwrap_or("").to_owned();
        }
        if line == "@staticmethod" {
            is_static = true;
        }
        if !line.starts_with("def ") {
            i += 1;
            continue;
        }
        let mut head = line.to_owned();
        while !head.ends_with(':') && !head.contains(": ...") {
            i += 1;
            let more = lines.get(i).ok_or("a `def` that does not end")?;
            head = format!("{head} {}", more.trim());
        }
        let (doc, next) = docstring(&lines, i + 1);
        let directive = lines.get(next).map_or("", |line| line.trim());
        // Operators and the like are written by hand; of other classes only constructors are bound.
        let is_constructor = head.starts_with("def __init__(");
        let wanted = if class == "Tensor" { !head.starts_with("def __") } else { is_constructor };
        if wanted && directive != "# by hand" && !class.is_empty() {
            let (name, parameters) =
                signature(&head).map_err(|problem| format!("`{head}`: {problem}"))?;
            let view = VIEWS.iter().find(|(prefix, _)| directive.starts_with(prefix));
            let prefix = view.map_or("# rust: ", |(prefix, _)| prefix);
            let rust = directive.strip_prefix(prefix).map(str::to_owned);
            let (class, view) = (class.clone(), view.map(|(_, method)| *method));
            entries.push(Entry { class, name, is_static, parameters, doc, rust, view });
        }
        (is_static, i) = (false, next);
    }
    Ok(entries)
}

/// The docstring that starts at a line, and the line after it.
fn docstring(lines: &[&str], start: usize) -> (String, usize) {
    let quotes = "\"\"\"";
    let Some(first) = lines.get(start).and_then(|line| line.trim().strip_prefix(quotes)) else {
        return (String::new(), start);
    };
    if let Some(only) = first.strip_suffix(quotes) {
        return (only.to_owned(), start + 1);
    }
    let (mut doc, mut i) = (first.to_owned(), start + 1);
    while let Some(line) = lines.get(i) {
        i += 1;
        let line = line.trim();
        if let Some(last) = line.strip_suffix(quotes) {
            if !last.is_empty() {
                doc = format!("{doc}\n{last}");
            }
            break;
        }
        doc = format!("{doc}\n{line}");
    }
    (doc, i)
}

/// Name and parameters of a `def` line.
fn signature(head: &str) -> Result<(String, Vec<Parameter>), String> {
    let open = head.find('(').ok_or("no parameters")?;
    let close = head.rfind(") ->").ok_or("no result type")?;
    let name = head["def ".len()..open].trim().to_owned();
    let (mut parameters, mut keyword_only) = (Vec::new(), false);
    for text in split(&head[open + 1..close]) {
        if text == "self" || text.starts_with("**") {
            continue;
        }
        if text == "*" {
            keyword_only = true;
            continue;
        }
        let is_rest = text.starts_with('*');
        let (declared, default) = match text.split_once('=') {
            Some((declared, default)) => (declared.trim(), Some(default.trim().to_owned())),
            None => (text, None),
        };
        let (name, kind) = declared.split_once(':').ok_or("a parameter without a type")?;
        let kind = kind.trim();
        let or_none = kind.ends_with("| None") && default.as_deref().is_some_and(|d| d != "None");
        let kind = kind.trim_end_matches("| None").trim().to_owned();
        let name = name.trim_start_matches('*').trim().to_owned();
        parameters.push(Parameter { name, kind, default, or_none, is_rest, keyword_only });
        keyword_only |= is_rest;
    }
    Ok((name, parameters))
}

/// Splits at commas outside of brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in list.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}
