//! What a template may cost and reach, and that no variables bring it down.

use proptest::prelude::*;
use serde_json::json;

use super::test_support::{any_json, catalogue, refusal, render, text_of};
use super::{DEFAULT_FUEL, MAX_OUTPUT_BYTES, Part};

#[test]
fn work_and_size_without_end_are_stopped() {
    let nested = "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}x{% endfor %}{% endfor %}{% endfor %}";
    let silent = nested.replace('x', "{% set y = 1 %}");
    let doubling = format!("{{% set x = 'xxxxxxxxxxxxxxxx' %}}{}", "{% set x = x ~ x %}".repeat(40));
    for source in [
        nested,
        &silent,
        &doubling,
        "{{ 'x' * 30000000 }}",
        "{{ 'x' * 3000000000 }}",
        "{{ ('x' * 3000000) * 10 }}",
        "{% set x = 'x' * 30000000 %}{{ x | length }}",
        "{{ '%5000000s' | format('x') }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ] {
        let message = refusal(source, &json!({}));
        assert!(message.contains("limit"), "{source}: {message}");
    }
}

#[test]
fn the_size_of_a_part_is_limited_to_the_byte() {
    let variables = json!({ "x": "x".repeat(MAX_OUTPUT_BYTES) });
    assert_eq!(text_of("{{ x }}", &variables).unwrap().len(), MAX_OUTPUT_BYTES);
    assert!(refusal("{{ x }}y", &variables).contains("limit of 4000000 bytes"));
}

#[test]
fn a_large_but_sane_table_passes_with_much_to_spare() {
    let source = "<table>{% for row in rows %}<tr class=\"{{ loop.cycle('odd', 'even') }}\"><td>{{ loop.index }}</td>\
        <td>{{ row.name | trim | title }}</td><td>{{ row.note | default('-') }}</td><td>{{ row.count }}</td>\
        <td>{{ row.price | round(2) }}</td><td>{{ (row.price * row.count) | round(2) }}</td>\
        <td>{% if row.count > 3 %}many{% else %}few{% endif %}</td><td><a href=\"{{ row.url }}\">{{ row.url }}</a></td></tr>\n\
        {% endfor %}</table>";
    let row = json!({ "name": "a thing & another", "count": 7, "price": 12.5, "url": "https://shop.example/things/12345?a=b&c=d" });
    let catalogue = catalogue(&[("a", Part::Html, source)]).with_fuel(DEFAULT_FUEL / 5);
    let html = render(&catalogue, &json!({ "rows": vec![row; 1_000] })).unwrap().html.unwrap();
    assert_eq!(html.matches("<tr ").count(), 1_000);
}

#[test]
fn a_template_reaches_no_other_one_and_prints_no_state() {
    for source in ["{% include '0.txt' %}", "{% extends '0.txt' %}", "{% from '0.txt' import x %}"] {
        assert!(refusal(source, &json!({})).contains("cannot include"), "{source}");
    }
    // A list put into itself in a loop would overflow the stack when it is dropped.
    let nesting = "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}";
    assert!(refusal(nesting, &json!({})).contains("namespace"));
    assert!(refusal("{{ debug() }}", &json!({ "secret": "s3cret" })).contains("debug"));
    let error = text_of("{{ secret.x.y }}", &json!({ "secret": "s3cret" })).unwrap_err();
    assert!(!format!("{error:?}").contains("s3cret"), "an error holds no variable's value: {error:?}");
}

proptest! {
    #[test]
    fn no_variables_make_a_template_panic(a in any_json(), b in any_json()) {
        let sources = [
            "{{ a }}", "{{ b | upper }}", "{{ a.a.b }}", "{{ a[b] }}", "{{ a ~ b }}", "{{ a + b }}", "{{ a * 3 }}",
            "{% for x in a %}{{ loop.index }}{{ x }}{% endfor %}", "{% if a %}{{ b }}{% endif %}", "{{ a | join(',') }}",
            "{{ a | tojson }}", "{{ a | length }}", "{{ b | round }}", "{{ a | sort }}", "{{ a | default(b) }}",
            "{{ a[:b] }}", "{{ b | format(a) }}", "{{ a in b }}", "{{ a < b }}", "{{ a | urlencode }}",
        ];
        let variables = json!({ "a": a, "b": b });
        for source in sources {
            let catalogue = catalogue(&Part::ALL.map(|part| ("a", part, source)));
            let _ = render(&catalogue, &variables);
            let _ = render(&catalogue, &a);
        }
    }
}
