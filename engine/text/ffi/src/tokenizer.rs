//! Text to token ids: added tokens are found first, what lies between is cut into words, and each word is merged.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use tokenizers::Model;
use tokenizers::models::bpe::{BPE, BpeBuilder, Vocab};

use crate::pre_tokenizer::{Family, PreTokenizer, for_each_part};
use crate::sentence_piece::{self, SPACE};

/// Keeps a special token's text from being matched across it; see text_ffi.h.
const BARRIER: char = '\u{FDD0}';

pub struct Vocabulary<'a> {
    pub tokens: Vec<&'a str>,
    pub scores: &'a [f32],
    pub merges: Vec<&'a str>,
    pub special_ids: &'a [i32],
    pub user_defined_ids: &'a [i32],
}

enum Scheme {
    ByteLevel { pre_tokenizer: PreTokenizer, char_of_byte: [char; 256] },
    SentencePiece { add_space_prefix: bool, cut_at_words: bool },
}

struct AddedTokens {
    matcher: AhoCorasick,
    ids: Vec<i32>,
}

pub struct Tokenizer {
    model: BPE,
    scheme: Scheme,
    user_defined: AddedTokens,
    user_defined_and_special: AddedTokens,
}

impl AddedTokens {
    fn new(tokens: &[&str], ids: impl Iterator<Item = i32>) -> Result<Self, String> {
        let ids: Vec<i32> = ids.filter(|&id| !tokens[id as usize].is_empty()).collect();
        let matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The default for few tokens, a DFA, takes the square of a token's length to make.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(ids.iter().map(|&id| tokens[id as usize]))
            .map_err(|error| format!("added tokens: {error}"))?;
        Ok(Self { matcher, ids })
    }
}

impl Tokenizer {
    pub fn byte_level(vocabulary: &Vocabulary, family: Family) -> Result<Self, String> {
        let merges = vocabulary.merges.iter().map(|merge| split_merge(merge)).collect::<Result<Vec<_>, _>>()?;
        let scheme = Scheme::ByteLevel { pre_tokenizer: PreTokenizer::new(family)?, char_of_byte: char_of_byte() };
        // A word that is a token as it stands is that token, for the families whose merges don't lead to all of them.
        Self::new(vocabulary, merges, scheme, |builder| builder.ignore_merges(family == Family::Llama3))
    }

    pub fn sentence_piece(vocabulary: &Vocabulary, add_space_prefix: bool) -> Result<Self, String> {
        let tokens = &vocabulary.tokens;
        let merges = sentence_piece::merges_from_scores(tokens, vocabulary.scores);
        let cut_at_words = sentence_piece::pieces_stay_in_words(tokens);
        let unknown = tokens.contains(&"<unk>").then(|| "<unk>".to_string());
        Self::new(vocabulary, merges, Scheme::SentencePiece { add_space_prefix, cut_at_words }, |builder| {
            let builder = builder.byte_fallback(true).fuse_unk(true);
            if let Some(unknown) = unknown { builder.unk_token(unknown) } else { builder }
        })
    }

    fn new(
        vocabulary: &Vocabulary,
        merges: Vec<(String, String)>,
        scheme: Scheme,
        configure: impl FnOnce(BpeBuilder) -> BpeBuilder,
    ) -> Result<Self, String> {
        let tokens = &vocabulary.tokens;
        let ids = tokens.iter().enumerate().map(|(id, token)| (token.to_string(), id as u32));
        // The crate's word cache has no bound in bytes and never forgets; merging anew is cheap.
        let builder = BPE::builder().vocab_and_merges(ids.collect::<Vocab>(), merges).cache_capacity(0);
        let model = configure(builder).build().map_err(|error| error.to_string())?;
        let user_defined = vocabulary.user_defined_ids.iter().copied();
        let special = vocabulary.special_ids.iter().copied();
        Ok(Self {
            model,
            scheme,
            user_defined: AddedTokens::new(tokens, user_defined.clone())?,
            user_defined_and_special: AddedTokens::new(tokens, user_defined.chain(special))?,
        })
    }

    pub fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<i32>, String> {
        let added = if parse_special { &self.user_defined_and_special } else { &self.user_defined };
        let mut ids = Vec::with_capacity(text.len() / 4);
        let mut begin = 0;
        for found in added.matcher.find_iter(text) {
            self.encode_between(&text[begin..found.start()], parse_special, &mut ids)?;
            ids.push(added.ids[found.pattern().as_usize()]);
            begin = found.end();
        }
        self.encode_between(&text[begin..], parse_special, &mut ids)?;
        Ok(ids)
    }

    fn encode_between(&self, text: &str, drop_barriers: bool, ids: &mut Vec<i32>) -> Result<(), String> {
        if text.is_empty() {
            Ok(())
        } else if drop_barriers && text.contains(BARRIER) {
            self.encode_ordinary(&text.replace(BARRIER, ""), ids)
        } else {
            self.encode_ordinary(text, ids)
        }
    }

    fn encode_ordinary(&self, text: &str, ids: &mut Vec<i32>) -> Result<(), String> {
        match &self.scheme {
            Scheme::ByteLevel { pre_tokenizer, char_of_byte } => {
                let mut written = String::new();
                pre_tokenizer.for_each_word(text, &mut |word| {
                    written.clear();
                    written.extend(word.bytes().map(|byte| char_of_byte[usize::from(byte)]));
                    self.merge(&written, ids)
                })
            }
            Scheme::SentencePiece { add_space_prefix, cut_at_words } => {
                let mut written = String::with_capacity(text.len() + text.len() / 2);
                if *add_space_prefix {
                    written.push(SPACE);
                }
                written.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
                let mut begin = 0;
                if *cut_at_words {
                    for start in sentence_piece::word_starts(&written) {
                        for_each_part(&written[begin..start], &mut |part| self.merge(part, ids))?;
                        begin = start;
                    }
                }
                for_each_part(&written[begin..], &mut |part| self.merge(part, ids))
            }
        }
    }

    fn merge(&self, word: &str, ids: &mut Vec<i32>) -> Result<(), String> {
        let tokens = self.model.tokenize(word).map_err(|error| error.to_string())?;
        ids.extend(tokens.iter().map(|token| token.id as i32));
        Ok(())
    }
}

fn split_merge(merge: &str) -> Result<(String, String), String> {
    let malformed = || format!("merges: got \"{merge}\", expected two tokens with a space between");
    let (left, right) = merge.split_once(' ').ok_or_else(malformed)?;
    if left.is_empty() || right.is_empty() { Err(malformed()) } else { Ok((left.to_string(), right.to_string())) }
}

/// How byte-level vocabularies write a byte: printable Latin-1 as itself, the others from U+0100 on.
fn char_of_byte() -> [char; 256] {
    let mut next_unprintable = 0x100;
    std::array::from_fn(|byte| {
        let code = match byte {
            0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => byte as u32,
            _ => {
                next_unprintable += 1;
                next_unprintable - 1
            }
        };
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    })
}
