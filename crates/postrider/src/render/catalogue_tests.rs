//! The rules of the catalogue: what is added, and which source a request gets.

use serde_json::json;

use super::test_support::{catalogue, render};
use super::{Part, RenderRequest, Renderer, TemplateCatalogue, Variant};
use crate::error::ErrorKind;
use crate::model::TenantId;

#[test]
fn a_tenant_goes_before_shared_then_the_channel_then_the_locale() {
    let root = &TenantId::ROOT;
    let acme = TenantId::new("acme").unwrap();
    let other = TenantId::new("other").unwrap();
    let mut catalogue = TemplateCatalogue::new();
    let mut add = |tenant, channel, locale, part, source: &str| {
        catalogue.add_variant("a", Variant { channel, locale, tenant }, part, source).unwrap();
    };
    add(None, None, None, Part::Subject, "shared subject");
    add(None, None, None, Part::Text, "shared");
    add(None, None, None, Part::Html, "shared html");
    add(None, None, Some("de"), Part::Text, "shared de");
    add(None, None, Some("de-AT"), Part::Subject, "shared subject de-AT");
    add(None, Some("sms"), None, Part::Text, "sms");
    add(Some(&acme), None, None, Part::Text, "acme");
    add(Some(&acme), Some("sms"), Some("de_AT"), Part::Text, "acme sms de-AT");
    add(Some(&acme), Some("sms"), None, Part::Text, "acme sms");
    let variables = json!({});
    let render = |channel, locale, tenant| {
        let request = RenderRequest { template: "a", channel, locale, tenant, variables: &variables };
        catalogue.render(&request).unwrap()
    };
    let texts = |channel, locale, tenant| render(channel, locale, tenant).text.unwrap();
    assert_eq!(texts("email", None, root), "shared");
    assert_eq!(texts("email", Some("fr"), &other), "shared");
    assert_eq!(texts("email", Some("DE_ch"), &other), "shared de");
    assert_eq!(texts("sms", Some("de"), &other), "sms");
    assert_eq!(texts("email", Some("de"), &acme), "acme");
    assert_eq!(texts("sms", Some("de-AT"), &acme), "acme sms de-AT");
    assert_eq!(texts("sms", Some("de"), &acme), "acme sms");
    // A folder is taken whole, and a body never has two languages.
    let sms = render("sms", None, root);
    assert_eq!((sms.subject, sms.html, sms.locale), (None, None, None));
    let german = render("email", Some("de-AT"), &other);
    assert_eq!((german.html, german.locale.as_deref()), (None, Some("de")));
    assert_eq!(german.subject.as_deref(), Some("shared subject"));
    assert_eq!(render("sms", Some("de-at"), &acme).locale.as_deref(), Some("de_AT"));
}

#[test]
fn an_unknown_template_names_the_nearest_that_this_tenant_can_see() {
    let root = &TenantId::ROOT;
    let acme = TenantId::new("acme").unwrap();
    let mut catalogue = TemplateCatalogue::new();
    for name in ["welcome", "goodbye", "order-placed", "order-paid", "b1", "b2", "b3", "b4", "b5", "b6", "b7"] {
        catalogue.add(name, Part::Text, "x").unwrap();
    }
    let own = Variant { tenant: Some(&acme), ..Variant::default() };
    catalogue.add_variant("welcome2", own, Part::Text, "x").unwrap();
    catalogue.add_variant("only-sms", Variant { channel: Some("sms"), ..Variant::default() }, Part::Text, "x").unwrap();
    let variables = json!({});
    let refused = |template, tenant| {
        let request = RenderRequest { template, channel: "email", locale: None, tenant, variables: &variables };
        let error = catalogue.render(&request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Template);
        error.to_string()
    };
    let message = refused("welcom", root);
    assert!(message.starts_with("there is no template \"welcom\"; known are: welcome, "), "{message}");
    assert!(message.ends_with(" and 2 more") && !message.contains("welcome2"), "{message}");
    assert!(refused("welcome2", root).contains("there is no template"));
    assert!(refused("welcome3", &acme).contains("welcome2"));
    assert!(refused("only-sms", &acme).contains("no part for the channel \"email\""));
    assert!(refused("../welcome", &acme).contains("is no template name"));
    let error = render(&TemplateCatalogue::new(), &variables).unwrap_err();
    assert!(error.to_string().contains("the catalogue has none"), "{error}");
}

#[test]
fn a_template_needs_one_part_only() {
    let html = render(&catalogue(&[("a", Part::Html, "<p>")]), &json!({})).unwrap();
    assert_eq!((html.subject, html.text, html.html.as_deref()), (None, None, Some("<p>")));
    let subject = render(&catalogue(&[("a", Part::Subject, "Hi")]), &json!({})).unwrap();
    assert_eq!((subject.subject.as_deref(), subject.text, subject.html), (Some("Hi"), None, None));
    let mut german = TemplateCatalogue::new();
    german.add_variant("a", Variant { locale: Some("de"), ..Variant::default() }, Part::Text, "x").unwrap();
    assert!(render(&german, &json!({})).unwrap_err().to_string().contains("default language"));
}

#[test]
fn a_source_is_compiled_when_it_is_added() {
    let mut catalogue = TemplateCatalogue::new();
    let error = catalogue.add("a", Part::Html, "one\ntwo\n{% if x %}").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    assert!(error.to_string().starts_with("template \"a/body.html\", line 3: syntax error"), "{error}");
    assert_eq!(catalogue.names().count(), 0);
    catalogue.add("a", Part::Html, "x").unwrap();
    assert!(catalogue.add("a", Part::Html, "y").unwrap_err().to_string().contains("added twice"));
    assert!(catalogue.add("a/b", Part::Html, "y").is_err());
}

#[test]
fn a_catalogue_is_a_renderer_that_threads_share() {
    let shared: std::sync::Arc<dyn Renderer> = std::sync::Arc::new(catalogue(&[("a", Part::Text, "Hi {{ n }}")]));
    std::thread::scope(|scope| {
        for n in 0..4 {
            let shared = &shared;
            scope.spawn(move || {
                let variables = json!({ "n": n });
                let request = RenderRequest {
                    template: "a",
                    channel: "sms",
                    locale: None,
                    tenant: &TenantId::ROOT,
                    variables: &variables,
                };
                let rendered = shared.render(&request).unwrap();
                assert_eq!(rendered.text, Some(format!("Hi {n}")));
            });
        }
    });
    assert_eq!(format!("{shared:?}"), "TemplateCatalogue { names: [\"a\"], .. }");
}
