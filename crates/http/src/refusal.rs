//! Refusals as HTTP answers: the fault as it is everywhere, under the nearest status.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast_wire::{Code, Fault};

/// A fault on its way out.
#[derive(Debug)]
pub struct Refused(pub Fault);

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Refused {
        Refused(fault)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = status(self.0.code);
        let mut response = (status, Json(&self.0)).into_response();
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

fn status(code: Code) -> StatusCode {
    match code {
        Code::BadRequest | Code::Version | Code::BadProof | Code::EmptyGrant => StatusCode::BAD_REQUEST,
        Code::Unidentified => StatusCode::UNAUTHORIZED,
        // Nothing is wrong with it; it happens once a human agrees.
        Code::ApprovalNeeded => StatusCode::FORBIDDEN,
        Code::Denied | Code::Unconfirmed | Code::TooWide | Code::TooLong | Code::OutsideRoot => StatusCode::FORBIDDEN,
        Code::UnknownOperation
        | Code::NotFound
        | Code::NoSuchFile
        | Code::NoSuchActor
        | Code::NoSuchGrant
        | Code::NoSuchRun
        | Code::NoSuchQuestion
        | Code::NoSuchApproval
        | Code::NoSuchToken
        | Code::NoSuchInvite
        | Code::NoSuchDevice
        | Code::NoSuchRelay => StatusCode::NOT_FOUND,
        Code::Ambiguous
        | Code::NameTaken
        | Code::TurnHeld
        | Code::FenceStale
        | Code::Frozen
        | Code::NotFrozen
        | Code::NotHolder
        | Code::NotAttached
        | Code::EchoOn
        | Code::ShellBusy
        | Code::KeyConflict
        | Code::Busy
        | Code::QuestionClosed
        | Code::ApprovalClosed
        | Code::UnknownKeeper
        | Code::FileChanged
        | Code::NotAFile
        | Code::Damaged => StatusCode::CONFLICT,
        Code::Ended | Code::InviteOver => StatusCode::GONE,
        Code::Lost => StatusCode::CONFLICT,
        Code::CannotStart => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Ahead => StatusCode::RANGE_NOT_SATISFIABLE,
        Code::TooMany | Code::TooFast => StatusCode::TOO_MANY_REQUESTS,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unrecorded => StatusCode::INSUFFICIENT_STORAGE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
