//! Raw bytes in JSON: as text, which loses what is no UTF-8, and exactly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_wire::{Code, Fault};
use serde_json::{Map, Value};

/// The field with the bytes as text.
pub const TEXT: &str = "text";
/// The field with the bytes exactly.
pub const BASE64: &str = "base64";

/// Puts an answer's bytes beside its fields.
pub fn put(answer: &mut Value, bytes: &[u8]) {
    if let Value::Object(fields) = answer {
        fields.insert(TEXT.into(), String::from_utf8_lossy(bytes).into());
        fields.insert(BASE64.into(), STANDARD.encode(bytes).into());
    }
}

/// Takes a question's bytes from its fields: one of the two.
pub fn take(fields: &mut Map<String, Value>) -> Result<Vec<u8>, Fault> {
    let bad = |what: &str| Fault::new(Code::BadRequest, what.to_owned());
    match (fields.remove(TEXT), fields.remove(BASE64)) {
        (Some(Value::String(text)), None) => Ok(text.into_bytes()),
        (None, Some(Value::String(text))) => STANDARD.decode(text).map_err(|_| bad("`base64` is not base64")),
        (None, None) => Err(bad("send the bytes as `text`, as `base64`, or as the body itself")),
        (Some(_), Some(_)) => Err(bad("send `text` or `base64`, not both")),
        (Some(_), None) | (None, Some(_)) => Err(bad("`text` and `base64` must be strings")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bytes_go_there_and_back_exactly() {
        let mut answer = json!({ "from": 3 });
        put(&mut answer, b"a\xff\0");
        assert_eq!(answer, json!({ "from": 3, "text": "a\u{fffd}\0", "base64": "Yf8A" }));
        let Value::Object(mut fields) = json!({ "base64": "Yf8A", "seq": 1 }) else { unreachable!() };
        assert_eq!(take(&mut fields).unwrap(), b"a\xff\0");
        assert_eq!(Value::Object(fields), json!({ "seq": 1 }));
    }

    #[test]
    fn what_is_no_bytes_is_refused() {
        for wrong in [json!({}), json!({ "text": 1 }), json!({ "base64": "?" }), json!({ "text": "", "base64": "" })] {
            let Value::Object(mut fields) = wrong else { unreachable!() };
            assert_eq!(take(&mut fields).unwrap_err().code, Code::BadRequest);
        }
    }
}
