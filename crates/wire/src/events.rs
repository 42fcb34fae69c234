//! The one table of events: what a host sends without being asked, to a client that is attached or follows output.

use crate::attention::RingEvent;
use crate::follow::OutputEvent;
use crate::params::{AnswerEvent, DetachedEvent};
use crate::turns::{NoticeEvent, WritesEvent};
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// Its name on the wire.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// An event's parameters know their row.
pub trait Event: Serialize + DeserializeOwned {
    /// It.
    const ROW: EventRow;
}

macro_rules! events {
    ($( #[doc = $doc:literal] $name:literal ($params:ty); )*) => {
        $( impl Event for $params {
            const ROW: EventRow = EventRow { name: $name, doc: $doc };
        } )*

        /// All rows, in the order of the reference.
        pub const EVENTS: &[EventRow] = &[ $( <$params as Event>::ROW, )* ];

        /// Each row with the schema of its parameters.
        pub(crate) fn schemas(generator: &mut SchemaGenerator) -> Vec<(EventRow, Schema)> {
            vec![ $( (<$params as Event>::ROW, generator.subschema_for::<$params>()), )* ]
        }
    };
}

events! {
    #[doc = "Leave the terminal; the session keeps running."]
    "detached" (DetachedEvent);
    #[doc = "Whether this client has the turn to write; only then may it write to the keeper directly."]
    "writes" (WritesEvent);
    #[doc = "News for the operator: the turn, a request, a seizure, its rights."]
    "notice" (NoticeEvent);
    #[doc = "Catch the person's attention: a bell, and the text as a notification."]
    "ring" (RingEvent);
    #[doc = "Answer the session's terminal queries after an offset, and report with `session.update` where that really began."]
    "answer" (AnswerEvent);
    #[doc = "Output that is followed; the bytes stand behind the JSON."]
    "output" (OutputEvent);
}
