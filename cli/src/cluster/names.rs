//! How objects are named on the command line.

use anyhow::{Result, bail};

/// The name of a gate, also as `gate/NAME` or as `get -o name` prints it.
pub(crate) fn gate_name(text: &str) -> Result<String> {
    let (kind, name) = text.split_once('/').unwrap_or(("gate", text));
    match kind {
        "gate" | "gates" | "gt" | "gate.sluice.dev" | "gates.sluice.dev" if !name.is_empty() => {
            Ok(name.to_owned())
        }
        _ => bail!("`{text}` names no gate; write its name, and its namespace as -n NAMESPACE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_named_as_kubectl_names_objects() {
        for text in [
            "production",
            "gate/production",
            "gate.sluice.dev/production",
        ] {
            assert_eq!(gate_name(text).unwrap(), "production");
        }
        for text in ["", "gate/", "flux-system/production", "gatekeeper/a"] {
            assert!(gate_name(text).is_err(), "{text}");
        }
    }
}
