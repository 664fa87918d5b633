//! Sizes of the crates beside `budgets.txt`: they only go down.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod sources;

use sources::{code, crate_root, module_of, paths, relative, sources};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Lines of code, numeric constants, and files in the largest circle of imports.
type Sizes = [usize; 3];

/// Whether a line declares a constant with a number as its value.
fn is_constant(line: &str) -> bool {
    const NUMBERS: [&str; 17] = [
        "usize", "u8", "u16", "u32", "u64", "u128", "isize", "i8", "i16", "i32", "i64", "i128",
        "f16", "bf16", "f32", "f64", "Duration",
    ];
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |x| x.1),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let declared = line.strip_prefix("const ").and_then(|rest| rest.split_once(": "));
    declared.is_some_and(|(name, rest)| {
        let dtype = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap();
        name.starts_with(char::is_uppercase) && NUMBERS.contains(&dtype)
    })
}

/// The number of files that use one another in the largest circle. A file is known by its module. A module's use of those
/// within it does not count, or a module with items and all files below it would be a circle.
fn largest_circle(files: &BTreeMap<Vec<String>, String>) -> usize {
    let names: Vec<&Vec<String>> = files.keys().collect();
    let number =
        |module: &[String]| names.binary_search_by(|name| name.as_slice().cmp(module)).ok();
    let mut uses: Vec<Vec<usize>> = Vec::new();
    for (module, code) in files {
        let split = |path: String| path.split("::").map(str::to_owned).collect::<Vec<String>>();
        let mut found: Vec<Vec<String>> = paths(code, "crate::").into_iter().map(split).collect();
        if !module.is_empty() {
            found.extend(relative(code, module));
        }
        // A path of names in a module: what it ends in may be an item.
        let file_of = |path: Vec<String>| (1..=path.len()).rev().find_map(|n| number(&path[..n]));
        let outside = |file: &usize| !names[*file].starts_with(module);
        uses.push(found.into_iter().filter_map(file_of).filter(outside).collect());
    }
    let reached: Vec<Vec<bool>> = (0..names.len())
        .map(|start| {
            let (mut seen, mut rest) = (vec![false; names.len()], vec![start]);
            while let Some(file) = rest.pop() {
                rest.extend(uses[file].iter().filter(|&&next| !seen[next]));
                uses[file].iter().for_each(|&next| seen[next] = true);
            }
            seen
        })
        .collect();
    let circle = |a: usize| (0..names.len()).filter(|&b| reached[a][b] && reached[b][a]).count();
    (0..names.len()).map(circle).max().unwrap_or(0)
}

/// The sizes of a crate, without its tests.
fn measure(name: &str) -> Sizes {
    let root = crate_root(name);
    let mut files = BTreeMap::new();
    for path in sources(&root) {
        let mut module = module_of(path.strip_prefix(&root).unwrap());
        if module == ["lib"] {
            module.clear();
        }
        files.insert(module, code(&path));
    }
    let lines = || files.values().flat_map(|code| code.lines());
    let [code, constants] = [
        lines().filter(|line| !line.trim().is_empty()).count(),
        lines().filter(|x| is_constant(x)).count(),
    ];
    [code, constants, largest_circle(&files)]
}

#[test]
fn crates_keep_their_budgets() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("budgets.txt")).unwrap();
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut budgets: BTreeMap<&str, Sizes> = BTreeMap::new();
    for row in rows {
        let mut words = row.split_whitespace();
        let name = words.next().unwrap();
        let numbers: Vec<usize> = words.map(|word| word.parse().unwrap()).collect();
        budgets.insert(name, numbers.try_into().unwrap());
    }
    let is_crate = |name: &str| {
        root.join(name).join("Cargo.toml").is_file()
            && !["bench", "examples", "tests"].contains(&name)
    };
    for entry in fs::read_dir(&root).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!is_crate(&name) || budgets.contains_key(&*name), "budgets.txt has no row {name}");
    }
    let mut wrong = Vec::new();
    for (name, budget) in budgets {
        let sizes = measure(name);
        for ((what, size), budget) in
            ["lines", "constants", "files in a circle"].into_iter().zip(sizes).zip(budget)
        {
            if size > budget {
                wrong.push(format!("{name}: {size} {what}, at most {budget}"));
            } else if size + budget / 50 < budget {
                wrong.push(format!("{name}: {size} {what}: lower the budget of {budget}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sizes_are_counted() {
    for line in
        ["const A: usize = 1;", "    pub(super) const B_2: f64 = 1e3;", "pub const C: u8 = 2;"]
    {
        assert!(is_constant(line), "{line}");
    }
    for line in [
        "const A: &str = \"\";",
        "const fn a() {}",
        "let a: usize = 1;",
        "const T: [usize; 3] = A;",
    ] {
        assert!(!is_constant(line), "{line}");
    }
    let file = |name: &str, code: &str| (vec![name.to_owned()], code.to_owned());
    let files = [
        file("a", "use crate::b::X;"),
        file("b", "use super::{c::{Y, Z}, d};"),
        file("c", "fn f() { crate::a::g() }"),
        file("d", "use super::e::f;"),
        (vec!["e".to_owned(), "f".to_owned()], "use crate::d;".to_owned()),
    ];
    assert_eq!(largest_circle(&files.clone().into()), 3);
    assert_eq!(largest_circle(&files.into_iter().skip(3).collect()), 2, "d and e::f");
}
