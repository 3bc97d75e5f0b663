//! The C ABI of ../text_ffi.h. This file holds all the unsafe code: it checks what comes in, turns it into slices and
//! strings, and catches panics on the way out.

mod chat_template;
mod guarded_syntax;
mod pre_tokenizer;
mod python_text;
mod sentence_piece;
mod strftime;
mod tokenizer;
mod value_guard;

use std::panic::{AssertUnwindSafe, catch_unwind};

use chat_template::ChatTemplate;
use pre_tokenizer::Family;
use tokenizer::{Tokenizer, Vocabulary};

const OK: i32 = 0;
const INVALID: i32 = 1;
const INTERNAL: i32 = 2;
const MAX_INPUT_BYTES: usize = 64 * 1024 * 1024;
const MAX_TEMPLATE_BYTES: usize = 1024 * 1024;
const SENTENCE_PIECE: i32 = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct QuireBytes {
    data: *const u8,
    size: usize,
}

#[repr(C)]
pub struct QuireString {
    data: *mut u8,
    size: usize,
}

#[repr(C)]
pub struct QuireTokenIds {
    data: *mut i32,
    size: usize,
}

#[repr(C)]
pub struct QuireVocabulary {
    pre_tokenizer: i32,
    tokens: *const QuireBytes,
    scores: *const f32,
    num_tokens: usize,
    merges: *const QuireBytes,
    num_merges: usize,
    special_ids: *const i32,
    num_special: usize,
    user_defined_ids: *const i32,
    num_user_defined: usize,
    add_space_prefix: i32,
}

/// # Safety
/// `data` points to `size` readable elements, or `size` is 0.
unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 || data.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } }
}

/// # Safety
/// As for `slice`.
unsafe fn text<'a>(name: &str, bytes: QuireBytes, max_bytes: usize) -> Result<&'a str, String> {
    if bytes.size > max_bytes {
        return Err(format!("{name}: got {} bytes, expected at most {max_bytes}", bytes.size));
    }
    std::str::from_utf8(unsafe { slice(bytes.data, bytes.size) })
        .map_err(|error| format!("{name}: not valid UTF-8 at byte {}", error.valid_up_to()))
}

fn into_raw<T>(values: Vec<T>) -> (*mut T, usize) {
    let boxed = values.into_boxed_slice();
    let size = boxed.len();
    (Box::into_raw(boxed).cast(), size)
}

/// # Safety
/// `data` and `size` came from `into_raw` and were not freed before, or `data` is null.
unsafe fn free_raw<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)) });
    }
}

/// Runs `work` and hands its value to `deliver`, its error or panic to `error`.
///
/// # Safety
/// `error` is writable.
unsafe fn guarded<T>(
    error: *mut QuireString,
    work: impl FnOnce() -> Result<T, String>,
    deliver: impl FnOnce(T),
) -> i32 {
    let (status, message) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => {
            deliver(value);
            return OK;
        }
        Ok(Err(message)) => (INVALID, message),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            (INTERNAL, format!("text layer: {}", text.unwrap_or_else(|| "unknown panic".to_string())))
        }
    };
    let (data, size) = into_raw(message.into_bytes());
    unsafe { error.write(QuireString { data, size }) };
    status
}

/// # Safety
/// All pointers of `vocabulary` are as text_ffi.h says.
unsafe fn create_tokenizer(vocabulary: &QuireVocabulary) -> Result<Tokenizer, String> {
    let raw_tokens = unsafe { slice(vocabulary.tokens, vocabulary.num_tokens) };
    let raw_merges = unsafe { slice(vocabulary.merges, vocabulary.num_merges) };
    let texts = |name: &str, raw: &[QuireBytes]| -> Result<Vec<&str>, String> {
        raw.iter().map(|&bytes| unsafe { text(name, bytes, MAX_INPUT_BYTES) }).collect()
    };
    let is_sentence_piece = vocabulary.pre_tokenizer == SENTENCE_PIECE;
    let num_scores = if is_sentence_piece && !vocabulary.scores.is_null() { vocabulary.num_tokens } else { 0 };
    let parts = Vocabulary {
        tokens: texts("tokens", raw_tokens)?,
        scores: unsafe { slice(vocabulary.scores, num_scores) },
        merges: texts("merges", raw_merges)?,
        special_ids: unsafe { slice(vocabulary.special_ids, vocabulary.num_special) },
        user_defined_ids: unsafe { slice(vocabulary.user_defined_ids, vocabulary.num_user_defined) },
    };
    for &id in parts.special_ids.iter().chain(parts.user_defined_ids) {
        if !usize::try_from(id).is_ok_and(|id| id < parts.tokens.len()) {
            return Err(format!("added token: got id {id}, expected one in [0, {})", parts.tokens.len()));
        }
    }
    let family = match vocabulary.pre_tokenizer {
        0 => Family::Gpt2,
        1 => Family::SingleDigits,
        2 => Family::Llama3,
        3 => Family::Qwen2,
        SENTENCE_PIECE if parts.scores.len() != parts.tokens.len() => {
            return Err(format!("scores: got none, expected {}", parts.tokens.len()));
        }
        SENTENCE_PIECE => return Tokenizer::sentence_piece(&parts, vocabulary.add_space_prefix != 0),
        other => return Err(format!("pre_tokenizer: got {other}, expected one in [0, {SENTENCE_PIECE}]")),
    };
    Tokenizer::byte_level(&parts, family)
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_tokenizer_create(
    vocabulary: *const QuireVocabulary,
    tokenizer: *mut *mut Tokenizer,
    error: *mut QuireString,
) -> i32 {
    unsafe { guarded(error, || create_tokenizer(&*vocabulary), |made| tokenizer.write(Box::into_raw(Box::new(made)))) }
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        drop(unsafe { Box::from_raw(tokenizer) });
    }
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_tokenizer_encode(
    tokenizer: *const Tokenizer,
    input: QuireBytes,
    parse_special: i32,
    ids: *mut QuireTokenIds,
    error: *mut QuireString,
) -> i32 {
    let work = || unsafe { (*tokenizer).encode(text("text", input, MAX_INPUT_BYTES)?, parse_special != 0) };
    let deliver = |made| {
        let (data, size) = into_raw(made);
        unsafe { ids.write(QuireTokenIds { data, size }) };
    };
    unsafe { guarded(error, work, deliver) }
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_template_create(
    source: QuireBytes,
    chat_template: *mut *mut ChatTemplate,
    error: *mut QuireString,
) -> i32 {
    let work = || ChatTemplate::new(unsafe { text("template", source, MAX_TEMPLATE_BYTES) }?);
    unsafe { guarded(error, work, |made| chat_template.write(Box::into_raw(Box::new(made)))) }
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_template_free(chat_template: *mut ChatTemplate) {
    if !chat_template.is_null() {
        drop(unsafe { Box::from_raw(chat_template) });
    }
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_template_render(
    chat_template: *const ChatTemplate,
    context_json: QuireBytes,
    now_unix_seconds: i64,
    rendered: *mut QuireString,
    error: *mut QuireString,
) -> i32 {
    let work = || unsafe { (*chat_template).render(text("context", context_json, MAX_INPUT_BYTES)?, now_unix_seconds) };
    let deliver = |made: String| {
        let (data, size) = into_raw(made.into_bytes());
        unsafe { rendered.write(QuireString { data, size }) };
    };
    unsafe { guarded(error, work, deliver) }
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_string_free(string: QuireString) {
    unsafe { free_raw(string.data, string.size) };
}

/// # Safety
/// See text_ffi.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quire_token_ids_free(ids: QuireTokenIds) {
    unsafe { free_raw(ids.data, ids.size) };
}
