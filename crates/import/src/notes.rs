//! Statements about a file, and the parts of the result that were guessed.

/// The statements in order, and the parts of the result that the file leaves open.
#[derive(Default)]
pub struct Notes {
    said: Vec<String>,
    guesses: Vec<String>,
}

impl Notes {
    /// Adds a statement.
    pub fn push(&mut self, statement: impl Into<String>) {
        self.said.push(statement.into());
    }
    /// Names a part that was guessed, such as the unit of a column.
    pub fn guess(&mut self, part: impl Into<String>) {
        self.guesses.push(part.into());
    }
    /// The statements; the last one names all guessed parts and the resulting mean rate, of `mean` in b/s.
    pub fn finish(mut self, mean: f64) -> Vec<String> {
        if !self.guesses.is_empty() {
            self.said.push(format!(
                "guessed: {}; the mean that results is {:.3} Mb/s",
                self.guesses.join(", "),
                mean / 1e6
            ));
        }
        self.said
    }
}
