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

/// The name of a gated source, as `gatedsource/NAME` or as `get -o name` prints it. None: the text
/// names something else.
pub(crate) fn source_name(text: &str) -> Option<String> {
    let (kind, name) = text.split_once('/')?;
    let kinds = [
        "gatedsource",
        "gatedsources",
        "gs",
        "gatedsource.sluice.dev",
        "gatedsources.sluice.dev",
    ];
    let known = kinds.iter().any(|known| known.eq_ignore_ascii_case(kind));
    (known && !name.is_empty() && !name.contains('/')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        for text in [
            "production",
            "gate/production",
            "gate.sluice.dev/production",
        ] {
            assert_eq!(gate_name(text).unwrap(), "production");
        }
        for text in ["gatedsource/app", "gs/app", "GatedSource/app"] {
            assert_eq!(source_name(text).unwrap(), "app");
        }
        for text in ["app", "gs/", "gate/app", "gs/apps/app"] {
            assert_eq!(source_name(text), None, "{text}");
        }
        for text in ["", "gate/", "flux-system/production", "gatekeeper/a"] {
            assert!(gate_name(text).is_err(), "{text}");
        }
    }
}
