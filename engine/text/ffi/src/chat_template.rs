//! Chat templates: Jinja2 as Python's transformers sets it up.

use minijinja::value::{Kwargs, Value};
use minijinja::{context, Environment, Error, ErrorKind};

use crate::python_text::{json_of, str_of, JsonStyle};
use crate::strftime::strftime;

const NAME: &str = "chat_template";
/// Instructions of one rendering, about a second's worth. A turn of a conversation takes some hundred.
const FUEL: u64 = 10_000_000;
/// Levels of nesting that a thread's usual stack holds with room to spare.
const MAX_RECURSION: usize = 200;
const MAX_INDENT: usize = 64;
const MAX_RENDERED_BYTES: usize = 64 * 1024 * 1024;

/// What was rendered so far; an error ends the rendering.
#[derive(Default)]
struct Rendered(Vec<u8>);

impl std::io::Write for Rendered {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RENDERED_BYTES {
            return Err(std::io::Error::other(format!("expected a prompt of at most {MAX_RENDERED_BYTES} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub struct ChatTemplate {
    environment: Environment<'static>,
}

impl ChatTemplate {
    pub fn new(source: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(MAX_RECURSION);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_formatter(|out, _state, value| Ok(out.write_str(&str_of(value)?)?));
        environment.add_filter("string", |value: &Value| str_of(value));
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_template_owned(NAME, source.to_string()).map_err(|error| describe(&error))?;
        Ok(Self { environment })
    }

    pub fn render(&self, context_json: &str, now_unix_seconds: i64) -> Result<String, String> {
        let variables: serde_json::Value =
            serde_json::from_str(context_json).map_err(|error| format!("context: {error}"))?;
        if !variables.is_object() {
            return Err("context: expected a JSON object".to_string());
        }
        let now = move |format: String| strftime(&format, now_unix_seconds);
        let context = context! { strftime_now => Value::from_function(now), ..Value::from_serialize(&variables) };
        let template = self.environment.get_template(NAME).map_err(|error| describe(&error))?;
        let mut rendered = Rendered::default();
        template.render_captured_to(context, &mut rendered).map_err(|error| describe(&error))?;
        String::from_utf8(rendered.0).map_err(|error| error.to_string())
    }
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
fn tojson(value: &Value, kwargs: Kwargs) -> Result<String, Error> {
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
    json_of(value, &style)
}
