//! Takes a Rust file apart, as far as the rules need it: code without comments and test modules,
//! and the string literals in it.
//!
//! Not a parser: it knows comments, the kinds of literals and brackets. Offsets and lines stay
//! those of the file, because everything that is taken out is replaced by blanks.

/// A file's code and its string literals; test-only items are gone from both.
#[derive(Debug)]
pub(super) struct Source {
    code: Vec<char>,
    strings: Vec<(usize, String)>,
}

impl Source {
    /// Reads the text of a file.
    pub(super) fn new(text: &str) -> Self {
        let mut source = Scanner { text: text.chars().collect(), at: 0, code: Vec::new(), strings: Vec::new() }.scan();
        for (start, end) in test_items(&source.code) {
            blank(&mut source.code[start..end]);
            source.strings.retain(|(at, _)| !(start..end).contains(at));
        }
        source
    }

    /// The code: comments, the insides of literals and test-only items are blanks.
    pub(super) fn code(&self) -> &[char] {
        &self.code
    }

    /// Each string literal's line (from 1) and inside.
    pub(super) fn strings(&self) -> impl Iterator<Item = (usize, &str)> {
        self.strings.iter().map(|(at, text)| (self.line(*at), text.as_str()))
    }

    /// The line (from 1) of an offset into the code.
    pub(super) fn line(&self, at: usize) -> usize {
        self.code[..at].iter().filter(|c| **c == '\n').count() + 1
    }
}

fn blank(part: &mut [char]) {
    for c in part.iter_mut().filter(|c| **c != '\n') {
        *c = ' ';
    }
}

struct Scanner {
    text: Vec<char>,
    at: usize,
    code: Vec<char>,
    strings: Vec<(usize, String)>,
}

impl Scanner {
    fn scan(mut self) -> Source {
        while let Some(c) = self.peek(0) {
            match c {
                '/' if self.peek(1) == Some('/') => self.line_comment(),
                '/' if self.peek(1) == Some('*') => self.block_comment(),
                '"' => self.string(),
                'r' if !self.inside_a_word() && self.raw_hashes().is_some() => self.raw_string(),
                '\'' => self.character_or_lifetime(),
                _ => self.keep(),
            }
        }
        Source { code: self.code, strings: self.strings }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        self.code.push(self.text[self.at]);
        self.at += 1;
    }

    /// Drops the next `count` characters; line breaks stay.
    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            let Some(c) = self.peek(0) else { return };
            self.code.push(if c == '\n' { '\n' } else { ' ' });
            self.at += 1;
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.skip(1);
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.skip(1);
                    continue;
                }
            }
            self.skip(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.keep();
        let start = self.at;
        while let Some(c) = self.peek(0).filter(|c| *c != '"') {
            self.skip(if c == '\\' { 2 } else { 1 });
        }
        self.literal(start, self.at);
    }

    /// Records the inside of a literal and keeps its closing quote.
    fn literal(&mut self, start: usize, end: usize) {
        self.strings.push((start, self.text[start..end].iter().collect()));
        if self.peek(0).is_some() {
            self.keep();
        }
    }

    /// Whether the previous character is part of a longer word, other than the prefixes b and c.
    fn inside_a_word(&self) -> bool {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.text[at]);
        match before(1) {
            Some('b' | 'c') => before(2).is_some_and(word),
            other => other.is_some_and(word),
        }
    }

    /// At `r`: the number of `#` if a raw string begins here (and not a raw identifier).
    fn raw_hashes(&self) -> Option<usize> {
        let hashes = self.text[self.at + 1..].iter().take_while(|c| **c == '#').count();
        (self.peek(1 + hashes) == Some('"')).then_some(hashes)
    }

    fn raw_string(&mut self) {
        let hashes = self.raw_hashes().unwrap_or(0);
        for _ in 0..hashes + 2 {
            self.keep();
        }
        let start = self.at;
        while let Some(c) = self.peek(0) {
            if c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                break;
            }
            self.skip(1);
        }
        self.literal(start, self.at);
    }

    fn character_or_lifetime(&mut self) {
        self.keep();
        if self.peek(0) == Some('\\') {
            self.skip(2);
            while self.peek(0).is_some_and(|c| c != '\'') {
                self.skip(1);
            }
        } else if self.peek(1) == Some('\'') {
            self.skip(1);
        } else {
            return;
        }
        if self.peek(0).is_some() {
            self.keep();
        }
    }
}

/// Where items under `#[cfg(test)]` or `#[cfg(all(test, …))]` stand, attribute included.
fn test_items(code: &[char]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let attribute: String = code[at..].iter().take(64).filter(|c| !c.is_whitespace()).take(14).collect();
        let marked = code[at] == '#' && (attribute.starts_with("#[cfg(test)]") || attribute == "#[cfg(all(test");
        if marked {
            let end = end_of_item(code, at);
            found.push((at, end));
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

/// The end of the item that begins (with its attributes) at `start`: its `;` or closing brace.
fn end_of_item(code: &[char], start: usize) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code.iter().enumerate().skip(start) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth <= 0 {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text).code().iter().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn strings(text: &str) -> Vec<(usize, String)> {
        Source::new(text).strings().map(|(line, text)| (line, text.to_owned())).collect()
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(code("//! use crate::a;\nx /* /* y */ z */ w // v\n/// u\nt"), "x w t");
    }

    #[test]
    fn the_insides_of_strings_are_no_code() {
        assert_eq!(code(r#"a "x // y \" z" b"#), r#"a " " b"#);
        assert_eq!(strings("a\n\"x \\\" y\""), [(2, "x \\\" y".to_owned())]);
    }

    #[test]
    fn raw_and_byte_strings_are_strings() {
        assert_eq!(strings("r#\"a \" b\"# br\"c\" b\"d\""), [(1, "a \" b".into()), (1, "c".into()), (1, "d".into())]);
        assert_eq!(code("r#type bar\"x\""), "r#type bar\" \"");
    }

    #[test]
    fn lifetimes_and_characters_are_told_apart() {
        assert_eq!(code("&'a str '\"' '\\'' '{' b"), "&'a str ' ' ' ' ' ' b");
    }

    #[test]
    fn test_items_are_left_out() {
        let text = "a;\n#[cfg(test)]\n#[expect(x)]\nmod tests { fn b() { \"s\"; } }\n#[cfg(test)] mod more;\nc;";
        assert_eq!(code(text), "a; c;");
        assert!(strings(text).is_empty());
        assert_eq!(code("#[cfg(all(test, feature = \"x\"))] mod t { {} } d"), "d");
        assert_eq!(code("#[cfg(feature = \"testing\")] mod t;"), "#[cfg(feature = \" \")] mod t;");
    }

    #[test]
    fn an_unfinished_literal_or_comment_does_not_hang() {
        for text in ["\"", "r#\"", "/*", "'", "'\\", "b\"\\", "#[cfg(test)] mod t {"] {
            let _ = Source::new(text);
        }
    }
}
