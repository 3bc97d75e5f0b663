//! Values as Python writes them: str(), repr() and json.dumps(), which templates take for granted.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

const MAX_DEPTH: usize = 128;
/// A value that holds another several times, and so on, is small and has no end as text.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

pub struct JsonStyle {
    pub ensure_ascii: bool,
    pub sort_keys: bool,
    pub indent: Option<usize>, // spaces a level; unset: one line
    pub item_separator: String,
    pub key_separator: String,
}

impl Default for JsonStyle {
    fn default() -> Self {
        Self {
            ensure_ascii: false,
            sort_keys: false,
            indent: None,
            item_separator: ", ".to_string(),
            key_separator: ": ".to_string(),
        }
    }
}

/// What `{{ value }}` prints.
pub fn str_of(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Undefined => Ok(value.to_string()),
        _ => {
            let mut out = String::new();
            write_repr(&mut out, value, 0)?;
            Ok(out)
        }
    }
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    check_bounds(out, depth)?;
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)?),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_repr(out, &item, depth + 1)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_repr(out, &key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

/// A string literal: in single quotes unless only double ones avoid an escape.
fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
}

fn number(value: &Value) -> Result<String, Error> {
    if value.is_integer() { Ok(value.to_string()) } else { Ok(float(f64::try_from(value.clone())?)) }
}

/// The shortest digits that read back as `x`, with an exponent from 1e16 on and below 1e-4.
fn float(x: f64) -> String {
    if x.is_nan() || x.is_infinite() {
        return if x.is_nan() {
            "nan"
        } else if x > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_string();
    }
    let scientific = format!("{x:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{x:?}")
}

pub fn json_of(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(&mut out, value, style, 0)?;
    Ok(out)
}

fn write_json(out: &mut String, value: &Value, style: &JsonStyle, depth: usize) -> Result<(), Error> {
    check_bounds(out, depth)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&json_number(value)?),
        ValueKind::String => write_json_string(out, value.as_str().unwrap_or_default(), style.ensure_ascii),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut list = JsonList::begin(out, '[', style, depth);
            for item in value.try_iter()? {
                list.next(out);
                write_json(out, &item, style, depth + 1)?;
            }
            list.end(out, ']');
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            let mut list = JsonList::begin(out, '{', style, depth);
            for key in keys {
                list.next(out);
                write_json_string(out, &json_key(&key)?, style.ensure_ascii);
                out.push_str(&style.key_separator);
                write_json(out, &value.get_item(&key)?, style, depth + 1)?;
            }
            list.end(out, '}');
        }
        kind => {
            return Err(Error::new(ErrorKind::InvalidOperation, format!("{kind} value is not JSON serializable")));
        }
    }
    Ok(())
}

/// Separators and line breaks of a list or an object.
struct JsonList<'a> {
    style: &'a JsonStyle,
    depth: usize,
    is_empty: bool,
}

impl<'a> JsonList<'a> {
    fn begin(out: &mut String, bracket: char, style: &'a JsonStyle, depth: usize) -> Self {
        out.push(bracket);
        Self { style, depth, is_empty: true }
    }

    fn next(&mut self, out: &mut String) {
        if !self.is_empty {
            // With line breaks, a separator's trailing space would end the line.
            let separator = &self.style.item_separator;
            out.push_str(if self.style.indent.is_some() { separator.trim_end() } else { separator });
        }
        self.is_empty = false;
        self.break_line(out, self.depth + 1);
    }

    fn end(&self, out: &mut String, bracket: char) {
        if !self.is_empty {
            self.break_line(out, self.depth);
        }
        out.push(bracket);
    }

    fn break_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = self.style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::None => Ok("null".to_string()),
        ValueKind::Bool => Ok(key.to_string()),
        ValueKind::Number => json_number(key),
        ValueKind::String => Ok(key.to_string()),
        kind => Err(Error::new(ErrorKind::InvalidOperation, format!("{kind} can't be the key of a JSON object"))),
    }
}

fn json_number(value: &Value) -> Result<String, Error> {
    Ok(match number(value)?.as_str() {
        "nan" => "NaN".to_string(),
        "inf" => "Infinity".to_string(),
        "-inf" => "-Infinity".to_string(),
        digits => digits.to_string(),
    })
}

fn write_json_string(out: &mut String, text: &str, ensure_ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || (ensure_ascii && !c.is_ascii()) => {
                let mut units = [0_u16; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn check_bounds(out: &str, depth: usize) -> Result<(), Error> {
    let limit = if depth > MAX_DEPTH {
        format!("value nested deeper than {MAX_DEPTH}")
    } else if out.len() > MAX_TEXT_BYTES {
        format!("value of more than {MAX_TEXT_BYTES} bytes")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidOperation, limit))
}
