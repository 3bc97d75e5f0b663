//! Cuts text into the words that merges never cross. Time is linear in the text: the patterns have no look-around,
//! the one that the originals need ("whitespace, but not its last character before a word") is done by hand.

use regex::{Regex, RegexBuilder};
use unicode_normalization_alignments::{UnicodeNormalization, is_nfc};

/// A longer word is cut: merging holds about 60 bytes per byte of a word, so an endless one must not pass.
pub const MAX_WORD_BYTES: usize = 64 * 1024;

/// Of states that matching remembers, for each thread that encodes at the same time.
const MAX_DFA_BYTES: usize = 1024 * 1024;

const GPT2_PATTERN: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const LLAMA3_PATTERN: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const QWEN2_PATTERN: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Gpt2,
    SingleDigits,
    Llama3,
    Qwen2,
}

pub struct PreTokenizer {
    family: Family,
    pattern: Regex,
}

impl PreTokenizer {
    pub fn new(family: Family) -> Result<Self, String> {
        let pattern = match family {
            Family::Gpt2 | Family::SingleDigits => GPT2_PATTERN,
            Family::Llama3 => LLAMA3_PATTERN,
            Family::Qwen2 => QWEN2_PATTERN,
        };
        let pattern =
            RegexBuilder::new(pattern).dfa_size_limit(MAX_DFA_BYTES).build().map_err(|error| error.to_string())?;
        Ok(Self { family, pattern })
    }

    /// Calls `take` with each word of `text`, in order.
    pub fn for_each_word(&self, text: &str, take: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
        match self.family {
            Family::SingleDigits => {
                let mut begin = 0;
                for (at, digit) in text.char_indices().filter(|(_, c)| c.is_numeric()) {
                    self.match_words(&text[begin..at], take)?;
                    begin = at + digit.len_utf8();
                    take(&text[at..begin])?;
                }
                self.match_words(&text[begin..], take)
            }
            Family::Qwen2 if !is_nfc(text) => {
                let composed: String = text.nfc().map(|(c, _)| c).collect();
                self.match_words(&composed, take)
            }
            _ => self.match_words(text, take),
        }
    }

    fn match_words(&self, text: &str, take: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
        let mut begin = 0;
        while let Some(found) = self.pattern.find_at(text, begin) {
            let end = found.end() - self.given_back(text, found.as_str(), found.end());
            for_each_part(&text[begin..end], take)?;
            begin = end;
        }
        for_each_part(&text[begin..], take)
    }

    /// Bytes that `word`, which ends at `end`, leaves to the next one: the last of several spaces before a word.
    fn given_back(&self, text: &str, word: &str, end: usize) -> usize {
        let Some(last) = word.chars().next_back() else { return 0 };
        let ends_line = matches!(last, '\r' | '\n') && matches!(self.family, Family::Llama3 | Family::Qwen2);
        let is_only_character = word.len() == last.len_utf8();
        if !last.is_whitespace() || ends_line || is_only_character || end == text.len() {
            return 0;
        }
        last.len_utf8()
    }
}

/// Cuts `word` into parts of at most MAX_WORD_BYTES, between characters.
pub fn for_each_part(word: &str, take: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    let mut rest = word;
    while rest.len() > MAX_WORD_BYTES {
        let mut cut = MAX_WORD_BYTES;
        while !rest.is_char_boundary(cut) {
            cut -= 1;
        }
        take(&rest[..cut])?;
        rest = &rest[cut..];
    }
    if rest.is_empty() { Ok(()) } else { take(rest) }
}
