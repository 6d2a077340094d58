//! A column as a query compares and sorts by it: the same on every database.
//!
//! Text is compared byte by byte, whatever collation the column has; it sorts by its first
//! [`SORTED`] characters (bytes by as many of them), so that the place of a row in an order stays
//! small. Keys sort whole.

use crate::model::Kind;
use crate::store::Dialect;

/// How many characters of a text count when rows are sorted: no more bytes than MariaDB and MySQL
/// look at (`max_sort_length`, 1,024).
const SORTED: usize = 200;

/// How the values of a column compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// As the database compares them: no text, or ids, which no collation tells apart.
    Plain,
    /// The table itself compares it byte by byte: its equality needs nothing more.
    Key,
    /// Text of any collation and any length.
    Free,
    /// Bytes, any number of them.
    Raw,
}

/// A column of the table, ready to stand in a condition or an order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand {
    /// Its name in the table.
    pub(crate) name: String,
    /// The kind of the values that it is read as and compared with.
    pub(crate) kind: Kind,
    /// Whether it may be null.
    pub(crate) nullable: bool,
    /// How it compares.
    pub(crate) bytes: Bytes,
}

impl Operand {
    /// The column itself.
    pub(super) fn column(&self, dialect: Dialect) -> String {
        dialect.quoted(&self.name)
    }

    /// The column, comparing byte by byte.
    pub(super) fn exact(&self, dialect: Dialect) -> String {
        let column = self.column(dialect);
        match (self.bytes, dialect) {
            (Bytes::Plain | Bytes::Raw, _) | (Bytes::Key, Dialect::Sqlite | Dialect::Mysql) => column,
            (Bytes::Key | Bytes::Free, Dialect::Postgres) => format!("{column} COLLATE \"C\""),
            (Bytes::Free, Dialect::Sqlite) => format!("{column} COLLATE BINARY"),
            // A collation by bytes would still pad with blanks.
            (Bytes::Free, Dialect::Mysql) => format!("CAST(CONVERT({column} USING utf8mb4) AS BINARY)"),
        }
    }

    /// The `n`-th value, as [`Self::exact`] and [`Self::sorted`] compare with it.
    pub(super) fn value(&self, dialect: Dialect, n: usize) -> String {
        match (self.bytes, dialect) {
            (Bytes::Free, Dialect::Mysql) => format!("CAST(?{n} AS BINARY)"),
            _ => format!("?{n}"),
        }
    }

    /// What rows are sorted by.
    pub(super) fn sorted(&self, dialect: Dialect) -> String {
        let place = self.place(dialect);
        match (self.bytes, dialect) {
            (Bytes::Plain | Bytes::Key, _) => self.exact(dialect),
            (Bytes::Raw, _) => place,
            (Bytes::Free, Dialect::Postgres) => format!("{place} COLLATE \"C\""),
            (Bytes::Free, Dialect::Sqlite) => format!("{place} COLLATE BINARY"),
            (Bytes::Free, Dialect::Mysql) => format!("CAST({place} AS BINARY)"),
        }
    }

    /// What is read of a row to find its place in the order again.
    pub(super) fn place(&self, dialect: Dialect) -> String {
        let column = self.column(dialect);
        match (self.bytes, dialect) {
            (Bytes::Plain | Bytes::Key, _) => column,
            (Bytes::Free, Dialect::Mysql) => format!("SUBSTR(CONVERT({column} USING utf8mb4), 1, {SORTED})"),
            (Bytes::Free | Bytes::Raw, _) => format!("SUBSTR({column}, 1, {SORTED})"),
        }
    }
}
