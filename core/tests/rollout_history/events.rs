//! What may happen.

use proptest::prelude::*;

/// One step of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A leader reads everything, looks, and the controllers of workloads work: so often.
    Work(usize, u8),
    /// A leader looks, over whatever it knows.
    Look(usize, Fault),
    /// A leader reads everything.
    Read(usize),
    /// The controllers of workloads work.
    Tick(u8),
    /// A leader dies, and forgets what it has not written.
    Crash(usize),
    /// The gate opens or closes.
    Gate(bool),
    /// Somebody pauses the rollout, or lets it go on.
    Pause(bool),
    /// Another batch may go out.
    Raise,
    /// A metric says this.
    Metric(Value),
    /// Hooks answer this.
    Hook(u16),
    /// Pods of the new version do not come up, or do again.
    Break(bool),
    /// A pod fails, and comes again.
    Fail(usize),
    /// Somebody writes a size.
    Foreign(usize, u8),
    /// They bring it back.
    Repair,
    /// Somebody scales a workload, and asks to go on from there.
    Scale(usize, u8),
    /// Somebody deletes the target.
    Prune,
    /// Somebody deletes a source.
    PruneSource(usize),
    /// Somebody replaces it by another object of the same name, without pods of a pair.
    Replace,
    /// The status is lost.
    Wipe,
    /// Somebody asks to try again.
    Retry,
    /// Somebody asks for another revision.
    Another,
    /// Somebody deletes the Rollout.
    Delete,
    /// It is still in Git, and comes back as another object.
    Return,
    /// Time passes, in seconds.
    Pass(u16),
    /// The clock cannot be relied on, or can again.
    Doubt(bool),
}

/// What goes wrong in a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    No,
    /// The status is refused.
    Conflict,
    /// The status is accepted, and the leader does not hear of it.
    Lost,
    /// The leader is killed after so many acts.
    Killed(u8),
}

/// What a metric says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Good,
    Bad,
    Missing,
}

fn leader() -> impl Strategy<Value = usize> {
    0..2_usize
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::No),
        1 => Just(Fault::Conflict),
        1 => Just(Fault::Lost),
        2 => (0..3_u8).prop_map(Fault::Killed),
    ]
}

fn metric() -> impl Strategy<Value = Value> {
    prop_oneof![3 => Just(Value::Good), 1 => Just(Value::Bad), 1 => Just(Value::Missing)]
}

pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        16 => (leader(), 1..8_u8).prop_map(|(leader, often)| Event::Work(leader, often)),
        10 => (leader(), fault()).prop_map(|(leader, fault)| Event::Look(leader, fault)),
        4 => leader().prop_map(Event::Read),
        4 => (1..5_u8).prop_map(Event::Tick),
        2 => leader().prop_map(Event::Crash),
        4 => prop::bool::weighted(0.7).prop_map(Event::Gate),
        2 => prop::bool::weighted(0.4).prop_map(Event::Pause),
        2 => Just(Event::Raise),
        2 => metric().prop_map(Event::Metric),
        1 => prop_oneof![4 => Just(200_u16), 1 => Just(503), 1 => Just(403)].prop_map(Event::Hook),
        1 => prop::bool::weighted(0.4).prop_map(Event::Break),
        2 => (0..20_usize).prop_map(Event::Fail),
        3 => (0..3_usize, 0..14_u8).prop_map(|(place, size)| Event::Foreign(place, size)),
        2 => Just(Event::Repair),
        1 => (0..3_usize, 0..14_u8).prop_map(|(place, size)| Event::Scale(place, size)),
        1 => prop_oneof![
            2 => Just(Event::Prune),
            1 => Just(Event::Replace),
            1 => (0..3_usize).prop_map(Event::PruneSource),
        ],
        1 => Just(Event::Wipe),
        1 => Just(Event::Retry),
        1 => Just(Event::Another),
        1 => Just(Event::Delete),
        5 => Just(Event::Return),
        3 => (0..400_u16).prop_map(Event::Pass),
        2 => prop::bool::weighted(0.4).prop_map(Event::Doubt),
    ]
}
