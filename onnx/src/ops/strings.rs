//! Strings, at the edges of a model: on the host.

use super::one_value;
use crate::host::{Host, numel};
use crate::run::Call;
use crate::value::Value;
use std::collections::HashMap;
use zyx_core::{DType, Result, Scalar, Shape, Tensor};

type Values = Result<Vec<Value>>;

pub(super) fn strings<'a>(call: &'a Call<'_>, i: usize) -> Result<(&'a [usize], &'a [String])> {
    match call.value(i)? {
        Value::Strings(shape, strings) => Ok((shape, strings)),
        other => Err(call.error(format!("input {i} is {}, not strings", other.kind()))),
    }
}

/// Places in an array of shape `own` of the elements of `shape`, which it broadcasts to.
pub(super) fn places(own: &[usize], shape: &[usize]) -> Vec<usize> {
    let numbers = (0..numel(own)).map(|i| Scalar::from(i as i64)).collect();
    let places = Host::new(own, DType::I64, numbers).broadcast(shape);
    places.ints().into_iter().map(|at| at as usize).collect()
}

pub(super) fn concat(call: &Call<'_>) -> Values {
    let ((a, x), (b, y)) = (strings(call, 0)?, strings(call, 1)?);
    let shape = Shape::from(a).broadcast(&Shape::from(b));
    let shape = shape.ok_or_else(|| call.error(format!("shapes {a:?} and {b:?} differ")))?.to_vec();
    call.budget().ask_for(numel(&shape), 4 * size_of::<Scalar>())?;
    let (left, right) = (places(a, &shape), places(b, &shape));
    let lengths = left.iter().map(|&i| x[i].len()).chain(right.iter().map(|&j| y[j].len()));
    call.budget().ask(lengths.sum())?;
    let pairs = left.into_iter().zip(right);
    let joined = pairs.map(|(i, j)| format!("{}{}", x[i], y[j])).collect();
    one_value(Value::Strings(shape, joined))
}

pub(super) fn split(call: &Call<'_>) -> Values {
    let (shape, texts) = strings(call, 0)?;
    let delimiter = call.string_or("delimiter", "")?;
    let most = call.int_attribute("maxsplit")?.map(|n| n.max(0) as usize);
    let cut = |text: &String| -> Vec<String> {
        let parts: Box<dyn Iterator<Item = &str>> = match (delimiter, most) {
            ("", None) => Box::new(text.split_whitespace()),
            ("", Some(n)) => return words(text, n),
            (by, None) => Box::new(text.split(by)),
            (by, Some(n)) => Box::new(text.splitn(n + 1, by)),
        };
        parts.filter(|_| !text.is_empty()).map(str::to_owned).collect()
    };
    // A part for each byte at most.
    call.budget()
        .ask_for(texts.iter().map(|text| text.len() + 1).sum(), 2 * size_of::<String>())?;
    let parts: Vec<Vec<String>> = texts.iter().map(cut).collect();
    let width = parts.iter().map(Vec::len).max().unwrap_or(0);
    call.budget().ask_for(width.saturating_mul(parts.len()), size_of::<String>())?;
    let counts = parts.iter().map(|parts| Scalar::from(parts.len() as i64)).collect();
    let padded = parts.into_iter().flat_map(|mut parts| {
        parts.resize(width, String::new());
        parts
    });
    let wide: Vec<usize> = shape.iter().copied().chain([width]).collect();
    let counts = Host::new(shape, DType::I64, counts);
    Ok(vec![Value::Strings(wide, padded.collect()), counts.into()])
}

/// Words, of which the last one holds what is left after `most` cuts.
fn words(text: &str, most: usize) -> Vec<String> {
    let (mut rest, mut words) = (text.trim(), Vec::new());
    while !rest.is_empty() {
        match rest.find(char::is_whitespace).filter(|_| words.len() < most) {
            Some(at) => {
                words.push(rest[..at].to_owned());
                rest = rest[at..].trim_start();
            }
            None => {
                words.push(rest.to_owned());
                rest = "";
            }
        }
    }
    words
}

/// Whether a pattern matches all of a text. Patterns need time in proportion to the text, and little memory.
#[cfg(feature = "regex")]
pub(super) fn regex_full_match(call: &Call<'_>) -> Values {
    let (shape, texts) = strings(call, 0)?;
    let pattern = call.string_or("pattern", "")?;
    // By itself first: what closes a group early is no pattern.
    let whole =
        regex::Regex::new(pattern).and_then(|_| regex::Regex::new(&format!(r"\A(?:{pattern})\z")));
    let whole = whole.map_err(|error| call.error(format!("its pattern: {error}")))?;
    let found = texts.iter().map(|text| Scalar::from(whole.is_match(text))).collect();
    Ok(vec![Host::new(shape, DType::Bool, found).into()])
}

pub(super) fn normalizer(call: &Call<'_>) -> Values {
    let (shape, texts) = strings(call, 0)?;
    let action = call.string_or("case_change_action", "NONE")?;
    let sensitive = call.flag("is_case_sensitive")?;
    let stops = call.strings_attribute("stopwords")?.unwrap_or_default();
    let same =
        |a: &str, b: &str| if sensitive { a == b } else { a.to_lowercase() == b.to_lowercase() };
    let kept = texts.iter().filter(|text| !stops.iter().any(|stop| same(stop, text)));
    let change = |text: &String| match action {
        "LOWER" => text.to_lowercase(),
        "UPPER" => text.to_uppercase(),
        _ => text.clone(),
    };
    let mut kept: Vec<String> = kept.map(change).collect();
    if kept.is_empty() {
        kept.push(String::new());
    }
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = kept.len();
    }
    one_value(Value::Strings(shape, kept))
}

/// Counts of n-grams, or whether there are any, weighted.
pub(super) fn tf_idf(call: &Call<'_>) -> Values {
    let n = |name: &str| -> Result<usize> { Ok(call.int_or(name, 0)?.max(0) as usize) };
    let (least, most, skip) = (n("min_gram_length")?, n("max_gram_length")?, n("max_skip_count")?);
    let mode = call.string_or("mode", "TF")?;
    let starts = call.ints_attribute("ngram_counts")?.unwrap_or_default();
    let places = call.ints_attribute("ngram_indexes")?.unwrap_or_default();
    let weights = call.floats_attribute("weights")?;
    let (shape, words) = match call.value(0)? {
        Value::Strings(shape, strings) => (shape.clone(), strings.clone()),
        value => {
            let host = call.read(value)?;
            (host.shape().to_vec(), host.ints().iter().map(i64::to_string).collect())
        }
    };
    let pool = match call.strings_attribute("pool_strings")? {
        Some(pool) => pool,
        None => {
            let pool = call.ints_attribute("pool_int64s")?.unwrap_or_default();
            pool.iter().map(i64::to_string).collect()
        }
    };
    let columns = places.iter().max().map_or(0, |&n| n.max(-1).saturating_add(1) as usize);
    if let Some(place) = places.iter().find(|&&place| place < 0) {
        return Err(call.error(format!("a column of its output is {place}")));
    }
    // n-grams with their column, in the order of the pool: of one word, of two, ..
    let mut grams: HashMap<&[String], usize> = HashMap::new();
    let mut weight_of = call.budget().room(columns)?;
    weight_of.resize(columns, 1.0);
    let mut n_grams = 0;
    for (i, &start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).map_or(pool.len(), |&end| end as usize);
        let part =
            pool.get(start as usize..end).ok_or_else(|| call.error("its pool is too short"))?;
        for gram in part.chunks_exact(i + 1) {
            let place = places.get(n_grams).copied().unwrap_or(0) as usize;
            let weight = weights.as_ref().and_then(|weights| weights.get(n_grams));
            if let (Some(own), Some(&weight)) = (weight_of.get_mut(place), weight) {
                *own = f64::from(weight);
            }
            grams.entry(gram).or_insert(place);
            n_grams += 1;
        }
    }
    let width = shape.last().copied().unwrap_or(words.len()).max(1);
    let rows = words.len().div_ceil(width);
    let mut out = call.budget().room(rows.saturating_mul(columns))?;
    let mut counts = call.budget().room(columns)?;
    for row in words.chunks(width) {
        counts.clear();
        counts.resize(columns, 0f64);
        for length in least.max(1)..=most.min(row.len()).min(starts.len()) {
            // Words one apart are the same whatever is skipped.
            let steps = if length == 1 { 1 } else { skip.saturating_add(1).min(row.len()) };
            for step in 1..=steps {
                call.budget().ask(0)?;
                for at in 0..row.len().saturating_sub(step * (length - 1)) {
                    let gram: Vec<String> =
                        (0..length).map(|k| row[at + k * step].clone()).collect();
                    let found = grams.get(gram.as_slice()).and_then(|&place| counts.get_mut(place));
                    found.into_iter().for_each(|count| *count += 1.0);
                }
            }
        }
        let value = |(&n, &weight): (&f64, &f64)| match mode {
            "TF" => n,
            "IDF" if n > 0.0 => weight,
            "IDF" => 0.0,
            _ => n * weight,
        };
        out.extend(counts.iter().zip(&weight_of).map(|pair| value(pair) as f32));
    }
    let mut shape = shape;
    match shape.last_mut() {
        Some(last) => *last = columns,
        None => shape.push(columns),
    }
    Ok(vec![Tensor::from_slice(&out, shape, call.device())?.into()])
}
