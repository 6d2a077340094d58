//! Rows to values and back, in the order of the column list.
//!
//! What cannot be read is told per row, with the row's id and token, so that one bad row is
//! settled as a failure and stops no batch (case C29).

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind, Result};
use crate::model::column::{self, Column};
use crate::model::{
    Kind, Ledger, OutboxEntity, OutboxId, OutboxRow, OutboxStatus, RowState, TableDef, TenantId, Value,
};
use crate::store::dialect::id_value;

/// How many columns of ours lead every fetched row.
fn ours() -> usize {
    column::ALL.len()
}

/// The kinds of all columns of an entity's table: ours, the tenant, the application's own.
pub(super) fn kinds<E: OutboxEntity>(by_tenant: bool) -> Vec<Kind> {
    let tenant = by_tenant.then_some(Kind::Text);
    column::ALL.iter().map(|c| c.kind).chain(tenant).chain(E::own_columns().iter().map(|c| c.kind)).collect()
}

/// The values of a new row, in the order of [`kinds`].
pub(super) fn encode<E: OutboxEntity>(entity: &E, table: &TableDef) -> Result<Vec<Value>> {
    let row = entity.row();
    let state = &row.state;
    let cc = (!row.cc_addresses.is_empty()).then(|| json_text(&row.cc_addresses)).transpose()?;
    let mut values: Vec<Value> = vec![
        id_value(row.id.as_uuid(), table.id_type()),
        row.channel.clone().into(),
        row.recipient.clone().into(),
        row.recipient_address.clone().into(),
        cc.into(),
        row.subject.clone().into(),
        row.body.clone().into(),
        row.payload.as_ref().map(json_text).transpose()?.into(),
        state.status.as_str().into(),
        state.attempts.into(),
        row.max_attempts.into(),
        state.next_attempt_at.into(),
        state.last_error.clone().into(),
        state.sent_at.into(),
        row.dedupe_key.clone().into(),
        row.created_at.into(),
        state.updated_at.into(),
        state.claim_seq.into(),
        state.lost_claims.into(),
        state.claimed_by.clone().into(),
        state.deferrals.into(),
        state.deferred_since.into(),
        state.resends.into(),
        row.priority.into(),
        row.expires_at.into(),
        row.ordering_key.clone().into(),
        row.category.clone().into(),
        row.locale.clone().into(),
        row.template.clone().into(),
        state.recipients.as_ref().map(json_text).transpose()?.into(),
        state.accepted_at.into(),
        state.provider.clone().into(),
        state.provider_message_id.clone().into(),
        state.in_doubt.into(),
        state.reason_code.clone().into(),
        row.traceparent.clone().into(),
        row.metadata.as_ref().map(json_text).transpose()?.into(),
    ];
    if table.tenant().is_some() {
        values.push(entity.tenant().as_str().into());
    }
    values.extend(own_values(entity)?);
    Ok(values)
}

fn own_values<E: OutboxEntity>(entity: &E) -> Result<Vec<Value>> {
    let (columns, values) = (E::own_columns(), entity.own_values());
    if columns.len() != values.len() {
        let (columns, values) = (columns.len(), values.len());
        return Err(Error::invalid(format!("the entity has {columns} own columns and gives {values} values")));
    }
    columns.iter().zip(&values).try_for_each(|(column, value)| column.check(value))?;
    Ok(values)
}

/// A row's id and fencing token, which must be readable for anything to be done about it.
pub(super) fn identity(values: &[Value]) -> Result<(OutboxId, i64)> {
    let at = |wanted: Column| {
        let index = column::ALL.iter().position(|c| *c == wanted);
        index.and_then(|index| values.get(index)).cloned().ok_or_else(|| missing(wanted))
    };
    let id: uuid::Uuid = at(column::ID)?.try_into()?;
    Ok((OutboxId::from(id), at(column::CLAIM_SEQ)?.try_into()?))
}

/// Puts an entity together from a fetched row.
///
/// # Errors
/// [`ErrorKind::Decode`], naming the row and the column.
pub(super) fn decode<E: OutboxEntity>(values: Vec<Value>, by_tenant: bool) -> Result<E> {
    let mut rest = values;
    let mut own = rest.split_off(ours().min(rest.len()));
    let row = decode_row(rest)?;
    let tenant = if by_tenant {
        if own.is_empty() {
            return Err(Error::new(ErrorKind::Decode, "the tenant column is missing"));
        }
        TenantId::from_stored(String::try_from(own.remove(0)).map_err(|error| error.context("tenant"))?)
    } else {
        TenantId::ROOT
    };
    // The application's own code: its panic must not take the other rows of a claim with it.
    catch_unwind(AssertUnwindSafe(|| E::assemble(row, tenant, own)))
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Decode, "the entity panicked when it was put together")))
}

fn decode_row(values: Vec<Value>) -> Result<OutboxRow> {
    let mut next = Fields { columns: column::ALL.iter(), values: values.into_iter() };
    let id = next.take::<uuid::Uuid>()?;
    let channel = next.take()?;
    let recipient = next.take()?;
    let recipient_address = next.take()?;
    let cc_addresses = next.json::<Vec<String>>()?;
    let subject = next.take()?;
    let body = next.take()?;
    let payload = next.json()?;
    let status = next.take::<String>()?;
    let attempts = next.take()?;
    let max_attempts = next.take()?;
    let next_attempt_at = next.take()?;
    let last_error = next.take()?;
    let sent_at = next.take()?;
    let dedupe_key = next.take()?;
    let created_at = next.take()?;
    let updated_at = next.take()?;
    let claim_seq = next.take()?;
    let lost_claims = next.take()?;
    let claimed_by = next.take()?;
    let deferrals = next.take()?;
    let deferred_since = next.take()?;
    let resends = next.take()?;
    let priority = next.take()?;
    let expires_at = next.take()?;
    let ordering_key = next.take()?;
    let category = next.take()?;
    let locale = next.take()?;
    let template = next.take()?;
    let recipients = next.json::<Ledger>()?;
    let accepted_at = next.take()?;
    let provider = next.take()?;
    let provider_message_id = next.take()?;
    let in_doubt = next.take()?;
    let reason_code = next.take()?;
    let traceparent = next.take()?;
    let metadata = next.json()?;
    let status = status.parse::<OutboxStatus>().map_err(|cause| Error::new(ErrorKind::Decode, cause.to_string()))?;
    Ok(OutboxRow {
        id: OutboxId::from(id),
        channel,
        recipient,
        recipient_address,
        cc_addresses: cc_addresses.unwrap_or_default(),
        subject,
        body,
        payload,
        max_attempts,
        dedupe_key,
        created_at,
        priority,
        expires_at,
        ordering_key,
        category,
        locale,
        template,
        traceparent,
        metadata,
        state: RowState {
            status,
            attempts,
            next_attempt_at,
            last_error,
            sent_at,
            updated_at,
            claim_seq,
            lost_claims,
            claimed_by,
            deferrals,
            deferred_since,
            resends,
            recipients,
            accepted_at,
            provider,
            provider_message_id,
            in_doubt,
            reason_code,
        },
    })
}

/// Hands out the values in column order, and names the column that cannot be read.
struct Fields<'a> {
    columns: std::slice::Iter<'a, Column>,
    values: std::vec::IntoIter<Value>,
}

impl Fields<'_> {
    fn next(&mut self) -> Result<(Column, Value)> {
        match (self.columns.next(), self.values.next()) {
            (Some(column), Some(value)) => Ok((*column, value)),
            (Some(column), None) => Err(missing(*column)),
            (None, _) => Err(Error::new(ErrorKind::Decode, "more fields are read than there are columns")),
        }
    }

    fn take<T: TryFrom<Value, Error = Error>>(&mut self) -> Result<T> {
        let (column, value) = self.next()?;
        T::try_from(value).map_err(|error| error.context(column.name))
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let (column, value) = self.next()?;
        let text = Option::<String>::try_from(value).map_err(|error| error.context(column.name))?;
        // The text `null`, which serializers write where there is nothing, is no document either.
        text.map_or(Ok(None), |text| {
            serde_json::from_str::<Option<T>>(&text).map_err(|cause| {
                Error::new(ErrorKind::Decode, format!("{}: no JSON of the expected shape: {cause}", column.name))
            })
        })
    }
}

/// A document as it is stored: JSON text on every database, so that it reads back as it was given.
pub(super) fn json_text(document: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(document)
        .map_err(|cause| Error::new(ErrorKind::Invalid, "a document cannot be written as JSON").caused_by(cause))
}

fn missing(column: Column) -> Error {
    Error::new(ErrorKind::Decode, format!("the column {} is missing", column.name))
}
