//! The configuration as the program uses it, and what must hold between settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use postrider::Result;
use postrider::dispatch::DispatchConfig;

use super::address::DatabaseAddress;
use super::error::wrong;
use super::layers::{Origin, Values};
use super::relay::{self, Relay};
use super::{node, secret, setting};

/// What the program was told.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where the rows are.
    pub(crate) database: DatabaseAddress,
    /// Where that address comes from.
    pub(crate) database_origin: Origin,
    /// Most connections to a server.
    pub(crate) connections: u32,
    /// The folder of templates.
    pub(crate) templates: Option<PathBuf>,
    /// The dispatcher's settings.
    pub(crate) dispatch: DispatchConfig,
    /// The relay that takes e-mail; none means the sandbox.
    pub(crate) relay: Option<Relay>,
}

impl Config {
    /// Puts the settings together.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the place.
    pub(crate) fn new(values: &Values) -> Result<Self> {
        let (database, database_origin) = database(values)?;
        let connections = values.number(&setting::DATABASE_CONNECTIONS).unwrap_or(10);
        Ok(Self {
            database,
            database_origin,
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            templates: values.path(&setting::TEMPLATES).map(Path::to_owned),
            dispatch: dispatch(values)?,
            relay: relay::relay(values)?,
        })
    }
}

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
        let address = DatabaseAddress::parse(&secret::read(path, "database_file", &place)?, None)
            .map_err(|why| wrong(format!("{}: {why}", path.display())))?;
        return Ok((address, place));
    }
    let address = given.ok_or_else(|| wrong("there is no database".to_owned()))?;
    Ok((address.clone(), origin))
}

fn dispatch(values: &Values) -> Result<DispatchConfig> {
    let node = values.text(&setting::NODE).map_or_else(node::default_name, str::to_owned);
    if node.len() > 255 || node.contains('\0') {
        let origin = values.origin(&setting::NODE);
        return Err(wrong(format!("{origin}: node: at most 255 bytes without NUL are expected")));
    }
    let mut config = DispatchConfig::new(node);
    let number = |setting, target: &mut usize| {
        let found = values.number(setting).and_then(|number| usize::try_from(number).ok());
        *target = found.unwrap_or(*target);
    };
    let duration = |setting, target: &mut Duration| {
        *target = values.duration(setting).unwrap_or(*target);
    };
    number(&setting::CONCURRENCY, &mut config.concurrency);
    number(&setting::BATCH, &mut config.batch);
    duration(&setting::CLAIM_TIMEOUT, &mut config.claim_timeout);
    duration(&setting::GRACE, &mut config.grace);
    duration(&setting::POLL_MIN, &mut config.poll_min);
    duration(&setting::POLL_MAX, &mut config.poll_max);
    if config.poll_max < config.poll_min {
        return Err(wrong(format!(
            "dispatch.poll_max ({}) is less than dispatch.poll_min ({})",
            values.origin(&setting::POLL_MAX),
            values.origin(&setting::POLL_MIN)
        )));
    }
    Ok(config)
}
