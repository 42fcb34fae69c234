//! The clients for other languages, as far as this machine has them: a script that reads output by offset.

use crate::browser::on_path;
use crate::place::Place;
use crate::trial::{Stop, broken};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The Python that has the SDK, where it is not the first one on the search path.
const PYTHON: &str = "HOLDFAST_PROVE_PYTHON";
/// The directory of the TypeScript SDK's package, where Node does not find it from the working directory.
const PACKAGE: &str = "HOLDFAST_PROVE_TYPESCRIPT";

/// Reads so many bytes of a session's output.
const BY_PYTHON: &str = r#"
import sys, holdfast
session, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
read = b""
with holdfast.connect() as client:
    for _, piece in client.session(session).output(from_=first):
        read += piece
        if len(read) >= count:
            break
sys.stdout.buffer.write(read)
"#;

/// The same.
const BY_NODE: &str = r#"
const { connect } = await import(process.env.PROVED_MODULE);
const [session, first, count] = [process.argv[1], Number(process.argv[2]), Number(process.argv[3])];
const client = await connect();
const read = [];
let length = 0;
for await (const chunk of (await client.session(session)).output({ from: first, follow: true })) {
  read.push(chunk.bytes);
  length += chunk.bytes.length;
  if (length >= count) break;
}
process.stdout.write(Buffer.concat(read));
client.close();
"#;

/// A language and how its script is run.
pub struct Sdk {
    /// What the report calls it.
    pub name: &'static str,
    program: PathBuf,
    words: Vec<String>,
    module: String,
}

/// Those that are there, and why the others are not.
pub fn all() -> [Result<Sdk, (&'static str, String)>; 2] {
    [python().map_err(|why| ("the Python SDK", why)), node().map_err(|why| ("the TypeScript SDK", why))]
}

fn python() -> Result<Sdk, String> {
    let program = std::env::var_os(PYTHON).map(PathBuf::from).or_else(|| on_path("python3")).ok_or("no python3")?;
    if !works(Command::new(&program).args(["-c", "import holdfast; holdfast.connect"])) {
        return Err(format!("{} does not have it; {PYTHON}=PROGRAM names one that does", program.display()));
    }
    let words = vec!["-c".into(), BY_PYTHON.into()];
    Ok(Sdk { name: "the Python SDK", program, words, module: String::new() })
}

fn node() -> Result<Sdk, String> {
    let program = on_path("node").ok_or("no node")?;
    let module = match std::env::var_os(PACKAGE) {
        Some(package) => PathBuf::from(package).join("dist/node.js").display().to_string(),
        None => "@holdfast/client/node".to_owned(),
    };
    let words: Vec<String> = ["--input-type=module", "-e"].map(Into::into).into();
    let look = "await import(process.env.PROVED_MODULE)";
    if !works(Command::new(&program).args(&words).arg(look).env("PROVED_MODULE", &module)) {
        return Err(format!("node does not find it from here; {PACKAGE}=DIRECTORY names its package"));
    }
    Ok(Sdk { name: "the TypeScript SDK", program, words: [words, vec![BY_NODE.into()]].concat(), module })
}

fn works(command: &mut Command) -> bool {
    let ran = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

impl Sdk {
    /// Reads `count` bytes of a session's output from an offset on, as an agent of its own.
    pub fn read(&self, place: &Place, session: &str, from: u64, count: usize) -> Result<String, Stop> {
        let mut command = Command::new(&self.program);
        command.args(&self.words).arg(session).arg(from.to_string()).arg(count.to_string());
        // From the working directory, not the place's: there Node finds its packages.
        place.settle(&mut command).env("HOLDFAST_ACTOR", "agent:sdk").env("PROVED_MODULE", &self.module);
        let ran = crate::place::finish(&mut command, self.name)?;
        match ran.status {
            0 => Ok(ran.out),
            status => Err(broken(self.name, format!("it exited with {status}: {}", ran.err.trim()))),
        }
    }
}
