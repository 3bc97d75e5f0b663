//! Sentence pieces as byte-pair merges: a piece's score says how early it is made.

use std::collections::{HashMap, HashSet};

pub const SPACE: char = '\u{2581}';

/// All ways to make a piece of two others, best piece first; of one piece, in the order of its parts' ids.
pub fn merges_from_scores(tokens: &[&str], scores: &[f32]) -> Vec<(String, String)> {
    let ids: HashMap<&str, usize> = tokens.iter().enumerate().map(|(id, token)| (*token, id)).collect();
    // Looking up all parts of a long piece would take the square of its length.
    let lengths: HashSet<usize> = tokens.iter().map(|token| token.len()).collect();
    let mut merges: Vec<(usize, usize, usize)> = Vec::new(); // (piece, left, right)
    for (piece, token) in tokens.iter().enumerate() {
        let may_cut = |cut: &usize| lengths.contains(cut) && lengths.contains(&(token.len() - cut));
        for cut in token.char_indices().skip(1).map(|(cut, _)| cut).filter(may_cut) {
            if let (Some(&left), Some(&right)) = (ids.get(&token[..cut]), ids.get(&token[cut..])) {
                merges.push((piece, left, right));
            }
        }
    }
    merges.sort_by(|a, b| {
        let by_score = scores[b.0].total_cmp(&scores[a.0]);
        by_score.then((a.1, a.2).cmp(&(b.1, b.2)))
    });
    merges.iter().map(|&(_, left, right)| (tokens[left].to_string(), tokens[right].to_string())).collect()
}

/// Whether no piece holds a space after another character, so that text may be cut before such a space.
pub fn pieces_stay_in_words(tokens: &[&str]) -> bool {
    !tokens.iter().any(|token| word_starts(token).next().is_some())
}

/// Places in `text` where a space follows another character.
pub fn word_starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut previous = SPACE;
    text.char_indices().filter_map(move |(at, c)| {
        let starts = c == SPACE && previous != SPACE;
        previous = c;
        starts.then_some(at)
    })
}
