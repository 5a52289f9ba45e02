//! How many other clusters are seen: what one tenant names must not take what the others need.
//!
//! What comes in: what is wanted, by cluster, and which clusters are seen already. What goes out: what is left of
//! it, and what is refused. It uses [`bounds`](crate::bounds), [`sight`](crate::sight) and
//! [`wanted`](crate::wanted).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::bounds::{CLUSTERS, CLUSTERS_OF_NAMESPACE};
use crate::sight::Unknown;
use crate::wanted::{Cluster, Wanted};

/// What is wanted of each cluster.
pub(crate) type ByCluster<'w> = BTreeMap<&'w Cluster, BTreeSet<&'w Wanted>>;

/// The clusters that are not seen for some namespaces.
#[derive(Default)]
pub(crate) struct Refused(HashMap<Cluster, HashMap<String, Unknown>>);

impl Refused {
    /// Takes out of what is wanted what is too much. The clusters of a namespace count in the order of their
    /// names; of all of them those that are seen already come first.
    pub(crate) fn take(by_cluster: &mut ByCluster<'_>, is_seen: impl Fn(&Cluster) -> bool) -> Self {
        let mut refused = Self::default();
        let mut of_namespace: HashMap<&str, usize> = HashMap::new();
        let is_other = |cluster: &Cluster| *cluster != Cluster::Own;
        let seen = by_cluster.keys().filter(|it| is_other(it) && is_seen(it));
        let mut all = seen.count();
        for (cluster, wants) in by_cluster.iter_mut().filter(|(it, _)| is_other(it)) {
            let namespaces: BTreeSet<&str> = wants.iter().map(|it| it.from.as_str()).collect();
            for from in namespaces {
                let count = of_namespace.entry(from).or_default();
                *count += 1;
                if *count > CLUSTERS_OF_NAMESPACE {
                    let whose = format!("the objects of namespace {from}");
                    refused.add(cluster, from, whose, CLUSTERS_OF_NAMESPACE);
                    wants.retain(|it| it.from != from);
                }
            }
            if wants.is_empty() || is_seen(cluster) {
                continue;
            }
            all += 1;
            if all > CLUSTERS {
                for it in std::mem::take(wants) {
                    refused.add(
                        cluster,
                        &it.from,
                        "all objects together".to_owned(),
                        CLUSTERS,
                    );
                }
            }
        }
        by_cluster.retain(|_, wants| !wants.is_empty());
        refused
    }

    fn add(&mut self, cluster: &Cluster, from: &str, whose: String, most: usize) {
        let why = Unknown::TooManyClusters { whose, most };
        let of_cluster = self.0.entry(cluster.clone()).or_default();
        of_cluster.insert(from.to_owned(), why);
    }

    /// Why a cluster is not seen for a namespace. None: it is not too much.
    pub(crate) fn why(&self, cluster: &Cluster, from: &str) -> Option<&Unknown> {
        self.0.get(cluster)?.get(from)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::wanted::{Kind, Part, SecretKey};

    fn wanted(from: &str, name: usize) -> Wanted {
        let secret = SecretKey {
            namespace: from.to_owned(),
            name: format!("{name:03}"),
        };
        Wanted {
            from: from.to_owned(),
            cluster: Cluster::Remote(Arc::new(secret)),
            kind: Kind {
                group: "helm.toolkit.fluxcd.io".to_owned(),
                kind: "HelmRelease".to_owned(),
            },
            namespace: "apps".to_owned(),
            part: Part::State,
        }
    }

    fn by_cluster(all: &[Wanted]) -> ByCluster<'_> {
        let mut by_cluster = ByCluster::new();
        for one in all {
            by_cluster.entry(&one.cluster).or_default().insert(one);
        }
        by_cluster
    }

    #[test]
    fn a_namespace_has_its_share_and_no_more() {
        let mut all: Vec<_> = (0..CLUSTERS_OF_NAMESPACE + 2)
            .map(|n| wanted("greedy", n))
            .collect();
        all.push(wanted("other", 0));
        let mut left = by_cluster(&all);
        let refused = Refused::take(&mut left, |_| false);
        assert_eq!(left.len(), CLUSTERS_OF_NAMESPACE + 1);
        let why = |place: usize| refused.why(&all[place].cluster, &all[place].from);
        assert_eq!(why(CLUSTERS_OF_NAMESPACE - 1), None);
        assert_eq!(
            why(CLUSTERS_OF_NAMESPACE + 1).unwrap().to_string(),
            "the objects of namespace greedy name more than 128 other clusters; name fewer of them"
        );
        assert_eq!(why(CLUSTERS_OF_NAMESPACE + 2), None);
    }

    #[test]
    fn of_all_together_those_that_are_seen_stay() {
        let mut all: Vec<_> = ["a", "b"]
            .into_iter()
            .flat_map(|from| (0..CLUSTERS_OF_NAMESPACE).map(move |n| wanted(from, n)))
            .collect();
        all.push(wanted("c", 0));
        let last = all.len() - 1;
        let mut left = by_cluster(&all);
        let refused = Refused::take(&mut left, |_| false);
        let words = refused.why(&all[last].cluster, "c").unwrap().to_string();
        assert!(words.contains("more than 256 other clusters"), "{words}");
        let mut left = by_cluster(&all);
        let refused = Refused::take(&mut left, |cluster| *cluster == all[last].cluster);
        assert_eq!(refused.why(&all[last].cluster, "c"), None);
        assert_eq!(left.len(), CLUSTERS);
    }
}
