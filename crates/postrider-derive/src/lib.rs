//! `#[derive(OutboxEntity)]`: a struct of the application's as an outbox entity.
//!
//! `postrider` gives it out under its feature `derive`; nobody depends on this crate directly.
//! `attributes` reads the attributes, `entity` says which field is what, `check` looks at the names,
//! `expand` writes the code. Whatever is wrong is told at its own place, all of it at once.

mod attributes;
mod check;
mod columns;
mod entity;
mod expand;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_macro_input};

use entity::Entity;

/// Implements `OutboxEntity` for a struct that embeds an `OutboxRow`.
///
/// ```
/// use postrider::OutboxEntity;
/// use postrider::model::{OutboxRow, TenantId};
/// use uuid::Uuid;
///
/// #[derive(Clone, Debug, OutboxEntity)]
/// #[outbox(table = "order_mail", schema = "shop", tenant = "tenant_id")]
/// #[outbox(rename(created_at = "created_date", updated_at = "last_modified_date"))]
/// struct OrderMail {
///     #[outbox(row)]
///     row: OutboxRow,
///     tenant_id: TenantId,
///     order_id: Uuid,
///     #[outbox(column = "note_text")]
///     note: Option<String>,
/// }
///
/// let table = OrderMail::table()?;
/// assert_eq!((table.schema(), table.name(), table.tenant()), (Some("shop"), "order_mail", Some("tenant_id")));
/// let own: Vec<_> = OrderMail::own_columns().iter().map(|column| (column.name, column.nullable)).collect();
/// assert_eq!(own, [("order_id", false), ("note_text", true)]);
/// # Ok::<(), postrider::Error>(())
/// ```
///
/// The struct has named fields and no generic parameters, and is `Clone` and `Debug`.
///
/// # On the struct
///
/// | attribute | says |
/// |---|---|
/// | `table = "order_mail"` | the table's name, required; at most 47 bytes, since companions and indexes add to it |
/// | `schema = "shop"` | the table's schema; without it, the one that the connection finds |
/// | `tenant = "tenant_id"` | the tenant column; its field is the one of that name, or the one marked `#[outbox(tenant)]` |
/// | `attempts = "mail_history"` | the companion table of attempts; without it, the table's name with `_attempt` behind it |
/// | `id = "text"` | ids are stored as text of 36 characters, not as 16 bytes (`"binary"`, the default) |
/// | `rename(created_at = "created_date", …)` | other names for columns of the outbox row, given in this order |
///
/// Without a tenant it is an **ownership entity**: every row is everybody's, and
/// `OutboxRepository::scoped` does not exist for it:
///
/// ```
/// use postrider::OutboxEntity;
/// use postrider::model::OutboxRow;
///
/// #[derive(Clone, Debug, OutboxEntity)]
/// #[outbox(table = "system_mail")]
/// struct SystemMail {
///     #[outbox(row)]
///     row: OutboxRow,
///     job: i64,
/// }
///
/// assert_eq!(SystemMail::table()?.tenant(), None);
/// # Ok::<(), postrider::Error>(())
/// ```
///
/// The table is a default: the configuration can give another (`OutboxRepository::with_table`).
///
/// # On a field
///
/// | attribute | says |
/// |---|---|
/// | `row` | this is the embedded `OutboxRow`; exactly one field has it |
/// | `tenant` | this is the `TenantId` whose row it is; the column has the field's name, unless the struct or `column` names it |
/// | `column = "note_text"` | the column's name; without it, the field's |
///
/// Every other field is a column of the application's own. Its type implements
/// `postrider::model::ColumnValue`, which also says which types do; an `Option` may be null.
///
/// # Names
///
/// Names are 1 to 63 ASCII letters, digits and `_`, begin neither with a digit nor with `pr_`, and no
/// two columns have the same one, upper and lower case apart. All of this is checked when the
/// struct is compiled.
///
/// # What it writes
///
/// `table`, `own_columns`, `row`, `tenant`, `own_values` and `assemble` of the trait. A stored value
/// that its field cannot take fails its row alone, with an error that names the column.
#[proc_macro_derive(OutboxEntity, attributes(outbox))]
pub fn outbox_entity(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    match Entity::read(&input) {
        Ok(entity) => expand::implementation(&entity).into(),
        Err(errors) => {
            let errors = errors.iter().map(syn::Error::to_compile_error);
            quote!(#(#errors)*).into()
        }
    }
}
