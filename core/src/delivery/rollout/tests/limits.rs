//! How much somebody can make a look do.

use super::*;

/// Somebody else's finalizer keeps the Rollout. There is nothing of ours to take away, and no reason to look again.
#[test]
fn a_refused_spec_that_is_deleted_loses_our_finalizer_alone() {
    for ours in [true, false] {
        let mut play = pair(&json!({}));
        play.cluster.respecify(|it| {
            let all = it.metadata.finalizers.get_or_insert_default();
            all.push("example.com/other".to_owned());
            it.spec.rollout_plan.num_batches = Some(31);
        });
        if ours {
            play.cluster.finalize(true);
        }
        play.cluster.delete(play.now);
        play.run();
        let expected: &[&str] = if ours { &["Finalize false"] } else { &[] };
        assert_eq!(play.log, expected);
        rests(&mut play);
        let object = play.cluster.rollout.unwrap();
        assert_eq!(object.metadata.finalizers.unwrap(), ["example.com/other"]);
    }
}
