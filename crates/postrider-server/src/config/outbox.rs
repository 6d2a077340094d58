//! Which outboxes the program serves: the one of the settings, or those of the `[[outbox]]` sections.

use postrider::Result;
use postrider::model::{IdType, NotificationRow, OutboxEntity, TableDef};

use super::address::DatabaseAddress;
use super::error::wrong;
use super::layers::{Origin, Values};
use super::section::Section;
use super::{secret, setting};

/// Most characters of an outbox's name.
const MAX_NAME: usize = 64;

/// One outbox: a table in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboxConfig {
    /// Its name; none if it is the only one, without a section of its own.
    pub(crate) name: Option<String>,
    /// Where the rows are.
    pub(crate) database: DatabaseAddress,
    /// Where that address comes from.
    pub(crate) database_origin: Origin,
    /// Most connections to a server.
    pub(crate) connections: u32,
    /// The table.
    pub(crate) table: TableDef,
}

/// All outboxes, at least one.
///
/// # Errors
/// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the place.
pub(super) fn outboxes(values: &Values) -> Result<Vec<OutboxConfig>> {
    let (database, database_origin) = database(values)?;
    let connections = connections(values.number(&setting::DATABASE_CONNECTIONS).unwrap_or(10));
    let common = OutboxConfig { name: None, database, database_origin, connections, table: NotificationRow::table()? };
    if values.sections().is_empty() {
        return Ok(vec![common]);
    }
    let mut outboxes: Vec<OutboxConfig> = Vec::new();
    for section in values.sections() {
        let outbox = outbox(section, &common)?;
        let at = &section.origin;
        if let Some(other) = outboxes.iter().find(|other| other.name == outbox.name) {
            let name = other.name.as_deref().unwrap_or_default();
            return Err(wrong(format!("{at}: two outboxes are called {name:?}")));
        }
        let same = |other: &&OutboxConfig| {
            let place = |outbox: &OutboxConfig| (outbox.database.clone(), outbox.table.schema().map(str::to_owned));
            place(other) == place(&outbox) && other.table.name() == outbox.table.name()
        };
        if let Some(other) = outboxes.iter().find(same) {
            let name = other.name.as_deref().unwrap_or_default();
            return Err(wrong(format!("{at}: it is the same table {} as that of {name:?}", other.table.name())));
        }
        outboxes.push(outbox);
    }
    let used = outboxes.iter().any(|outbox| outbox.database_origin == common.database_origin);
    if matches!(common.database_origin, Origin::Flag(_)) && !used {
        return Err(wrong("--database is set, but each [[outbox]] names a database of its own".to_owned()));
    }
    Ok(outboxes)
}

/// The address of the settings `database` and `database_file`.
fn database(values: &Values) -> Result<(DatabaseAddress, Origin)> {
    let origin = values.origin(&setting::DATABASE);
    let given = values.database(&setting::DATABASE);
    if let Some(path) = values.path(&setting::DATABASE_FILE)
        && !matches!(origin, Origin::Flag(_))
    {
        let place = values.origin(&setting::DATABASE_FILE);
        if origin != Origin::Default {
            return Err(wrong(format!("database ({origin}) and database_file ({place}) are both set; keep one")));
        }
        return Ok((secret::address(path, "database_file", &place)?, place));
    }
    let address = given.ok_or_else(|| wrong("there is no database".to_owned()))?;
    Ok((address.clone(), origin))
}

fn outbox(section: &Section, common: &OutboxConfig) -> Result<OutboxConfig> {
    let (given, at) = (&section.given, &section.origin);
    let name = given.text(&setting::OUTBOX_NAME).ok_or_else(|| wrong(format!("{at}: [[outbox]] has no name")))?;
    if name.len() > MAX_NAME || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
        let at = given.origin(&setting::OUTBOX_NAME);
        return Err(wrong(format!(
            "{at}: outbox.name is {name:?}: at most {MAX_NAME} ASCII letters, digits, '_' and '-' are expected"
        )));
    }
    let place = |setting| given.origin(setting);
    let (database, database_origin) =
        match (given.database(&setting::OUTBOX_DATABASE), given.path(&setting::OUTBOX_DATABASE_FILE)) {
            (Some(_), Some(_)) => {
                return Err(wrong(format!(
                    "outbox.database ({}) and outbox.database_file ({}) are both set; keep one",
                    place(&setting::OUTBOX_DATABASE),
                    place(&setting::OUTBOX_DATABASE_FILE)
                )));
            }
            (Some(address), None) => (address.clone(), place(&setting::OUTBOX_DATABASE)),
            (None, Some(path)) => {
                let place = place(&setting::OUTBOX_DATABASE_FILE);
                (secret::address(path, "outbox.database_file", &place)?, place)
            }
            (None, None) => (common.database.clone(), common.database_origin.clone()),
        };
    Ok(OutboxConfig {
        name: Some(name.to_owned()),
        database,
        database_origin,
        connections: given.number(&setting::OUTBOX_CONNECTIONS).map_or(common.connections, connections),
        table: table(section)?,
    })
}

fn table(section: &Section) -> Result<TableDef> {
    let given = &section.given;
    let refused = |at: Origin| move |error: postrider::Error| wrong(format!("{at}: {error}"));
    let ready_made = NotificationRow::table()?;
    let name = given.text(&setting::OUTBOX_TABLE);
    let mut table =
        TableDef::new(name.unwrap_or(ready_made.name())).map_err(refused(given.origin(&setting::OUTBOX_TABLE)))?;
    if let Some(schema) = given.text(&setting::OUTBOX_SCHEMA) {
        table = table.in_schema(schema).map_err(refused(given.origin(&setting::OUTBOX_SCHEMA)))?;
    }
    for (ours, theirs, at) in &section.renames {
        table = table.rename(ours, theirs).map_err(refused(at.clone()))?;
    }
    // The ready-made table has its tenants; another one only those that are named.
    let tenant = given.text(&setting::OUTBOX_TENANT).or_else(|| ready_made.tenant().filter(|_| name.is_none()));
    if let Some(tenant) = tenant {
        table = table.with_tenant(tenant).map_err(refused(given.origin(&setting::OUTBOX_TENANT)))?;
    }
    let text = given.text(&setting::OUTBOX_ID_TYPE) == Some("text");
    Ok(table.with_id_type(if text { IdType::Text } else { IdType::Binary }))
}

fn connections(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
