//! What the daemon says once an outbox is delivered: for people, or for programs in JSON.

use serde_json::json;
use tracing::info;

use crate::cli::failure::Failure;
use crate::cli::run::Context;
use crate::cli::words;
use crate::config::{DatabaseAddress, OutboxConfig, environment};

/// What runs here, where messages go, and what to try next.
pub(super) fn banner(context: &Context, outbox: &OutboxConfig) -> Result<(), Failure> {
    let (config, output) = (&context.config, context.output);
    let version = env!("CARGO_PKG_VERSION");
    let relay = config.relay.as_ref().map(|relay| format!("{}:{}", relay.host, relay.port));
    if output.is_json() {
        let mut ready = json!({
            "event": "ready",
            "version": version,
            "node": config.dispatch.node,
            "database": outbox.database.to_string(),
            "table": outbox.table.name(),
            "email": relay.as_deref().unwrap_or("sandbox"),
        });
        if let Some(name) = &outbox.name {
            ready["outbox"] = name.as_str().into();
        }
        return output.json(&ready);
    }
    if context.json_logs {
        let email = relay.as_deref().unwrap_or("sandbox");
        info!(outbox = outbox.name, database = %outbox.database, email, "ready");
        return Ok(());
    }
    let folder = environment::folder();
    let database = match &outbox.database {
        DatabaseAddress::Sqlite(path) => format!("the SQLite file {}", folder.join(path).display()),
        DatabaseAddress::Postgres(_) | DatabaseAddress::Mysql(_) => outbox.database.to_string(),
    };
    if let Some(name) = &outbox.name {
        output.note(&format!(
            "postrider {version} delivers {name}\n  \
               database  {database}  ({})\n  \
               table     {}\n  \
               e-mail    to the {}",
            outbox.database_origin,
            outbox.table.name(),
            relay.map_or_else(|| "sandbox".to_owned(), |relay| format!("relay {relay}")),
        ));
        return Ok(());
    }
    let email = match &relay {
        Some(relay) => format!("to the relay {relay}"),
        None => "to the sandbox: nothing leaves this machine. To send it for real, name a relay in\n            \
                 postrider.toml and start again:\n              \
                 [email]\n              \
                 host = \"smtp.example.com\"            # port 587 with STARTTLS\n              \
                 from = \"Shop <shop@example.com>\"\n              \
                 username = \"shop\"\n              \
                 password_file = \"/run/secrets/smtp\""
            .to_owned(),
    };
    // With a relay the message is really sent: not to somebody else's address.
    let (to, note) = match relay {
        Some(_) => ("YOUR-OWN-ADDRESS", " (a real message)"),
        None => ("alice@example.com", ""),
    };
    output.note(&format!(
        "postrider {version} delivers\n  \
           database  {database}  ({})\n  \
           e-mail    {email}\n\
         \n\
         Try it in another terminal, in the folder {}{note}:\n  \
           {program} send{same} --channel email --to {to} --subject Hello --body 'Hi there'\n  \
           {program} list{same}\n\
         Ctrl-C stops it.",
        outbox.database_origin,
        words::quoted(&folder.display().to_string()),
        program = words::quoted(&context.program),
        same = context.same,
    ));
    Ok(())
}
