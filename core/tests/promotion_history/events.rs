//! What may happen, step by step. A history is a list of these, which is printed as it is.

use proptest::prelude::*;

/// One of the two leaders. Both do everything, over caches of their own.
pub(super) type Leader = usize;
/// One of the environments, by its place.
pub(super) type Place = usize;
/// One of as many as there are.
pub(super) type Pick = usize;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A leader does all its work so often, while this goes wrong with each look at the strategy.
    Work(Leader, u8, Fault),
    /// The same three times, while everything is found to be well and nothing goes wrong.
    Flow(Leader),
    /// It looks at the strategy.
    Look(Leader, Fault),
    /// It looks at a PullRequest.
    LookAt(Leader, Pick, Fault),
    /// What it has begun at the forge for a PullRequest ends.
    Act(Leader, Pick, Reply),
    /// Watches bring what is new, of the strategy, of everything else, or of both.
    Hear(Leader, News),
    /// It lists the branches.
    List(Leader),
    /// The forge answers its questions.
    Learn(Leader),
    /// It is killed, and starts again with an empty memory.
    Crash(Leader),
    /// A merge arrives that the forge was asked for before, if its head is still the same.
    Late,
    /// Somebody commits to the dry branch, and hydrators make something of it for all environments.
    Commit,
    /// People repair what they have broken, and open the gates.
    Repair,
    /// Somebody forces the dry branch back by so many commits, and commits something else.
    Rewind(u8),
    /// A hydrator works for an environment.
    Hydrate(Place, Made),
    /// A person does something to an environment, or to its pull request.
    Person(Place, Deed),
    /// Something is found out about what an environment has, or what is proposed for it.
    Check(Place, Of, Finding),
    /// The gate of an environment opens or closes.
    Gate(Place, Stands),
    /// The same of the gate that what it has needs to pass before others get it.
    ActiveGate(Place, Stands),
    /// The forge answers no question from now on, or answers again.
    Forge(bool),
    /// Somebody suspends the strategy, or resumes it.
    Suspend(bool),
    /// Somebody brings an environment back to the n-th of its healthy commits. Or a person has to merge that.
    Revert(Place, Pick, bool),
    /// Somebody deletes a RevertCommit.
    Unrevert(Pick),
    /// Somebody says that the newest dry commit fixes what was taken back.
    Fix(Pick),
    /// The status of the strategy is lost.
    Wipe,
    /// So many seconds pass.
    Pass(u8),
}

/// What goes wrong with a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    No,
    /// The API server refuses the status, as if somebody else had written.
    Conflict,
    /// It accepts the status, and its answer is lost.
    Lost,
    /// It accepts the status, and the process is killed after so many acts.
    Killed(u8),
    /// Nothing does, but merges begin a minute late.
    Slow,
}

/// How something that was begun at the forge ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Right,
    Refused,
    /// It is done, and the answer is lost.
    Lost,
    /// There is no answer, and a merge comes about later.
    Late,
}

/// What watches bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    All,
    Strategy,
    Others,
}

/// What a hydrator makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// A commit of the newest dry commit.
    New,
    /// A commit of the dry commit before that.
    Older,
    /// Another commit with the same files.
    Again,
    /// The branch is started again, from what the environment has.
    Fresh,
    /// A note: nothing has changed.
    Nothing,
    /// A commit of something that is not on the dry branch.
    Forged,
    /// A commit that says nothing of itself.
    Bare,
    /// What the environment has: nothing is proposed any more.
    Undone,
}

/// What a person does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Merge,
    Close,
    Label(bool),
    Draft(bool),
    /// Pushes something to the branch that says it was made of the newest dry commit, or says nothing.
    Push(bool),
    /// Forces the branch back by one commit.
    Force,
    /// Accepts what the branch has.
    Accept,
}

/// How a gate stands from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    Closed,
    Open,
    /// It closes after so many seconds.
    OpenFor(u8),
}

/// What something is found out about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Active,
    Proposed,
    Both,
}

/// What is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Success,
    /// It counts for half a minute.
    Short,
    Failure,
    Pending,
    /// A second one says that it is a success. Of Flux: it is ready with what there was before.
    Impostor,
    /// Nothing is known any more.
    Gone,
}

/// Anything that may happen. What keeps things going comes more often.
pub(super) fn any_event() -> impl Strategy<Value = Event> {
    let place = || 0..3_usize;
    let pick = || 0..16_usize;
    let leader = || prop_oneof![3 => Just(0_usize), 1 => Just(1)];
    prop_oneof![
        4 => (leader(), 1..4_u8, refusal())
            .prop_map(|(leader, often, fault)| Event::Work(leader, often, fault)),
        9 => leader().prop_map(Event::Flow),
        6 => (leader(), fault()).prop_map(|(leader, fault)| Event::Look(leader, fault)),
        6 => (leader(), pick(), fault()).prop_map(|(leader, of, fault)| Event::LookAt(leader, of, fault)),
        6 => (leader(), pick(), reply()).prop_map(|(leader, of, reply)| Event::Act(leader, of, reply)),
        3 => (leader(), news()).prop_map(|(leader, news)| Event::Hear(leader, news)),
        2 => leader().prop_map(Event::List),
        2 => leader().prop_map(Event::Learn),
        1 => leader().prop_map(Event::Crash),
        1 => Just(Event::Late),
        8 => Just(Event::Commit),
        6 => Just(Event::Repair),
        1 => (1..3_u8).prop_map(Event::Rewind),
        5 => (place(), made()).prop_map(|(place, made)| Event::Hydrate(place, made)),
        3 => (place(), deed()).prop_map(|(place, deed)| Event::Person(place, deed)),
        5 => (place(), of(), finding()).prop_map(|(place, of, found)| Event::Check(place, of, found)),
        2 => (place(), stands()).prop_map(|(place, stands)| Event::Gate(place, stands)),
        2 => (place(), stands()).prop_map(|(place, stands)| Event::ActiveGate(place, stands)),
        1 => prop::bool::weighted(0.7).prop_map(Event::Forge),
        1 => prop::bool::weighted(0.3).prop_map(Event::Suspend),
        5 => (place(), 1..4_usize, prop::bool::weighted(0.2))
            .prop_map(|(place, to, manual)| Event::Revert(place, to, manual)),
        1 => pick().prop_map(Event::Unrevert),
        1 => pick().prop_map(Event::Fix),
        1 => Just(Event::Wipe),
        3 => any::<u8>().prop_map(Event::Pass),
    ]
}

fn stands() -> impl Strategy<Value = Stands> {
    prop_oneof![
        2 => Just(Stands::Closed),
        2 => Just(Stands::Open),
        2 => (1..120_u8).prop_map(Stands::OpenFor),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        6 => Just(Fault::No),
        1 => Just(Fault::Conflict),
        1 => Just(Fault::Lost),
        1 => (0..3_u8).prop_map(Fault::Killed),
    ]
}

fn refusal() -> impl Strategy<Value = Fault> {
    prop_oneof![
        6 => Just(Fault::No),
        1 => Just(Fault::Conflict),
        1 => Just(Fault::Lost),
        1 => Just(Fault::Slow),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        5 => Just(Reply::Right),
        1 => Just(Reply::Refused),
        1 => Just(Reply::Lost),
        1 => Just(Reply::Late),
    ]
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![3 => Just(News::All), 1 => Just(News::Strategy), 1 => Just(News::Others)]
}

fn made() -> impl Strategy<Value = Made> {
    prop_oneof![
        3 => Just(Made::New),
        1 => Just(Made::Older),
        1 => Just(Made::Again),
        1 => Just(Made::Fresh),
        2 => Just(Made::Nothing),
        1 => Just(Made::Forged),
        1 => Just(Made::Bare),
        1 => Just(Made::Undone),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => Just(Deed::Merge),
        1 => Just(Deed::Close),
        1 => any::<bool>().prop_map(Deed::Label),
        1 => any::<bool>().prop_map(Deed::Draft),
        1 => any::<bool>().prop_map(Deed::Push),
        1 => Just(Deed::Force),
        2 => Just(Deed::Accept),
    ]
}

fn of() -> impl Strategy<Value = Of> {
    prop_oneof![1 => Just(Of::Active), 1 => Just(Of::Proposed), 2 => Just(Of::Both)]
}

fn finding() -> impl Strategy<Value = Finding> {
    prop_oneof![
        7 => Just(Finding::Success),
        2 => Just(Finding::Short),
        1 => Just(Finding::Failure),
        1 => Just(Finding::Pending),
        1 => Just(Finding::Impostor),
        1 => Just(Finding::Gone),
    ]
}
