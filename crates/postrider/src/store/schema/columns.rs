//! What each column is on each database: its type, whether it takes nulls, its default.

use super::ddl::Ddl;
use crate::model::column::{self, Column};
use crate::model::{IdType, Kind};
use crate::store::Dialect;

/// A version 7 UUID, as PostgreSQL before 18 can make it: 48 bits of milliseconds over a random one.
pub(super) const POSTGRES_UUID: &str = "encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) \
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) \
    FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid";

/// The same in digits, as MariaDB and MySQL can make it.
const MYSQL_UUID_DIGITS: &str = "CONCAT(LPAD(LOWER(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) \
    DIV 1000)), 12, '0'), '7', LEFT(MD5(CONCAT(UUID(), RAND())), 3), '8', LEFT(MD5(CONCAT(RAND(), UUID())), 15))";

/// Text on MariaDB and MySQL: all of Unicode, compared as it is written.
const MYSQL_TEXT: &str = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

impl Ddl {
    pub(super) fn column(&self, column: Column) -> String {
        let null = if column.nullable { "" } else { " NOT NULL" };
        let default = self.default_of(column).map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
        format!("{} {}{null}{default}", self.named(column), self.type_of_ours(column))
    }

    /// The type of one of our columns.
    pub(super) fn type_of_ours(&self, column: Column) -> String {
        match (self.dialect, column) {
            (_, column::ID) => self.id_type().to_owned(),
            (Dialect::Mysql, column::STATUS) => "VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin".to_owned(),
            (Dialect::Mysql, column::CHANNEL) => format!("VARCHAR(255) {MYSQL_TEXT}"),
            // Compared byte by byte, blanks at the end too, which no collation of utf8mb4 is sure to do.
            (Dialect::Mysql, column::DEDUPE_KEY) => "VARBINARY(255)".to_owned(),
            _ => self.dialect.type_of(column.kind).to_owned(),
        }
    }

    pub(super) fn tenant_type(&self) -> &'static str {
        match self.dialect {
            Dialect::Mysql => "VARBINARY(64)",
            Dialect::Postgres | Dialect::Sqlite => self.dialect.type_of(Kind::Text),
        }
    }

    /// The type of a column of the history; the row's id is stored as in the row.
    pub(super) fn type_in_history(&self, kind: Kind) -> &'static str {
        if kind == Kind::Uuid { self.id_type() } else { self.dialect.type_of(kind) }
    }

    fn id_type(&self) -> &'static str {
        match (self.table.id_type(), self.dialect) {
            (IdType::Binary, dialect) => dialect.type_of(Kind::Uuid),
            (IdType::Text, Dialect::Sqlite) => "TEXT",
            // `char(36)` compares with no text that is bound without giving its index up.
            (IdType::Text, Dialect::Postgres) => "varchar(36)",
            (IdType::Text, Dialect::Mysql) => "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin",
        }
    }

    /// What a row gets whose writer says nothing: an application in any language names only the
    /// channel and the address.
    pub(super) fn default_of(&self, column: Column) -> Option<String> {
        let own_words = match column {
            column::ID => self.new_id(),
            column::DEDUPE_KEY => match self.dialect {
                Dialect::Sqlite => "(lower(hex(randomblob(16))))".to_owned(),
                Dialect::Postgres => "gen_random_uuid()::text".to_owned(),
                Dialect::Mysql => "(UUID())".to_owned(),
            },
            column::CREATED_AT | column::UPDATED_AT | column::NEXT_ATTEMPT_AT => match self.dialect {
                Dialect::Sqlite => "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000)".to_owned(),
                Dialect::Postgres => "now()".to_owned(),
                // Never CURRENT_TIMESTAMP, which follows the session's zone.
                Dialect::Mysql => "(UTC_TIMESTAMP(6))".to_owned(),
            },
            column::STATUS => "'PENDING'".to_owned(),
            // MySQL takes no constant for a long text, but an expression.
            column::RECIPIENT if self.dialect == Dialect::Mysql => "('')".to_owned(),
            column::RECIPIENT => "''".to_owned(),
            column::MAX_ATTEMPTS => "11".to_owned(),
            column::IN_DOUBT if self.dialect == Dialect::Postgres => "false".to_owned(),
            Column { kind: Kind::Int | Kind::Bool, nullable: false, .. } => "0".to_owned(),
            _ => return None,
        };
        Some(own_words)
    }

    fn new_id(&self) -> String {
        match (self.dialect, self.table.id_type()) {
            (Dialect::Sqlite, IdType::Binary) => "(randomblob(16))".to_owned(),
            // Each part is random by itself.
            (Dialect::Sqlite, IdType::Text) => {
                let parts = [4, 2, 2, 2, 6].map(|bytes| format!("hex(randomblob({bytes}))"));
                format!("(lower({}))", parts.join(" || '-' || "))
            }
            (Dialect::Postgres, IdType::Binary) => POSTGRES_UUID.to_owned(),
            (Dialect::Postgres, IdType::Text) => format!("({POSTGRES_UUID})::text"),
            (Dialect::Mysql, IdType::Binary) => format!("(UNHEX({MYSQL_UUID_DIGITS}))"),
            // Not the digits above, of which each part would be made anew.
            (Dialect::Mysql, IdType::Text) => "(UUID())".to_owned(),
        }
    }
}
