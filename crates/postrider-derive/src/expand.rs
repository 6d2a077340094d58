//! Writes the implementation of the trait.
//!
//! Every name of the library's is a full path; what depends on a field's type carries that type's
//! place, so that the compiler's own messages point at it.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::entity::{Entity, Member};

/// The `impl` block.
pub(crate) fn implementation(entity: &Entity<'_>) -> TokenStream {
    let name = entity.name;
    let tenancy = if entity.tenant.is_some() { quote!(ByTenant) } else { quote!(Ownership) };
    let (table, columns, row) = (table(entity), own_columns(entity), row(entity));
    let (tenant, values, assemble) = (tenant(entity), own_values(entity), assemble(entity));
    quote! {
        #[automatically_derived]
        impl ::postrider::model::OutboxEntity for #name {
            type Tenancy = ::postrider::model::#tenancy;
            #table
            #columns
            #row
            #tenant
            #values
            #assemble
        }
    }
}

fn table(entity: &Entity<'_>) -> TokenStream {
    let name = &entity.table;
    let schema = entity.schema.iter();
    let (renamed, names): (Vec<_>, Vec<_>) =
        entity.renames.iter().map(|(column, name)| (column.to_string(), name)).unzip();
    let tenant = entity.tenant.iter().map(|tenant| &tenant.column);
    let attempts = entity.attempts.iter();
    let ids = entity.text_ids.then(|| quote!(let table = table.with_id_type(::postrider::model::IdType::Text);));
    quote! {
        fn table() -> ::postrider::Result<::postrider::model::TableDef> {
            let table = ::postrider::model::TableDef::new(#name)?;
            #(let table = table.in_schema(#schema)?;)*
            #(let table = table.rename(#renamed, #names)?;)*
            #(let table = table.with_tenant(#tenant)?;)*
            #(let table = table.with_attempt_table(#attempts)?;)*
            #ids
            ::core::result::Result::Ok(table)
        }
    }
}

fn own_columns(entity: &Entity<'_>) -> TokenStream {
    let columns = entity.own.iter().map(|own| {
        let (of, name) = (own.of, &own.column);
        quote_spanned!(place(of)=> ::postrider::model::OwnColumn::of::<#of>(#name))
    });
    quote! {
        fn own_columns() -> &'static [::postrider::model::OwnColumn] {
            const COLUMNS: &[::postrider::model::OwnColumn] = &[#(#columns),*];
            COLUMNS
        }
    }
}

fn row(entity: &Entity<'_>) -> TokenStream {
    let field = entity.row.field;
    let row = quote_spanned!(place(entity.row.of)=> &self.#field);
    quote! {
        fn row(&self) -> &::postrider::model::OutboxRow {
            #row
        }
    }
}

/// An ownership entity has the trait's own.
fn tenant(entity: &Entity<'_>) -> Option<TokenStream> {
    let tenant = entity.tenant.as_ref()?;
    let field = tenant.field;
    let tenant = quote_spanned!(place(tenant.of)=> &self.#field);
    Some(quote! {
        fn tenant(&self) -> &::postrider::model::TenantId {
            #tenant
        }
    })
}

fn own_values(entity: &Entity<'_>) -> TokenStream {
    let values = entity.own.iter().map(|own| {
        let (field, of) = (own.field, own.of);
        quote_spanned!(place(of)=> <#of as ::postrider::model::ColumnValue>::to_value(&self.#field))
    });
    quote! {
        fn own_values(&self) -> ::std::vec::Vec<::postrider::model::Value> {
            ::std::vec![#(#values),*]
        }
    }
}

/// Fields of a struct's expression are evaluated in the order in which they are written: that of
/// the columns.
fn assemble(entity: &Entity<'_>) -> TokenStream {
    let row = entity.row.field;
    let tenant = entity.tenant.iter().map(|tenant| tenant.field);
    let own = entity.own.iter().map(|Member { field, of, .. }| quote_spanned!(place(of)=> #field: own.take::<#of>()?,));
    let values = if entity.own.is_empty() { quote!(_own) } else { quote!(own) };
    let open = (!entity.own.is_empty()).then(|| {
        quote! {
            let mut own =
                ::postrider::model::OwnValues::new(<Self as ::postrider::model::OutboxEntity>::own_columns(), own);
        }
    });
    let whose = if entity.tenant.is_some() { quote!(tenant) } else { quote!(_tenant) };
    quote! {
        fn assemble(
            row: ::postrider::model::OutboxRow,
            #whose: ::postrider::model::TenantId,
            #values: ::std::vec::Vec<::postrider::model::Value>,
        ) -> ::postrider::Result<Self> {
            #open
            ::core::result::Result::Ok(Self { #row: row, #(#tenant: tenant,)* #(#own)* })
        }
    }
}

/// Where a field's type stands, for messages. Names are still the expansion's own: a type can come
/// out of a macro, which sees other ones.
fn place(of: &Type) -> Span {
    Span::call_site().located_at(of.span())
}
