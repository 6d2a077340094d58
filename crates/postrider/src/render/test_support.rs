//! What the tests of the render layer share: a catalogue of a few sources, and one part of it.

use proptest::prelude::*;
use serde_json::Value;

use super::{Part, RenderRequest, Rendered, Renderer, TemplateCatalogue};
use crate::error::{ErrorKind, Result};
use crate::model::TenantId;

/// A catalogue of these sources.
pub(super) fn catalogue(sources: &[(&str, Part, &str)]) -> TemplateCatalogue {
    let mut catalogue = TemplateCatalogue::new();
    for (name, part, source) in sources {
        catalogue.add(name, *part, source).unwrap();
    }
    catalogue
}

/// Renders the template `a` for the channel `email`.
pub(super) fn render(catalogue: &TemplateCatalogue, variables: &Value) -> Result<Rendered> {
    let tenant = &TenantId::ROOT;
    catalogue.render(&RenderRequest { template: "a", channel: "email", locale: None, tenant, variables })
}

/// Renders `source` as a text part.
pub(super) fn text_of(source: &str, variables: &Value) -> Result<String> {
    render(&catalogue(&[("a", Part::Text, source)]), variables).map(|rendered| rendered.text.unwrap())
}

/// Renders `source` as an HTML part.
pub(super) fn html_of(source: &str, variables: &Value) -> Result<String> {
    render(&catalogue(&[("a", Part::Html, source)]), variables).map(|rendered| rendered.html.unwrap())
}

/// The message of the [`ErrorKind::Template`] that `source` ends in.
pub(super) fn refusal(source: &str, variables: &Value) -> String {
    let error = text_of(source, variables).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template, "{error}");
    error.to_string()
}

/// Any JSON value, with what HTML, headers and databases cannot bear in its texts.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[<>&'\"a\\PC\r\n\0]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let field = ("[a-d<]{1,2}", inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            prop::collection::vec(field, 0..5).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}
