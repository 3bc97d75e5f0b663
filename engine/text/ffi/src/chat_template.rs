//! Chat templates: Jinja2 as Python's transformers sets it up.

use std::collections::BTreeMap;

use minijinja::machinery::{CodeGenerator, Instructions, eval, make_string_output, parse};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Serde, Value, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, context};
use minijinja_contrib::pycompat::unknown_method_callback;
use self_cell::self_cell;

use crate::guarded_syntax::{check_size, guarded};
use crate::python_text::{JsonStyle, json_of, str_of};
use crate::strftime::strftime;
use crate::value_guard;

const NAME: &str = "chat_template";
/// What one rendering may take: instructions, of which a turn of a conversation takes some hundred, and one more for 64
/// bytes that the template makes. About a second's worth, and 640 MB.
const FUEL: u64 = 10_000_000;
/// Levels of nesting that a thread's usual stack holds with room to spare.
const MAX_RECURSION: usize = 200;
const MAX_INDENT: usize = 64;
const WRITTEN_BYTES_PER_FUEL: usize = 16;
const SUMMED_ITEMS_PER_FUEL: u64 = 32;
const MAX_RENDERED_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that went through the formatter, to the prompt or to a variable.
#[derive(Default)]
struct WrittenBytes(usize);

struct Compiled<'a> {
    instructions: Instructions<'a>,
    blocks: BTreeMap<&'a str, Instructions<'a>>,
}

self_cell!(
    struct Program {
        owner: String,
        #[covariant]
        dependent: Compiled,
    }
);

pub struct ChatTemplate {
    environment: Environment<'static>,
    program: Program,
}

impl ChatTemplate {
    pub fn new(source: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(MAX_RECURSION);
        environment.set_unknown_method_callback(method);
        environment.set_formatter(write_value);
        environment.add_filter(value_guard::MADE, value_guard::made);
        environment.add_filter(value_guard::DATA, value_guard::data);
        environment.add_filter(value_guard::TEXT, value_guard::text);
        environment.add_filter("format", format);
        environment.add_filter("string", |state: &State, value: &Value| paid(state, str_of(value)?));
        environment.add_filter("sum", sum);
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        let program = Program::try_new(source.to_string(), |source| compile(source))?;
        Ok(Self { environment, program })
    }

    pub fn render(&self, context_json: &str, now_unix_seconds: i64) -> Result<String, String> {
        let variables: serde_json::Value =
            serde_json::from_str(context_json).map_err(|error| format!("context: {error}"))?;
        if !variables.is_object() {
            return Err("context: expected a JSON object".to_string());
        }
        let now = move |format: String| strftime(&format, now_unix_seconds);
        let context = context! { strftime_now => Value::from_function(now), ..Value::from(Serde(&variables)) };
        let mut rendered = String::new();
        self.run(context, &mut make_string_output(&mut rendered)).map_err(|error| describe(&error))?;
        Ok(rendered)
    }

    fn run(&self, context: Value, out: &mut Output) -> Result<(), Error> {
        let compiled = self.program.borrow_dependent();
        eval(&self.environment, &compiled.instructions, context, &compiled.blocks, out, AutoEscape::None)?;
        Ok(())
    }
}

fn compile(source: &str) -> Result<Compiled<'_>, String> {
    check_size(source)?;
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    let tree = parse(source, NAME, syntax.map_err(|error| describe(&error))?).map_err(|error| describe(&error))?;
    let mut generator = CodeGenerator::new(NAME, source);
    generator.compile_stmt(&guarded(&tree));
    let (instructions, blocks) = generator.finish();
    Ok(Compiled { instructions, blocks })
}

fn write_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let text = str_of(value)?;
    let written = &mut state.get_or_insert_extension(WrittenBytes::default()).0;
    *written += text.len();
    if *written > MAX_RENDERED_BYTES {
        let limit = format!("expected a prompt of at most {MAX_RENDERED_BYTES} bytes");
        return Err(Error::new(ErrorKind::InvalidOperation, limit));
    }
    Ok(out.write_str(&text)?)
}

/// Writing a value as text takes longer than copying the text.
fn paid(state: &State, text: String) -> Result<String, Error> {
    state.consume_fuel((text.len() / WRITTEN_BYTES_PER_FUEL) as u64)?;
    Ok(text)
}

/// Python's methods.
fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if let (Some(text), "format") = (value.as_str(), name) {
        check_format(state, text, '{', args)?;
        value_guard::check_text_bytes(sum_of_widths(text))?;
    }
    unknown_method_callback(state, value, name, args)
}

fn format(state: &mut State, text: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    check_format(state, text.as_str().unwrap_or_default(), '%', &args)?;
    minijinja::filters::format(state, text, Rest(args.into_iter().map(ValueOrKwargs::from).collect()))
}

/// Each field of a format can ask for all of the arguments.
fn check_format(state: &State, text: &str, field: char, args: &[Value]) -> Result<(), Error> {
    let mut num_bytes: usize = 0;
    for arg in args {
        num_bytes += value_guard::bytes_of(state, arg)?;
    }
    value_guard::check_text_bytes(text.len().saturating_add(num_bytes.saturating_mul(text.matches(field).count())))
}

/// The numbers in the fields of a format: widths, and digits behind the point.
fn sum_of_widths(text: &str) -> usize {
    let fields = text.split('{').skip(1).map(|field| field.split('}').next().unwrap_or_default());
    let numbers = fields.flat_map(|field| field.split(|c: char| !c.is_ascii_digit()));
    let widths = numbers.filter(|digits| !digits.is_empty()).map(|digits| digits.parse().unwrap_or(usize::MAX));
    widths.fold(0, usize::saturating_add)
}

/// The sum of lists copies what it has, again and again.
fn sum(
    state: &State,
    values: Value,
    attribute: Option<&str>,
    start: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let (mut num_values, mut num_items) = (0, 0);
    for value in values.try_iter()? {
        num_values += 1;
        num_items += value.len().unwrap_or(0) as u64;
    }
    state.consume_fuel(num_items.saturating_mul(num_values) / SUMMED_ITEMS_PER_FUEL)?;
    minijinja::filters::sum(state, values, attribute, start, kwargs)
}

/// The error and what caused it, in one line.
fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// json.dumps with transformers' defaults: not ASCII only, spaces after separators, nothing escaped for HTML.
fn tojson(state: &State, value: &Value, kwargs: Kwargs) -> Result<String, Error> {
    let mut style = JsonStyle::default();
    if let Some(ensure_ascii) = kwargs.get::<Option<bool>>("ensure_ascii")? {
        style.ensure_ascii = ensure_ascii;
    }
    if let Some(sort_keys) = kwargs.get::<Option<bool>>("sort_keys")? {
        style.sort_keys = sort_keys;
    }
    style.indent = kwargs.get::<Option<usize>>("indent")?.map(|indent| indent.min(MAX_INDENT));
    if let Some(separators) = kwargs.get::<Option<Vec<String>>>("separators")? {
        let [item, key] = <[String; 2]>::try_from(separators)
            .map_err(|_| Error::new(ErrorKind::InvalidOperation, "separators: expected two strings"))?;
        style.item_separator = item;
        style.key_separator = key;
    }
    kwargs.assert_all_used()?;
    paid(state, json_of(value, &style)?)
}
