//! Bounds on the values that a template makes. Values that hold others are compared, printed, hashed and dropped
//! natively, by recursion and item by item, which the engine's fuel does not see: so whatever a template makes is
//! looked through once, paid for, and refused if it is too deep or too large. `guarded_syntax` puts the filters here
//! into every template.

use minijinja::value::{DynObject, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// For what an expression makes.
pub const MADE: &str = "quire_made";
/// For what is stored in a namespace, compared, or given to a filter or method: data, nothing that could hold itself.
pub const DATA: &str = "quire_data";
/// Texts that are cut or indexed, which takes steps along them: the engine takes fuel for the length of what a filter
/// gets, so this one has nothing to do.
pub const TEXT: &str = "quire_text";
const MAX_DEPTH: usize = 256;
/// Of all strings in a value, each counted as often as the value holds it, and a few bytes for every other part.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const PART_BYTES: usize = 8;
/// Looking at a part takes some nanoseconds, an instruction about a hundred.
const PARTS_PER_FUEL: u64 = 4;
/// A text inside of a value may be copied or compared with it.
const BYTES_PER_FUEL: usize = 256;

pub fn text(value: Value) -> Value {
    value
}

pub fn made(state: &State, value: Value) -> Result<Value, Error> {
    plain(state, value, false)
}

pub fn data(state: &State, value: Value) -> Result<Value, Error> {
    plain(state, value, true)
}

fn plain(state: &State, value: Value, is_data: bool) -> Result<Value, Error> {
    if value.as_object().is_none() {
        return Ok(value);
    }
    let mut walk = Walk { state, is_data, num_parts: 0, num_bytes: 0 };
    let rebuilt = walk.visit(&value, 0)?;
    state.consume_fuel((walk.num_bytes / BYTES_PER_FUEL) as u64)?;
    Ok(rebuilt.unwrap_or(value))
}

/// Fails if a text that has `num_bytes` would be longer than any value may be.
pub fn check_text_bytes(num_bytes: usize) -> Result<(), Error> {
    if num_bytes <= MAX_BYTES { Ok(()) } else { Err(refused(format!("expected a text of at most {MAX_BYTES} bytes"))) }
}

/// The bytes that `value` counts for.
pub fn bytes_of(state: &State, value: &Value) -> Result<usize, Error> {
    let mut walk = Walk { state, is_data: true, num_parts: 0, num_bytes: 0 };
    walk.visit(value, 0)?;
    Ok(walk.num_bytes)
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

struct Walk<'a, 'template, 'env> {
    state: &'a State<'template, 'env>,
    is_data: bool,
    num_parts: u64,
    num_bytes: usize,
}

impl Walk<'_, '_, '_> {
    /// The value with lists and dictionaries for what only behaves like them, which can hold more than they show; None
    /// if it has no such part.
    fn visit(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        self.count(value, depth)?;
        let Some(object) = value.as_object() else {
            return Ok(None);
        };
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => self.visit_list(value, object, depth),
            ValueKind::Map => self.visit_map(value, object, depth),
            _ => self.visit_other(value),
        }
    }

    fn count(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(refused(format!("expected a value of at most {MAX_DEPTH} levels")));
        }
        self.num_parts += 1;
        if self.num_parts % PARTS_PER_FUEL == 0 {
            self.state.consume_fuel(1)?;
        }
        self.num_bytes += PART_BYTES + value.as_str().map_or(0, str::len);
        if self.num_bytes > MAX_BYTES {
            return Err(refused(format!("expected a value of at most {MAX_BYTES} bytes")));
        }
        Ok(())
    }

    fn visit_list(&mut self, value: &Value, object: &DynObject, depth: usize) -> Result<Option<Value>, Error> {
        let mut is_plain = object.is::<Vec<Value>>() || object.is::<Tuple>();
        let mut items = Vec::new();
        for item in value.try_iter()?.checked() {
            let item = item?;
            let rebuilt = self.visit(&item, depth + 1)?;
            is_plain &= rebuilt.is_none();
            items.push(rebuilt.unwrap_or(item));
        }
        // What `groupby` gives shows all that it holds, and has names for its two parts.
        if is_plain || object.type_name().ends_with("::GroupTuple") {
            return Ok(None);
        }
        self.state.consume_fuel(items.len() as u64)?;
        Ok(Some(Value::from(items)))
    }

    fn visit_map(&mut self, value: &Value, object: &DynObject, depth: usize) -> Result<Option<Value>, Error> {
        if object.type_name().ends_with("::Loop") {
            return self.visit_other(value);
        }
        let is_namespace = object.type_name().ends_with("::Namespace");
        if is_namespace {
            self.visit_other(value)?;
        }
        let mut is_plain = is_namespace || object.type_name().starts_with("indexmap::map::IndexMap<");
        let mut pairs = Vec::new();
        for key in value.try_iter()?.checked() {
            let key = key?;
            let item = value.get_item(&key)?;
            let (new_key, new_item) = (self.visit(&key, depth + 1)?, self.visit(&item, depth + 1)?);
            is_plain &= new_key.is_none() && new_item.is_none();
            pairs.push((new_key.unwrap_or(key), new_item.unwrap_or(item)));
        }
        if is_plain {
            return Ok(None);
        }
        self.state.consume_fuel(pairs.len() as u64)?;
        Ok(Some(pairs.into_iter().collect()))
    }

    /// Namespaces, loops, macros, functions.
    fn visit_other(&self, value: &Value) -> Result<Option<Value>, Error> {
        if self.is_data {
            return Err(refused(format!("expected data (text, numbers, lists, dictionaries), got {value:.40}")));
        }
        Ok(None)
    }
}
