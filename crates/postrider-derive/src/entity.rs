//! Which field is the row, which the tenant, and which are columns of the application's own.

use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Type};

use crate::attributes::{OnField, OnStruct};
use crate::check;

/// The struct, understood.
pub(crate) struct Entity<'a> {
    pub(crate) name: &'a Ident,
    pub(crate) table: LitStr,
    pub(crate) schema: Option<LitStr>,
    /// The ids are stored as text.
    pub(crate) text_ids: bool,
    pub(crate) attempts: Option<LitStr>,
    pub(crate) renames: Vec<(Ident, LitStr)>,
    pub(crate) row: Member<'a>,
    /// With it, the entity's rows belong to tenants.
    pub(crate) tenant: Option<Member<'a>>,
    /// In the order of the fields.
    pub(crate) own: Vec<Member<'a>>,
}

/// A field, and the column that it stands in (for the row, its name means nothing).
pub(crate) struct Member<'a> {
    pub(crate) field: &'a Ident,
    pub(crate) of: &'a Type,
    pub(crate) column: LitStr,
}

impl<'a> Entity<'a> {
    /// Reads the struct; else everything that is wrong with it.
    pub(crate) fn read(input: &'a DeriveInput) -> Result<Self, Vec<Error>> {
        let fields = named_fields(input).map_err(|error| vec![error])?;
        let mut errors = Vec::new();
        if !input.generics.params.is_empty() {
            let why = "an entity has one table and one set of columns: it cannot have generic parameters";
            errors.push(Error::new_spanned(&input.generics, why));
        }
        let said = OnStruct::read(&input.attrs, &mut errors);
        if said.table.is_none() && errors.is_empty() {
            let why = "an entity has a table: add `#[outbox(table = \"…\")]`";
            errors.push(Error::new(input.ident.span(), why));
        }
        let parts = Parts::sort(&input.ident, said.tenant.as_ref(), fields, &mut errors);
        let (Some(table), Some(row)) = (said.table, parts.row) else {
            return Err(errors);
        };
        let text_ids = match said.id.as_ref().map(|id| (id, id.value())) {
            None => false,
            Some((_, said)) if said == "binary" => false,
            Some((_, said)) if said == "text" => true,
            Some((id, _)) => {
                errors
                    .push(Error::new(id.span(), "ids are stored as `binary` (16 bytes) or as `text` (36 characters)"));
                false
            }
        };
        let (name, schema, attempts, renames) = (&input.ident, said.schema, said.attempts, said.renames);
        let (tenant, own) = (parts.tenant, parts.own);
        let entity = Self { name, table, schema, text_ids, attempts, renames, row, tenant, own };
        check::names(&entity, &mut errors);
        if errors.is_empty() { Ok(entity) } else { Err(errors) }
    }
}

fn named_fields(input: &DeriveInput) -> Result<Vec<(&Field, &Ident)>, Error> {
    let kind = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => {
                return Ok(named.named.iter().filter_map(|field| Some((field, field.ident.as_ref()?))).collect());
            }
            Fields::Unnamed(_) => "a tuple struct",
            Fields::Unit => "a struct without fields",
        },
        Data::Enum(_) => "an enum",
        Data::Union(_) => "a union",
    };
    let why = format!("an entity is a struct with named fields, one of them the outbox row; this is {kind}");
    Err(Error::new(input.ident.span(), why))
}

/// The fields, sorted by what they are.
#[derive(Default)]
struct Parts<'a> {
    row: Option<Member<'a>>,
    tenant: Option<Member<'a>>,
    own: Vec<Member<'a>>,
}

impl<'a> Parts<'a> {
    fn sort(
        entity: &Ident,
        tenant: Option<&LitStr>,
        fields: Vec<(&'a Field, &'a Ident)>,
        errors: &mut Vec<Error>,
    ) -> Self {
        let mut parts = Self::default();
        // What was misread is told already; nothing is said to be missing because of it.
        let before = errors.len();
        for (field, name) in fields {
            let said = OnField::read(&field.attrs, errors);
            parts.take(field, name, said, tenant, errors);
        }
        let misread = errors.len() > before;
        if parts.row.is_none() && !misread {
            let why = "which field is the outbox row? mark it: `#[outbox(row)] row: OutboxRow`";
            errors.push(Error::new(entity.span(), why));
        }
        if let Some(column) = tenant
            && parts.tenant.is_none()
        {
            match parts.own.iter().position(|own| own.column.value() == column.value()) {
                Some(at) => parts.tenant = Some(parts.own.remove(at)),
                None if misread => {}
                None => {
                    let why = format!(
                        "no field stands in the tenant column `{}`: add `{}: TenantId`, or mark the field that holds \
                         the tenant with `#[outbox(tenant)]`",
                        column.value(),
                        column.value()
                    );
                    errors.push(Error::new(column.span(), why));
                }
            }
        }
        parts
    }

    fn take(
        &mut self,
        field: &'a Field,
        name: &'a Ident,
        said: OnField,
        tenant: Option<&LitStr>,
        errors: &mut Vec<Error>,
    ) {
        let given = said.column.clone();
        let column = said.column.unwrap_or_else(|| LitStr::new(&name.unraw().to_string(), name.span()));
        let mut member = Member { field: name, of: &field.ty, column };
        match (said.row, said.tenant) {
            (Some(_), Some(mark)) => {
                errors.push(Error::new(mark.span(), "a field is the row or the tenant, not both"));
            }
            (Some(mark), None) => {
                if let Some(column) = given {
                    let why = "the row has many columns; name them with `rename(…)` on the struct";
                    errors.push(Error::new(column.span(), why));
                }
                if self.row.replace(member).is_some() {
                    errors.push(Error::new(mark.span(), "an entity embeds one outbox row; this is the second"));
                }
            }
            (None, Some(mark)) => {
                if let Some(column) = tenant {
                    if let Some(given) = given {
                        let why = "the tenant column is named on the struct already";
                        errors.push(Error::new(given.span(), why));
                    }
                    member.column = column.clone();
                }
                if self.tenant.replace(member).is_some() {
                    errors.push(Error::new(mark.span(), "a row belongs to one tenant; this is the second"));
                }
            }
            (None, None) => self.own.push(member),
        }
    }
}
