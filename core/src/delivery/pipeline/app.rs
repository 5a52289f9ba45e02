//! The kind of the app, as a spec names it.

use sluice_crds::pipeline::AppReference;

/// The kinds whose group a spec may leave out, with their groups.
const KNOWN: [(&str, &str); 3] = [
    ("Kustomization", "kustomize.toolkit.fluxcd.io"),
    ("HelmRelease", "helm.toolkit.fluxcd.io"),
    ("Terraform", "infra.contrib.fluxcd.io"),
];

/// The group and the kind of the app. The version is that which its cluster serves. None: the spec has to
/// say which group it means.
pub fn kind_of(app: &AppReference) -> Option<(&str, &str)> {
    let group = match &app.api_version {
        Some(version) => version.split_once('/').map_or("", |(group, _)| group),
        None => KNOWN.iter().find(|(kind, _)| *kind == app.kind)?.1,
    };
    Some((group, &app.kind))
}

/// Whether the app is of a kind of Flux, of which a pipeline shows nothing but how a deployment stands.
pub(super) fn is_of_flux(app: &AppReference) -> bool {
    let is_known = |(group, kind): (&str, &str)| {
        let known = KNOWN.iter();
        known.copied().any(|known| known == (kind, group))
    };
    kind_of(app).is_some_and(is_known)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, "HelmRelease", Some("helm.toolkit.fluxcd.io"))]
    #[case(None, "Terraform", Some("infra.contrib.fluxcd.io"))]
    #[case(
        Some("helm.toolkit.fluxcd.io/v2beta1"),
        "HelmRelease",
        Some("helm.toolkit.fluxcd.io")
    )]
    #[case(Some("v1"), "ConfigMap", Some(""))]
    #[case(None, "Deployment", None)]
    fn a_kind_has_the_group_that_is_written_or_known(
        #[case] version: Option<&str>,
        #[case] kind: &str,
        #[case] group: Option<&str>,
    ) {
        let app = AppReference {
            api_version: version.map(str::to_owned),
            kind: kind.to_owned(),
            name: "app".to_owned(),
            revision_expression: None,
        };
        assert_eq!(kind_of(&app), group.map(|group| (group, kind)));
    }
}
