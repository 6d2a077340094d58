//! One thing that a real table lacks or has otherwise, and the statements that mend it.

use std::fmt;

/// What [`verify`](super::verify) found. `Display` says it in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "`table` is the bare name, `column` the name in this table, `mend` the statements")]
pub enum Finding {
    /// There is no such table.
    MissingTable { table: String, mend: Vec<String> },
    /// There is no such column; `wanted` is the type that it must have.
    MissingColumn { table: String, column: String, wanted: String, mend: Vec<String> },
    /// The column's type refuses, rounds, cuts or pads what is written, or is read as another.
    WrongType { table: String, column: String, found: String, wanted: String, mend: Vec<String> },
    /// Nulls are written into the column, and it takes none.
    NotNull { table: String, column: String, mend: Vec<String> },
    /// The column takes nulls; a row of another program with one could not be read.
    Nullable { table: String, column: String, mend: Vec<String> },
    /// A column that nobody declared takes neither a null nor has a default: no row can be written.
    Unwritten { table: String, column: String, mend: Vec<String> },
    /// Nothing keeps these columns unique: a row could be written twice, or be settled as another.
    MissingUnique { table: String, columns: Vec<String>, mend: Vec<String> },
    /// Nothing finds the rows to be claimed but reading the whole table.
    MissingIndex { table: String, index: String, mend: Vec<String> },
}

impl Finding {
    /// The statements that mend it, in the order in which they are to be run. Read them first: they
    /// rewrite the table where its columns have to change, and know nothing of views and foreign keys.
    ///
    /// One that begins with `--` says what has to be done where no statement does it.
    #[must_use]
    pub fn statements(&self) -> &[String] {
        match self {
            Self::MissingTable { mend, .. }
            | Self::MissingColumn { mend, .. }
            | Self::WrongType { mend, .. }
            | Self::NotNull { mend, .. }
            | Self::Nullable { mend, .. }
            | Self::Unwritten { mend, .. }
            | Self::MissingUnique { mend, .. }
            | Self::MissingIndex { mend, .. } => mend,
        }
    }

    /// All of [`Self::statements`] as one text.
    #[must_use]
    pub fn statement(&self) -> String {
        self.statements().iter().map(|statement| format!("{statement};")).collect::<Vec<_>>().join("\n")
    }

    /// True if the table works as it is, and is slow or lets odd rows in.
    #[must_use]
    pub fn is_advice(&self) -> bool {
        matches!(self, Self::Nullable { .. } | Self::MissingIndex { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingTable { table, .. } => write!(f, "there is no table {table}"),
            Self::MissingColumn { table, column, wanted, .. } => {
                write!(f, "there is no column {table}.{column}; it must be {wanted}")
            }
            Self::WrongType { table, column, found, wanted, .. } => {
                let found = if found.is_empty() { "of no type" } else { found };
                write!(f, "the column {table}.{column} is {found}; it must be {wanted}")
            }
            Self::NotNull { table, column, .. } => {
                write!(f, "the column {table}.{column} is NOT NULL; it must take nulls")
            }
            Self::Nullable { table, column, .. } => {
                write!(f, "the column {table}.{column} takes nulls; it should be NOT NULL")
            }
            Self::Unwritten { table, column, .. } => {
                write!(f, "the column {table}.{column} is NOT NULL without a default, and nothing writes it")
            }
            Self::MissingUnique { table, columns, .. } => {
                write!(f, "no unique constraint of {table} is on ({})", columns.join(", "))
            }
            Self::MissingIndex { table, index, .. } => {
                write!(f, "{table} has no index like {index}: every claim reads the whole table")
            }
        }
    }
}
