//! As much JSON (RFC 8259) as headers need: all of it is parsed, fractions are not evaluated.
//!
//! A value takes many times the memory of its text, so the members of a header are gone through one
//! by one ([`members`]), each checked without being built.

use std::iter::Peekable;
use std::str::CharIndices;

/// A JSON value. Members of objects keep their order, repeated ones are all kept.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    /// `null`, `true`, `false`, or a number that is not a whole one up to 2^64 - 1.
    Other,
    /// A whole number.
    Unsigned(u64),
    /// A string, escapes resolved.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// Names and values.
    Object(Vec<(String, Value)>),
}

/// Deeper nesting is refused: parsing recurses.
const MAX_DEPTH: usize = 32;

/// Longer strings are refused where they would be kept: a string that grows takes several times its
/// length.
const MAX_STRING: usize = 1 << 16;

/// The value of a text, or what is wrong and at which byte.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut parser = Parser::new(text);
    let value = parser.value(MAX_DEPTH)?;
    parser.end()?;
    Ok(value)
}

/// Calls `member` with the name and the text of the value of each member of the object that a text
/// is; false if it is another value.
pub(super) fn members<'a>(
    text: &'a str,
    mut member: impl FnMut(String, &'a str) -> Result<(), Wrong>,
) -> Result<bool, Wrong> {
    let mut parser = Parser::new(text);
    if parser.peek() != Some('{') {
        parser.keep = false;
        parser.value(MAX_DEPTH).and_then(|_| parser.end()).map_err(Wrong::Json)?;
        return Ok(false);
    }
    let mut refused = None;
    let gone_through = parser.list('{', '}', |parser| {
        let name = parser.name()?;
        parser.blanks();
        let start = parser.at();
        parser.keep = false;
        parser.value(MAX_DEPTH - 1)?;
        parser.keep = true;
        if refused.is_none() {
            refused = member(name, &text[start..parser.at()]).err();
        }
        Ok(())
    });
    gone_through.and_then(|()| parser.end()).map_err(Wrong::Json)?;
    refused.map_or(Ok(true), Err)
}

/// What is wrong with a text of members: its JSON, or what it says.
#[derive(Debug, PartialEq)]
pub(super) enum Wrong {
    /// This is no JSON.
    Json(String),
    /// A member is refused.
    Member(String),
}

/// A string as a JSON literal.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted += &format!("\\u{:04x}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

struct Parser<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    /// Whether values are built, and not checked alone.
    keep: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser { text, rest: text.char_indices().peekable(), keep: true }
    }

    fn end(&mut self) -> Result<(), String> {
        self.blanks();
        match self.rest.peek() {
            None => Ok(()),
            Some(&(at, c)) => Err(format!("`{c}` behind the end, at byte {at}")),
        }
    }

    /// The name of a member.
    fn name(&mut self) -> Result<String, String> {
        self.blanks();
        let name = self.string()?;
        self.expect(':')?;
        Ok(name)
    }

    fn blanks(&mut self) {
        while self.rest.next_if(|(_, c)| matches!(c, ' ' | '\t' | '\n' | '\r')).is_some() {}
    }

    /// Skips blanks and looks at the next character.
    fn peek(&mut self) -> Option<char> {
        self.blanks();
        self.rest.peek().map(|&(_, c)| c)
    }

    fn at(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |&(at, _)| at)
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.peek() {
            Some(c) if c == wanted => {
                self.rest.next();
                Ok(())
            }
            found => self.unexpected(found, &format!("`{wanted}`")),
        }
    }

    fn unexpected<T>(&mut self, found: Option<char>, wanted: &str) -> Result<T, String> {
        match found {
            Some(c) => Err(format!("`{c}` instead of {wanted} at byte {}", self.at())),
            None => Err(format!("the text ends where {wanted} should be")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth == 0 {
            return Err(format!("nested more than {MAX_DEPTH} deep at byte {}", self.at()));
        }
        match self.peek() {
            Some('{') => {
                let mut members = Vec::new();
                self.list('{', '}', |parser| {
                    let member = (parser.name()?, parser.value(depth - 1)?);
                    if parser.keep {
                        members.push(member);
                    }
                    Ok(())
                })?;
                Ok(Value::Object(members))
            }
            Some('[') => {
                let mut elements = Vec::new();
                self.list('[', ']', |parser| {
                    let element = parser.value(depth - 1)?;
                    if parser.keep {
                        elements.push(element);
                    }
                    Ok(())
                })?;
                Ok(Value::Array(elements))
            }
            Some('"') => self.string().map(Value::String),
            Some(c) if c == '-' || c.is_ascii_alphanumeric() => self.word(),
            found => self.unexpected(found, "a value"),
        }
    }

    /// Items between brackets, separated by commas.
    fn list(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        self.expect(open)?;
        if self.peek() == Some(close) {
            self.rest.next();
            return Ok(());
        }
        loop {
            item(self)?;
            match self.peek() {
                Some(',') => {
                    self.rest.next();
                }
                Some(c) if c == close => {
                    self.rest.next();
                    return Ok(());
                }
                found => return self.unexpected(found, &format!("`,` or `{close}`")),
            }
        }
    }

    /// A number or one of the three literals.
    fn word(&mut self) -> Result<Value, String> {
        let start = self.at();
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        while self.rest.next_if(|&(_, c)| part(c)).is_some() {}
        let word = &self.text[start..self.at()];
        if matches!(word, "null" | "true" | "false") {
            return Ok(Value::Other);
        }
        if !is_number(word) {
            return Err(format!("`{word}` at byte {start} is no JSON value"));
        }
        Ok(word.parse().map_or(Value::Other, Value::Unsigned))
    }

    fn string(&mut self) -> Result<String, String> {
        let start = self.at();
        match self.rest.peek() {
            Some((_, '"')) => self.rest.next(),
            found => {
                let found = found.map(|&(_, c)| c);
                return self.unexpected(found, "a string");
            }
        };
        let mut text = String::new();
        loop {
            if text.len() > MAX_STRING {
                return Err(format!("the string at byte {start} has more than {MAX_STRING} bytes"));
            }
            match self.rest.next() {
                Some((_, '"')) => return Ok(text),
                Some((_, '\\')) => {
                    let c = self.escape()?;
                    if self.keep {
                        text.push(c);
                    }
                }
                Some((at, c)) if c < ' ' => {
                    return Err(format!("control character in the string at byte {at}"));
                }
                Some((_, c)) if self.keep => text.push(c),
                Some(_) => {}
                None => return Err(format!("the string at byte {start} does not end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let at = self.at();
        Ok(match self.rest.next().map(|(_, c)| c) {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let mut units = vec![self.unit()?];
                // The first half of a pair: the second must follow.
                if (0xd800..0xdc00).contains(&units[0])
                    && self.rest.next_if(|&(_, c)| c == '\\').is_some()
                    && self.rest.next_if(|&(_, c)| c == 'u').is_some()
                {
                    units.push(self.unit()?);
                }
                let mut decoded = char::decode_utf16(units.iter().copied());
                match (decoded.next(), decoded.next()) {
                    (Some(Ok(c)), None) => c,
                    _ => return Err(format!("half a surrogate pair at byte {at}")),
                }
            }
            _ => return Err(format!("unknown escape at byte {at}")),
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Result<u16, String> {
        let at = self.at();
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.rest.next().and_then(|(_, c)| c.to_digit(16));
            let digit = digit.ok_or_else(|| format!("four hex digits are needed at byte {at}"))?;
            unit = unit << 4 | digit as u16;
        }
        Ok(unit)
    }
}

/// Whether a word follows the grammar of numbers.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let word = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_understood() {
        let value = parse(
            r#" {"a": [1, 18446744073709551615, -1, 2.5e+3], "b\n\u00e9\ud83d\ude00": {}, "c": null} "#,
        );
        let numbers =
            vec![Value::Unsigned(1), Value::Unsigned(u64::MAX), Value::Other, Value::Other];
        let members = vec![
            ("a".to_owned(), Value::Array(numbers)),
            ("b\n\u{e9}\u{1f600}".to_owned(), Value::Object(vec![])),
            ("c".to_owned(), Value::Other),
        ];
        assert_eq!(value, Ok(Value::Object(members)));
        assert_eq!(parse("0"), Ok(Value::Unsigned(0)));
        assert_eq!(parse("[]"), Ok(Value::Array(vec![])));
        assert_eq!(parse("18446744073709551616"), Ok(Value::Other));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let deep = "[".repeat(100);
        for text in [
            "",
            " ",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "01",
            "+1",
            "1.",
            ".5",
            "-",
            "1e",
            "nul",
            "tru e",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\u{1}\"",
            "1 2",
            "]",
            "{\"a\":1,}",
            "\"\\ud800\\u0041\"",
            "00",
            "--1",
            "{]",
            &deep,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn members_are_gone_through() {
        let all = |text: &str| {
            let mut found = Vec::new();
            let is_object = members(text, |name, value| {
                found.push(format!("{name}={value}"));
                Ok(())
            })?;
            Ok((is_object, found))
        };
        let (is_object, found) = all(" {\"a\": [1, {\"b\":2}] ,\"\\u0041\":\"x\"} ").unwrap();
        assert!(is_object);
        assert_eq!(found, ["a=[1, {\"b\":2}]", "A=\"x\""]);
        assert_eq!(all("[1]"), Ok((false, vec![])));
        for text in ["{", "[1", "{\"a\":}", "{\"a\":1,}", "{\"a\":1} 2", "", "{\"a\":[[]}"] {
            assert!(matches!(all(text), Err(Wrong::Json(_))), "{text}");
        }
    }

    #[test]
    fn quoting_reads_back() {
        for text in ["", "plain", "a\"b\\c", "line\nbreak\u{0}\u{1f600}é"] {
            assert_eq!(parse(&quote(text)), Ok(Value::String(text.to_owned())));
        }
    }
}
