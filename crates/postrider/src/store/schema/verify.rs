//! Compares a real table with what the statements and the codec need.
//!
//! The application may make its table with any tool: what is missing or otherwise is named, with
//! the statement that mends it. Nothing is changed. Source: contract C1.6, case C26.

use std::sync::Arc;

use super::Finding;
use super::catalogue::{Catalogue, Index};
use super::ddl::{ATTEMPT_REQUIRED, Ddl};
use super::types::{Wanted, Width};
use crate::error::{Error, ErrorKind, Result};
use crate::model::column::{self, Column};
use crate::model::{Clock, IdType, Kind, MAX_ERROR_LENGTH, OutboxEntity, OutboxRow, TableDef, TenantId};
use crate::store::database::read;
use crate::store::statements::ATTEMPT_BATCH;
use crate::store::{Database, Dialect};

/// What the real tables lack or have otherwise; empty if they can be used as they are.
///
/// Compared are the outbox's table and its history: columns, types, nulls, unique constraints, and
/// the indexes that claims go by. Defaults are not: the library names every column that it writes.
///
/// # Errors
/// What the database says.
///
/// # Cancel safety
/// Safe: it only reads.
pub async fn verify<E: OutboxEntity>(
    database: &Arc<dyn Database>,
    clock: &Arc<dyn Clock>,
    table: &TableDef,
) -> Result<Vec<Finding>> {
    let ddl = Arc::new(Ddl::new(database.dialect(), table, E::own_columns()));
    read(database, clock, move |connection| {
        let ddl = Arc::clone(&ddl);
        Box::pin(async move {
            let (outbox, attempts) = (ddl.table.name().to_owned(), ddl.table.attempt_name());
            let mut found = match Catalogue::look(connection, &ddl.table, &outbox).await? {
                Some(seen) => judge_outbox(&ddl, &outbox, &seen),
                None => {
                    let mend = ddl.outbox_statements();
                    vec![Finding::MissingTable { table: outbox, mend }]
                }
            };
            match Catalogue::look(connection, &ddl.table, &attempts).await? {
                Some(seen) => found.extend(judge_columns(&ddl, &attempts, &seen, &attempts_wanted(&ddl))),
                None => {
                    let mend = ddl.attempt_statements();
                    found.push(Finding::MissingTable { table: attempts, mend });
                }
            }
            Ok(found)
        })
    })
    .await
}

/// Refuses tables that cannot be used as they are; what is only slow is let pass.
///
/// # Errors
/// [`ErrorKind::Configuration`], naming what [`verify`] found and the statements that mend it.
///
/// # Cancel safety
/// Safe.
pub async fn require<E: OutboxEntity>(
    database: &Arc<dyn Database>,
    clock: &Arc<dyn Clock>,
    table: &TableDef,
) -> Result<()> {
    let found = verify::<E>(database, clock, table).await?;
    let fatal = found.iter().filter(|finding| !finding.is_advice());
    let told: Vec<_> = fatal.map(|finding| format!("{finding}\n{}", finding.statement())).collect();
    if told.is_empty() {
        return Ok(());
    }
    let message = format!("the tables cannot be used as they are: {}", told.join("\n"));
    Err(Error::new(ErrorKind::Configuration, message))
}

/// The columns that the outbox's table lacks; all of them if there is no such table.
///
/// [`verify`] says more.
///
/// # Errors
/// What the database says.
///
/// # Cancel safety
/// Safe.
pub async fn missing_columns<E: OutboxEntity>(
    database: &Arc<dyn Database>,
    clock: &Arc<dyn Clock>,
    table: &TableDef,
) -> Result<Vec<String>> {
    let found = verify::<E>(database, clock, table).await?;
    if found.iter().any(|finding| matches!(finding, Finding::MissingTable { table: name, .. } if name == table.name()))
    {
        let ddl = Ddl::new(database.dialect(), table, E::own_columns());
        return Ok(outbox_wanted(&ddl).into_iter().map(|wanted| wanted.name).collect());
    }
    let missing = found.into_iter().filter_map(|finding| match finding {
        Finding::MissingColumn { table: of, column, .. } if of == table.name() => Some(column),
        _ => None,
    });
    Ok(missing.collect())
}

fn judge_outbox(ddl: &Ddl, table: &str, seen: &Catalogue) -> Vec<Finding> {
    let wanted = outbox_wanted(ddl);
    let mut found = judge_columns(ddl, table, seen, &wanted);
    let key: Vec<_> = ddl.table.tenant().into_iter().chain([ddl.table.column(column::DEDUPE_KEY)]).collect();
    for (end, columns) in [("key", key), ("id", vec![ddl.table.column(column::ID)])] {
        let there = columns.iter().all(|name| seen.column(name).is_some());
        if there && !seen.is_unique(&columns) {
            let mend = ddl.add_unique(table, end, &columns);
            let columns = columns.into_iter().map(str::to_owned).collect();
            found.push(Finding::MissingUnique { table: table.to_owned(), columns, mend });
        }
    }
    found.extend(judge_indexes(ddl, table, seen));
    found
}

/// The indexes that claims go by, and the columns that the database makes for them.
fn judge_indexes(ddl: &Ddl, table: &str, seen: &Catalogue) -> Vec<Finding> {
    let (due, lost) = (ddl.table.column(column::NEXT_ATTEMPT_AT), ddl.table.column(column::LOST_CLAIMS));
    // A partial index that says something of lost claims is of no use for the others, and the other way round.
    let of_lost = |index: &Index| index.predicate.as_ref().is_some_and(|predicate| predicate.contains(lost));
    let led_by = |name: &str| {
        let name = name.to_owned();
        seen.indexes.iter().filter(move |index| index.columns.first().is_some_and(|first| *first == name))
    };
    let mut found = Vec::new();
    for (end, generated, statement) in
        [("claim", column::DUE_AT, ddl.claim_index()), ("lost", column::LOST_AT, ddl.lost_index())]
    {
        let name = ddl.table.column(generated);
        let there = match (ddl.dialect, end) {
            (Dialect::Mysql, _) => led_by(name).next().is_some(),
            (_, "claim") => led_by(due).any(|index| !of_lost(index)),
            _ => led_by(due).any(of_lost),
        };
        if ddl.dialect == Dialect::Mysql && seen.column(name).is_none() {
            let (table, column) = (table.to_owned(), name.to_owned());
            let (wanted, mend) = (ddl.generated(generated), ddl.add_generated(&table, generated));
            found.push(Finding::MissingColumn { table, column, wanted, mend });
        }
        if !there {
            let (table, index) = (table.to_owned(), format!("{table}_{end}"));
            found.push(Finding::MissingIndex { table, index, mend: vec![statement] });
        }
    }
    found
}

fn judge_columns(ddl: &Ddl, table: &str, seen: &Catalogue, wanted: &[Wanted]) -> Vec<Finding> {
    let mut found = Vec::new();
    for want in wanted {
        let (table_name, column, kind) = (table.to_owned(), want.name.clone(), want.typed.clone());
        let Some(have) = seen.column(&want.name) else {
            let mend = ddl.add_column(table, want);
            found.push(Finding::MissingColumn { table: table_name, column, wanted: kind, mend });
            continue;
        };
        if !want.fits(ddl.dialect, &have.declared) {
            let mend = ddl.change_type(table, seen, have, want);
            let declared = have.declared.clone();
            found.push(Finding::WrongType { table: table_name, column, found: declared, wanted: kind, mend });
        } else if want.nullable != have.nullable {
            let mend = ddl.change_null(table, seen, &want.name, want.nullable, &ddl.late_definition(want));
            found.push(match want.nullable {
                true => Finding::NotNull { table: table_name, column, mend },
                false => Finding::Nullable { table: table_name, column, mend },
            });
        }
    }
    let generated = |name: &str| column::GENERATED.iter().any(|column| ddl.table.column(*column) == name);
    let known = |name: &str| generated(name) || wanted.iter().any(|want| want.name == name);
    for have in seen.columns.iter().filter(|have| !have.nullable && !have.filled && !known(&have.name)) {
        let definition = format!("{} {}", ddl.quoted(&have.name), have.declared);
        let mend = ddl.change_null(table, seen, &have.name, true, &definition);
        found.push(Finding::Unwritten { table: table.to_owned(), column: have.name.clone(), mend });
    }
    found
}

/// The columns of the outbox's table, in the order in which they are made.
fn outbox_wanted(ddl: &Ddl) -> Vec<Wanted> {
    let ours = column::ALL.iter().map(|column| Wanted {
        name: ddl.table.column(*column).to_owned(),
        kind: column.kind,
        typed: ddl.type_of_ours(*column),
        nullable: column.nullable,
        default: ddl.default_of(*column),
        width: if *column == column::ID { id_width(ddl) } else { width(*column) },
    });
    let tenant = ddl.table.tenant().map(|name| Wanted {
        name: name.to_owned(),
        kind: Kind::Text,
        typed: ddl.tenant_type().to_owned(),
        nullable: false,
        default: Some("''".to_owned()),
        width: bytes(TenantId::MAX_BYTES),
    });
    let own = ddl.own.iter().map(|own| Wanted {
        name: own.name.to_owned(),
        kind: own.kind,
        typed: ddl.type_of(own.kind).to_owned(),
        nullable: own.nullable,
        default: None,
        width: Width::Own,
    });
    ours.chain(tenant).chain(own).collect()
}

fn attempts_wanted(ddl: &Ddl) -> Vec<Wanted> {
    let wanted = |(name, kind): &(&str, Kind)| Wanted {
        name: (*name).to_owned(),
        kind: *kind,
        typed: ddl.type_in_history(*kind).to_owned(),
        nullable: !ATTEMPT_REQUIRED.contains(name),
        default: None,
        width: match (*name, kind) {
            ("error", _) => characters(MAX_ERROR_LENGTH),
            ("recipients", _) => Width::Unlimited,
            (_, Kind::Int) => Width::AtLeast(64),
            (_, Kind::Uuid) => id_width(ddl),
            _ => characters(LONGEST_NAME),
        },
    };
    ATTEMPT_BATCH.iter().map(wanted).collect()
}

/// Most characters of a node's name, of a provider's id, and of the like.
const LONGEST_NAME: usize = 255;

/// What is written after a delivery must fit: a refused ending is a message that is sent again.
fn width(column: Column) -> Width {
    match column {
        column::STATUS => characters("SUPPRESSED".len()),
        column::LAST_ERROR => characters(MAX_ERROR_LENGTH),
        column::DEDUPE_KEY => bytes(OutboxRow::MAX_DEDUPE_KEY_BYTES),
        column::RECIPIENTS => Width::Unlimited,
        column::CLAIMED_BY | column::REASON_CODE | column::PROVIDER | column::PROVIDER_MESSAGE_ID => {
            characters(LONGEST_NAME)
        }
        column::CLAIM_SEQ => Width::AtLeast(64),
        Column { kind: Kind::Int, .. } => Width::AtLeast(32),
        _ => Width::Any,
    }
}

fn id_width(ddl: &Ddl) -> Width {
    match ddl.table.id_type() {
        IdType::Binary => Width::Any,
        IdType::Text => Width::TextOfUuid,
    }
}

fn bytes(n: usize) -> Width {
    u32::try_from(n).map_or(Width::Unlimited, Width::Bytes)
}

fn characters(n: usize) -> Width {
    u32::try_from(n).map_or(Width::Unlimited, Width::AtLeast)
}
