//! What the program is made of, as CycloneDX: crates by cargo's resolution for the target, and the npm packages of the page in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::archive::{moment, sha256};
use crate::step::cargo;

/// The document for one target.
pub fn document(root: &Path, triple: &str, version: &str, time: u64) -> Result<String> {
    let mut asked = cargo(root);
    asked.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", triple]);
    let output = asked.output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"));
    let page: Value = serde_json::from_str(&read("web/package-lock.json")?).context("web/package-lock.json")?;
    Ok(format!("{:#}\n", compose(&metadata, &checksums(&read("Cargo.lock")?), &page, version, time)?))
}

/// Checksums of crates, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")))?;
        Some(line.trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?)))
        .collect()
}

fn compose(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    page: &Value,
    version: &str,
    time: u64,
) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node["id"]), node)).collect();
    // What only tests use is not in the program.
    let below = |id: &str| -> Vec<String> {
        let deps = list(&nodes[id]["deps"]);
        let used = |dep: &Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        deps.iter().filter(|dep| used(dep)).map(|dep| text(&dep["pkg"])).collect()
    };
    let top = packages.iter().find(|(_, package)| package["name"] == "holdfast").map(|(id, _)| id.clone());
    let top = top.context("the workspace has no package holdfast")?;
    let (mut seen, mut left) = (BTreeSet::from([top.clone()]), vec![top.clone()]);
    while let Some(id) = left.pop() {
        left.extend(below(&id).into_iter().filter(|dep| seen.insert(dep.clone())));
    }
    let purl = |id: &str| format!("pkg:cargo/{}@{}", text(&packages[id]["name"]), text(&packages[id]["version"]));
    let mut components = vec![];
    let mut dependencies = vec![];
    for id in &seen {
        let package = &packages[id];
        let mut on: Vec<String> = below(id).iter().map(|dep| purl(dep)).collect();
        on.sort();
        dependencies.push(json!({ "ref": purl(id), "dependsOn": on }));
        if *id == top {
            continue;
        }
        let mut component = json!({ "type": "library", "bom-ref": purl(id), "name": package["name"], "version": package["version"], "purl": purl(id) });
        if let Some(license) = package["license"].as_str() {
            component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        if let Some(sum) = checksums.get(&(text(&package["name"]), text(&package["version"]))) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        components.push(component);
    }
    for (path, package) in page["packages"].as_object().into_iter().flatten() {
        let Some((_, name)) = path.rsplit_once("node_modules/") else { continue };
        // Tools that build the page are not in it.
        if package["dev"] == true || package["optional"] == true {
            continue;
        }
        let purl = format!("pkg:npm/{}@{}", name.replace('@', "%40"), text(&package["version"]));
        let mut component =
            json!({ "type": "library", "bom-ref": purl, "name": name, "version": package["version"], "purl": purl });
        if let Some(license) = package["license"].as_str() {
            component["licenses"] = json!([{ "expression": license }]);
        }
        components.push(component);
    }
    components.sort_by_key(|component| text(&component["bom-ref"]));
    components.dedup_by_key(|component| text(&component["bom-ref"]));
    dependencies.sort_by_key(|dependency| text(&dependency["ref"]));
    let hash = sha256(json!([components, version]).to_string().as_bytes());
    let serial =
        format!("urn:uuid:{}-{}-5{}-8{}-{}", &hash[..8], &hash[8..12], &hash[13..16], &hash[17..20], &hash[20..32]);
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial,
        "version": 1,
        "metadata": {
            "timestamp": moment(time),
            "component": { "type": "application", "bom-ref": purl(&top), "name": "holdfast", "version": version, "purl": purl(&top),
                "licenses": [{ "expression": "Apache-2.0 OR MIT" }] },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_lists_what_is_in_the_program_and_nothing_of_its_tests() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let dep = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let packages = ["holdfast", "used", "below", "tested"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                { "id": "holdfast", "deps": [dep("used", Value::Null), dep("tested", json!("dev"))] },
                { "id": "used", "deps": [dep("below", Value::Null)] },
                { "id": "below", "deps": [] }, { "id": "tested", "deps": [] },
            ] },
        });
        let page = json!({ "packages": {
            "": {}, "node_modules/@a/b": { "version": "2.0.0", "license": "MIT" }, "node_modules/vite": { "version": "3.0.0", "dev": true },
        } });
        let sums = checksums("[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n");
        let made = compose(&metadata, &sums, &page, "1.0.0", 0).unwrap();
        let names: Vec<&str> =
            made["components"].as_array().unwrap().iter().map(|c| c["purl"].as_str().unwrap()).collect();
        assert_eq!(names, ["pkg:cargo/below@1.0.0", "pkg:cargo/used@1.0.0", "pkg:npm/%40a/b@2.0.0"]);
        assert_eq!(made["components"][1]["hashes"][0]["content"], "abc");
        assert_eq!(made["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(made["dependencies"][1]["dependsOn"], json!(["pkg:cargo/used@1.0.0"]));
        assert_eq!(made, compose(&metadata, &sums, &page, "1.0.0", 0).unwrap());
    }
}
