//! The rules of the language: escaping, missing and null variables, line breaks and NUL.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::test_support::{any_json, catalogue, html_of, refusal, render, text_of};
use super::{Part, TemplateCatalogue};
use crate::error::ErrorKind;

/// Case C51.
const AWKWARD: &str = "Ann's & \"Bob's\" <Ltd>";
const ESCAPED: &str = "Ann&#x27;s &amp; &quot;Bob&#x27;s&quot; &lt;Ltd&gt;";

/// Case C51.
#[test]
fn variables_are_escaped_once_in_html_and_verbatim_elsewhere() {
    let sources = [
        ("a", Part::Subject, "For {{ name }}"),
        ("a", Part::Text, "For {{ name }}"),
        ("a", Part::Html, "<p title='{{ name }}'>{{ name }} {{ name | e }} {{ list }}</p>"),
    ];
    let rendered = render(&catalogue(&sources), &json!({ "name": AWKWARD, "list": ["<"] })).unwrap();
    assert_eq!(rendered.subject, Some(format!("For {AWKWARD}")));
    assert_eq!(rendered.text, Some(format!("For {AWKWARD}")));
    let expected = format!("<p title='{ESCAPED}'>{ESCAPED} {ESCAPED} [&#x27;&lt;&#x27;]</p>");
    assert_eq!(rendered.html, Some(expected));
}

#[test]
fn html_is_escaped_once_through_macros_blocks_and_filters() {
    let source =
        "{% macro m(x) %}<b>{{ x }}</b>{% endmacro %}{% set s %}{{ v }}{% endset %}{{ m(v) }}{{ s }}{{ v | upper }}";
    assert_eq!(html_of(source, &json!({ "v": "a&<" })).unwrap(), "<b>a&amp;&lt;</b>a&amp;&lt;A&amp;&lt;");
    let link = html_of("<a href=\"{{ url }}\">", &json!({ "url": "https://a.example/?x=1&y=2" })).unwrap();
    assert_eq!(link, "<a href=\"https://a.example/?x=1&amp;y=2\">");
}

/// Case C52.
#[test]
fn a_missing_variable_fails_with_template_line_and_expression() {
    let source = "Dear customer,\nHello {{ customer.name }},";
    let missing = refusal(source, &json!({}));
    assert_eq!(missing, "template \"a/body.txt\", line 2: `customer` is undefined");
    let without_name = refusal(source, &json!({ "customer": {} }));
    assert_eq!(without_name, "template \"a/body.txt\", line 2: `customer.name` is undefined");
    let null = refusal(source, &json!({ "customer": { "name": null } }));
    assert_eq!(null, "template \"a/body.txt\", line 2: `customer.name` is null, which has no text");
    assert!(refusal(source, &Value::Null).contains("`customer` is undefined"));
    assert!(refusal(source, &json!({ "customer": null })).contains("line 2"));
}

/// Case C52.
#[test]
fn an_empty_text_zero_and_false_are_rendered_as_they_are() {
    for (name, expected) in [
        (json!(""), "Hello ,"),
        (json!(0), "Hello 0,"),
        (json!("0"), "Hello 0,"),
        (json!(false), "Hello false,"),
        (json!(true), "Hello true,"),
        (json!(1.5), "Hello 1.5,"),
        (json!(-7), "Hello -7,"),
        (json!(u64::MAX), "Hello 18446744073709551615,"),
    ] {
        let variables = json!({ "customer": { "name": name } });
        assert_eq!(text_of("Hello {{ customer.name }},", &variables).unwrap(), expected);
        assert_eq!(html_of("Hello {{ customer.name }},", &variables).unwrap(), expected);
    }
}

#[test]
fn null_is_refused_by_filters_that_make_text_and_replaced_by_default() {
    let variables = json!({ "a": null });
    for filter in [
        "upper",
        "lower",
        "title",
        "capitalize",
        "trim",
        "string",
        "safe",
        "e",
        "urlencode",
        "lines",
        "replace('a', 'b')",
    ] {
        let message = refusal(&format!("\n{{{{ a | {filter} }}}}"), &variables);
        assert!(message.contains("line 2") && message.contains("is null"), "{filter}: {message}");
    }
    assert_eq!(
        text_of("{{ a | default('x') }}{{ b | d('y') }}{{ c.d | default('z') }}", &json!({ "a": null, "c": {} }))
            .unwrap(),
        "xyz"
    );
    assert_eq!(text_of("{% if a %}1{% else %}2{% endif %}{{ a is none }}", &variables).unwrap(), "2true");
    assert_eq!(
        text_of("{% if b is defined %}1{% endif %}{{ 'x' | upper | replace('X', 'y') }}", &variables).unwrap(),
        "y"
    );
    assert!(refusal("{{ '%s' | format(a) }}", &variables).contains("is null"));
    let formatted = text_of("{{ '%s-%03d' | format('x', 7) }}{{ 'x.' | trim('.') }}", &variables);
    assert_eq!(formatted.unwrap(), "x-007x");
    assert!(refusal("{% if b %}1{% endif %}", &variables).contains("`b` is undefined"));
    assert!(refusal("{% for x in b %}{% endfor %}", &variables).contains("`b` is undefined"));
}

/// Case C06.
#[test]
fn a_line_break_in_a_subject_is_invalid_directly_and_through_a_variable() {
    for break_ in ["\r\nBcc: victim@example.net\r\n\r\nnew body", "\n", "\r", "\0"] {
        let through = catalogue(&[("a", Part::Subject, "Hi{{ x }}"), ("a", Part::Text, "body")]);
        let error = render(&through, &json!({ "x": break_ })).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{break_:?}");
        assert!(error.to_string().contains("subject of the template \"a/subject.txt\""), "{error}");
    }
    for break_ in ["\r\nBcc: victim@example.net", "\n", "\r"] {
        let direct = catalogue(&[("a", Part::Subject, &format!("Hi{break_}"))]);
        assert_eq!(render(&direct, &json!({})).unwrap_err().kind(), ErrorKind::Invalid, "{break_:?}");
    }
    let blanks = render(&catalogue(&[("a", Part::Subject, " Hi ")]), &json!({})).unwrap();
    assert_eq!(blanks.subject.as_deref(), Some(" Hi "), "nothing is taken off");
}

/// Case C24.
#[test]
fn a_nul_is_invalid_in_each_part_and_refused_in_a_source() {
    for part in Part::ALL {
        let error = render(&catalogue(&[("a", part, "Hi {{ x }}")]), &json!({ "x": "a\0b" })).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("NUL"), "{error}");
        let error = TemplateCatalogue::new().add("a", part, "a\0").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Template);
    }
}

proptest! {
    #[test]
    fn no_tag_of_a_variable_reaches_the_html(a in any_json()) {
        for source in ["{{ a }}", "'{{ a }}'", "{{ a ~ '' }}", "{{ a | string }}", "{{ a | string | upper }}", "{{ a | e }}"] {
            if let Ok(html) = html_of(source, &json!({ "a": a })) {
                prop_assert!(!html.contains(['<', '>', '"']), "{}", html);
            }
        }
    }

    #[test]
    fn a_rendered_subject_is_one_line_and_verbatim(a in "[a-z<&\r\n\0]{0,6}") {
        let rendered = render(&catalogue(&[("a", Part::Subject, "{{ a }}")]), &json!({ "a": a }));
        match rendered {
            Ok(rendered) => prop_assert_eq!(rendered.subject, Some(a)),
            Err(error) => prop_assert!(error.kind() == ErrorKind::Invalid && a.contains(['\r', '\n', '\0'])),
        }
    }
}
