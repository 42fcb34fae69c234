//! Two programs of different versions that speak to each other: which is older, and how to update it.

/// A version of this program: `holdfast 1.2.3`, as hosts and clients call themselves.
fn version(program: &str) -> Option<[u64; 3]> {
    let text = program.strip_prefix("holdfast ")?;
    // What stands behind a hyphen or a plus says nothing of age that could be compared.
    let numbers = text.split(['-', '+']).next()?.split('.').map(|number| number.parse().ok());
    numbers.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

/// What a person should know where a host elsewhere is of another version. What does not call itself as we do is not compared.
pub fn difference(host: &str, ours: &str, theirs: &str) -> Option<String> {
    let (our, their) = (version(ours)?, version(theirs)?);
    if their < our {
        return Some(format!(
            "{host} runs {theirs}, older than {ours} here; install it there, then run on {host}: holdfast host restart (sessions keep running)"
        ));
    }
    (their > our).then(|| format!("{host} runs {theirs}, newer than {ours} here; install it on this machine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_of_two_versions_is_told_with_what_to_do() {
        let told = |theirs| difference("gpu", "holdfast 1.10.0", theirs).unwrap_or_default();
        assert!(
            told("holdfast 1.9.9")
                .starts_with("gpu runs holdfast 1.9.9, older than holdfast 1.10.0 here; install it there")
        );
        assert!(told("holdfast 2.0.0").ends_with("newer than holdfast 1.10.0 here; install it on this machine"));
        for same in
            ["holdfast 1.10.0", "holdfast 1.10.0-dev", "other 1.0.0", "holdfast", "holdfast 1.x.0", "holdfast 1.0"]
        {
            assert_eq!(told(same), "", "{same}");
        }
    }
}
