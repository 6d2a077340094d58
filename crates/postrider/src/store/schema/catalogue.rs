//! What a database tells of a real table: its columns and its indexes.
//!
//! One pair of queries per dialect, with the same columns in their answers. Nothing is judged here.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Kind, TableDef, Value};
use crate::store::{Connection, Dialect};

/// A table as it is.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) columns: Vec<Found>,
    pub(super) indexes: Vec<Index>,
}

/// A column as it is.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    /// Its type in the database's own words; a domain's is the one below it.
    pub(super) declared: String,
    pub(super) nullable: bool,
    /// It has a value where a writer names none.
    pub(super) filled: bool,
}

/// An index, or what a constraint keeps as one.
#[derive(Debug)]
pub(super) struct Index {
    name: String,
    pub(super) unique: bool,
    /// The condition of a partial index.
    pub(super) predicate: Option<String>,
    /// Its columns in order; an expression is an empty name.
    pub(super) columns: Vec<String>,
}

impl Catalogue {
    /// Looks at the table of that bare name, in the schema of `table`; `None` if there is none.
    pub(super) async fn look(connection: &mut dyn Connection, table: &TableDef, name: &str) -> Result<Option<Self>> {
        let dialect = connection.dialect();
        let (columns, indexes) = queries(dialect, table);
        let values = place(dialect, table, name);
        let kinds = [Kind::Text, Kind::Text, Kind::Bool, Kind::Bool];
        let found = connection.fetch(&columns, &values, &kinds).await?;
        let columns: Vec<_> = found.into_iter().map(column).collect::<Result<_>>()?;
        if columns.is_empty() {
            return Ok(None);
        }
        let kinds = [Kind::Text, Kind::Bool, Kind::Text, Kind::Text];
        let mut all: Vec<Index> = Vec::new();
        for values in connection.fetch(&indexes, &values, &kinds).await? {
            let mut next = index(values)?;
            match all.last_mut().filter(|last| last.name == next.name) {
                Some(last) => last.columns.append(&mut next.columns),
                None => all.push(next),
            }
        }
        Ok(Some(Self { columns, indexes: all }))
    }

    pub(super) fn column(&self, name: &str) -> Option<&Found> {
        self.columns.iter().find(|found| found.name == name)
    }

    /// True if an index or a constraint with one uses the column.
    pub(super) fn is_indexed(&self, name: &str) -> bool {
        let uses = |index: &Index| {
            index.columns.iter().any(|column| column == name)
                || index.predicate.as_ref().is_some_and(|predicate| predicate.contains(name))
        };
        self.indexes.iter().any(uses)
    }

    /// True if no two rows have the same values in these columns.
    pub(super) fn is_unique(&self, names: &[&str]) -> bool {
        let same = |index: &Index| {
            index.columns.len() == names.len() && names.iter().all(|name| index.columns.iter().any(|have| have == name))
        };
        self.indexes.iter().any(|index| index.unique && index.predicate.is_none() && same(index))
    }
}

/// The columns, then the indexes: a line for each column of each.
fn queries(dialect: Dialect, table: &TableDef) -> (String, String) {
    match dialect {
        Dialect::Sqlite => {
            let schema = dialect.quoted(table.schema().unwrap_or("main"));
            (
                "SELECT name, type, \"notnull\" = 0, dflt_value IS NOT NULL OR hidden > 1
                 FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1 ORDER BY cid"
                    .to_owned(),
                // Nothing but the text says what a partial index leaves out.
                format!(
                    "SELECT l.name, l.\"unique\",
                            CASE WHEN l.partial THEN substr(m.sql, instr(upper(m.sql), ' WHERE ')) END,
                            coalesce(i.name, '')
                     FROM pragma_index_list(?1, ?2) AS l
                     JOIN pragma_index_info(l.name, ?2) AS i
                     LEFT JOIN {schema}.sqlite_master AS m ON m.type = 'index' AND m.name = l.name
                     ORDER BY l.seq, i.seqno"
                ),
            )
        }
        Dialect::Mysql => (
            "SELECT column_name,
                    CASE WHEN collation_name IS NULL THEN column_type
                         ELSE CONCAT(column_type, ' COLLATE ', collation_name) END,
                    CAST(is_nullable = 'YES' AS SIGNED),
                    CAST(column_default IS NOT NULL OR extra <> '' AS SIGNED)
             FROM information_schema.columns
             WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? ORDER BY ordinal_position"
                .to_owned(),
            "SELECT index_name, CAST(non_unique = 0 AS SIGNED), CAST(NULL AS CHAR),
                    CASE WHEN sub_part IS NULL THEN column_name ELSE '' END
             FROM information_schema.statistics
             WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? ORDER BY index_name, seq_in_index"
                .to_owned(),
        ),
        Dialect::Postgres => (
            "SELECT a.attname::text, format_type(b.type, b.modifier), NOT (a.attnotnull OR b.strict),
                    a.atthasdef OR a.attidentity <> ''
             FROM pg_attribute AS a
             CROSS JOIN LATERAL (
                 WITH RECURSIVE base (type, modifier, strict, depth) AS (
                     SELECT a.atttypid, a.atttypmod, false, 0
                     UNION ALL
                     SELECT t.typbasetype, t.typtypmod, base.strict OR t.typnotnull, depth + 1
                     FROM base JOIN pg_type AS t ON t.oid = base.type WHERE t.typtype = 'd'
                 )
                 SELECT type, modifier, strict FROM base ORDER BY depth DESC LIMIT 1
             ) AS b
             WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
                .to_owned(),
            "SELECT c.relname::text, i.indisunique AND i.indimmediate, pg_get_expr(i.indpred, i.indrelid),
                    coalesce(a.attname::text, '')
             FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
             CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
             LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
             WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND k.place <= i.indnkeyatts
             ORDER BY c.relname, k.place"
                .to_owned(),
        ),
    }
}

/// What the queries are asked with.
fn place(dialect: Dialect, table: &TableDef, name: &str) -> Vec<Value> {
    match dialect {
        Dialect::Sqlite => vec![name.into(), table.schema().unwrap_or("main").into()],
        Dialect::Mysql => vec![table.schema().map(str::to_owned).into(), name.into()],
        Dialect::Postgres => {
            let schema = table.schema().map(|schema| format!("{}.", dialect.quoted(schema))).unwrap_or_default();
            vec![format!("{schema}{}", dialect.quoted(name)).into()]
        }
    }
}

fn column(values: Vec<Value>) -> Result<Found> {
    let [name, declared, nullable, filled] = four(values)?;
    Ok(Found {
        name: name.try_into()?,
        declared: declared.try_into()?,
        nullable: nullable.try_into()?,
        filled: filled.try_into()?,
    })
}

fn index(values: Vec<Value>) -> Result<Index> {
    let [name, unique, predicate, column] = four(values)?;
    Ok(Index {
        name: name.try_into()?,
        unique: unique.try_into()?,
        predicate: predicate.try_into()?,
        columns: vec![column.try_into()?],
    })
}

fn four(values: Vec<Value>) -> Result<[Value; 4]> {
    values.try_into().map_err(|_| Error::new(ErrorKind::Decode, "the catalogue has other columns"))
}
