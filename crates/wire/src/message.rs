//! JSON-RPC 2.0 messages with optional raw bytes behind them.

use crate::fault::{Code, Fault};
use crate::frame::Frame;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Protocol versions this build speaks, newest first.
pub const VERSIONS: &[u32] = &[1];

/// One message and the bytes that belong to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// What it says.
    pub body: Body,
    /// Raw bytes behind it; empty where none belong to it.
    pub bytes: Vec<u8>,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A question; the answer carries the same id.
    Request {
        /// Chosen by the asker, unique on the connection.
        id: u64,
        /// The operation's name.
        method: String,
        /// Its parameters.
        params: Value,
    },
    /// The answer to a question.
    Answer {
        /// The question's id.
        id: u64,
        /// What came of it.
        result: Result<Value, Fault>,
    },
    /// Something the other side should know.
    Event {
        /// What happened.
        method: String,
        /// The details.
        params: Value,
    },
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Raw {
    jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    params: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RawError>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct RawError {
    code: i64,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Fault>,
}

/// The number JSON-RPC wants beside our own code.
fn number(code: Code) -> i64 {
    match code {
        Code::BadRequest => -32602,
        Code::UnknownOperation => -32601,
        Code::Internal => -32603,
        _ => -32000,
    }
}

impl Message {
    /// A message without bytes.
    #[must_use]
    pub fn plain(body: Body) -> Message {
        Message { body, bytes: Vec::new() }
    }

    /// Appends the message as a stream's frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut raw =
            Raw { jsonrpc: "2.0".into(), id: None, method: None, params: Value::Null, result: None, error: None };
        match &self.body {
            Body::Request { id, method, params } => {
                raw.id = Some(*id);
                raw.method = Some(method.clone());
                raw.params = params.clone();
            }
            Body::Answer { id, result: Ok(value) } => {
                raw.id = Some(*id);
                raw.result = Some(value.clone());
            }
            Body::Answer { id, result: Err(fault) } => {
                raw.id = Some(*id);
                raw.error = Some(RawError {
                    code: number(fault.code),
                    message: fault.message.clone(),
                    data: Some(fault.clone()),
                });
            }
            Body::Event { method, params } => {
                raw.method = Some(method.clone());
                raw.params = params.clone();
            }
        }
        let json = serde_json::to_vec(&raw).expect("texts, numbers and values always serialise");
        Frame { json: &json, bytes: &self.bytes }.encode(out);
    }

    /// Reads a frame's content.
    pub fn decode(frame: Frame<'_>) -> Result<Message, Fault> {
        let bad = |what: &str| Fault::new(Code::BadRequest, what.to_owned());
        let raw: Raw = serde_json::from_slice(frame.json).map_err(|e| bad(&format!("not a JSON-RPC message: {e}")))?;
        if raw.jsonrpc != "2.0" {
            return Err(bad("jsonrpc must be \"2.0\""));
        }
        let body = match (raw.id, raw.method, raw.result, raw.error) {
            (Some(id), Some(method), None, None) => Body::Request { id, method, params: raw.params },
            (None, Some(method), None, None) => Body::Event { method, params: raw.params },
            (Some(id), None, result, None) => Body::Answer { id, result: Ok(result.unwrap_or(Value::Null)) },
            (Some(id), None, None, Some(error)) => {
                let fault = error.data.unwrap_or_else(|| Fault::new(Code::Internal, error.message));
                Body::Answer { id, result: Err(fault) }
            }
            _ => return Err(bad("expected a request, an answer or an event")),
        };
        Ok(Message { body, bytes: frame.bytes.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn round(body: Body, bytes: &[u8]) {
        let message = Message { body, bytes: bytes.to_vec() };
        let mut out = vec![];
        message.encode(&mut out);
        let (frame, taken) = Frame::decode(&out, 1 << 20).unwrap().unwrap();
        assert_eq!(taken, out.len());
        assert_eq!(Message::decode(frame).unwrap(), message);
    }

    #[test]
    fn every_kind_of_message_reads_back() {
        round(Body::Request { id: 1, method: "session.list".into(), params: json!({"all": true}) }, b"");
        round(Body::Answer { id: 1, result: Ok(json!([1, 2])) }, b"\0\xff");
        round(Body::Answer { id: 2, result: Ok(Value::Null) }, b"");
        let fault = Fault::new(Code::NotFound, "no session `x`").hint("see `holdfast ls`");
        round(Body::Answer { id: 3, result: Err(fault) }, b"");
        round(Body::Event { method: "ended".into(), params: json!({"code": 3}) }, b"");
    }

    #[test]
    fn what_is_no_message_says_what_is_wrong_with_it() {
        for json in ["", "[]", "{}", r#"{"jsonrpc":"1.0","method":"x"}"#, r#"{"jsonrpc":"2.0"}"#, "nonsense"] {
            let fault = Message::decode(Frame { json: json.as_bytes(), bytes: b"" }).unwrap_err();
            assert_eq!(fault.code, Code::BadRequest, "{json}");
        }
    }
}
