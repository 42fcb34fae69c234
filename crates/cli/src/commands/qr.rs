//! Links for cameras.

use crate::failure::Failure;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// A link as cameras read it: black on white, whatever the terminal's colours.
pub fn code(link: &str) -> Result<String, Failure> {
    let code = QrCode::with_error_correction_level(link, EcLevel::L)
        .map_err(|error| Failure::new("internal", format!("cannot make a QR code of the link: {error}")))?;
    let drawn = code.render::<Dense1x2>().build();
    Ok(drawn.lines().map(|line| format!("\x1b[30;107m{line}\x1b[m\n")).collect())
}
