//! What is accepted as the variables of a template.
//!
//! Looked at before the template language sees them: a JSON object whose nesting no recursion of
//! the engine can stumble over. Nothing here may change a value.

use minijinja::Value;
use minijinja::value::Serde;

use crate::error::{Error, Result};

/// The deepest nesting of lists and objects in the variables.
const MAX_DEPTH: usize = 100;

/// The variables as the engine takes them. Null is the empty object.
///
/// # Errors
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if they are no object, or nested deeper than
/// [`MAX_DEPTH`].
pub(super) fn read(variables: &serde_json::Value) -> Result<Value> {
    let kind = match variables {
        serde_json::Value::Null => {
            return Ok(Value::from_iter(std::iter::empty::<(String, Value)>()));
        }
        serde_json::Value::Object(_) => {
            check_depth(variables)?;
            return Ok(Value::from(Serde(variables)));
        }
        serde_json::Value::Array(_) => "a list",
        serde_json::Value::String(_) => "a text",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::Bool(_) => "a truth value",
    };
    Err(Error::invalid(format!("the variables of a template must be a JSON object, and are {kind}")))
}

/// Walks with a stack of its own, so that no depth overflows the thread's.
fn check_depth(root: &serde_json::Value) -> Result<()> {
    let mut open = vec![(root, 1_usize)];
    while let Some((value, depth)) = open.pop() {
        let is_container = value.is_array() || value.is_object();
        if is_container && depth > MAX_DEPTH {
            return Err(Error::invalid(format!(
                "the variables of a template are nested deeper than {MAX_DEPTH} levels"
            )));
        }
        match value {
            serde_json::Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            serde_json::Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> serde_json::Value {
        (1..levels).fold(json!({}), |inner, _| serde_json::Map::from_iter([("a".to_owned(), inner)]).into())
    }

    #[test]
    fn variables_are_an_object_or_null() {
        assert!(read(&json!({ "a": 1 })).is_ok());
        assert!(read(&serde_json::Value::Null).is_ok());
        for bad in [json!([1]), json!("a"), json!(1), json!(true)] {
            assert!(read(&bad).unwrap_err().is_invalid(), "{bad}");
        }
    }

    #[test]
    fn variables_nested_without_end_are_refused_before_the_engine_sees_them() {
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        let error = read(&nested(MAX_DEPTH + 1)).unwrap_err();
        assert!(error.to_string().contains("100 levels"), "{error}");
        assert!(read(&nested(2_000)).is_err());
    }
}
