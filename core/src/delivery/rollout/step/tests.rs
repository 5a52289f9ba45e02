//! 1–156: every cell of the state machine, from a table that is written out.

use proptest::prelude::*;

use super::*;

/// A row for each state, a column for each signal. `.`: not looked at; `=`: nothing; `W`: it waits; `H`: it is
/// held; `>X`: it goes to X; `!` behind it: that is told; `>N`: the next batch; `>Fa+`: the batch has failed;
/// `>Fd-`: and the Rollout may go; `-`: the Rollout may go. Where a cell has a `|`, a fact decides: without it
/// what stands before, with it what stands behind.
#[rustfmt::skip] // A state is a line.
const TABLE: [(&str, &str); 13] = [
    //     stale deleted modified gone contested refused paused closed blind waiting overdue done
    ("V",  "H    >De     >V       W    H         >Fd     H      H      .     W       >Fd     >I|>Fi"),
    ("I",  "H    >De     >Ab      >Fa  H         >Fa     H      H      .     W       >Fa     >Bi"),
    ("Bi", "H    >De     >Ab      >Fa  H         >Fa+    H      H      .     W       >Fa+    >Br|>By"),
    ("Br", "H    >De     >Ab      >Fa  H         .       H      .      .     W       >Fa+    >Bv"),
    ("Bv", "H    >De     >Ab      >Fa  H         .       H      .      H     W       >Fa+    >Bf"),
    ("Bf", "H    >De     >Ab      >Fa  H         >Fa+    H      .      .     W       >Fa+    >By"),
    ("By", "H    >De     >Ab      >Fa  H         .       H      H|.    .     .       .       >N|>Fi"),
    ("Fi", "H    .       .        >Fa  .|>Su!    >Su!    .      .      .     W       >Su!    >Su"),
    ("Fa", "H    >De     .        .    .|H       .       .      .      .     W       >Fd!    >Fd"),
    ("Ab", "H    >De     .        .    .|H       .       .      .      .     W       >V!     >V"),
    ("De", "H    .       .        .    >Fd-!     .       .      .      .     W       >Fd-!   >Fd-"),
    ("Su", "=    -       >V       =    =         =       =      =      =     =       =       ="),
    ("Fd", "=    -|>De   >V       =    =         =       =      =      =     =       =       ="),
];

fn short(state: State) -> &'static str {
    let place = State::ALL.iter().position(|it| *it == state).unwrap();
    TABLE[place].0
}

/// A cell as the table writes it.
fn written(cell: Option<Step>) -> String {
    match cell {
        None => ".".to_owned(),
        Some(Step::Rest) => "=".to_owned(),
        Some(Step::Wait) => "W".to_owned(),
        Some(Step::Hold) => "H".to_owned(),
        Some(Step::Go(state)) => format!(">{}", short(state)),
        Some(Step::GoTold(state)) => format!(">{}!", short(state)),
        Some(Step::NextBatch) => ">N".to_owned(),
        Some(Step::FailBatch) => ">Fa+".to_owned(),
        Some(Step::End) => ">Fd-".to_owned(),
        Some(Step::EndTold) => ">Fd-!".to_owned(),
        Some(Step::LetGo) => "-".to_owned(),
    }
}

/// What a cell says without any fact, and with all of them.
fn both(cell: &str) -> (&str, &str) {
    cell.split_once('|').unwrap_or((cell, cell))
}

const NONE: Facts = Facts {
    nothing_to_roll: false,
    goal_met: false,
    is_last: false,
    write_due: false,
    revert_due: false,
};

const EVERY: Facts = Facts {
    nothing_to_roll: true,
    goal_met: true,
    is_last: true,
    write_due: true,
    revert_due: true,
};

/// Every cell of the table, with its state and its signal.
fn cells() -> Vec<(State, Signal, &'static str)> {
    let rows = State::ALL.into_iter().zip(TABLE);
    rows.flat_map(|(state, (_, row))| {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells.len(), Signal::ALL.len(), "{row}");
        let columns = Signal::ALL.into_iter().zip(cells);
        columns.map(move |(signal, cell)| (state, signal, cell))
    })
    .collect()
}

#[test]
fn every_cell_is_as_the_table_has_it() {
    assert_eq!(cells().len(), 156);
    for (state, signal, expected) in cells() {
        let (without, with) = both(expected);
        let found = |facts| written(cell(state, signal, facts));
        assert_eq!(found(NONE), without, "{state:?} {signal:?}");
        assert_eq!(found(EVERY), with, "{state:?} {signal:?} with all facts");
    }
}

/// Each fact decides in its own cells, and nowhere else.
#[test]
fn each_fact_decides_in_its_own_cells() {
    let facts = [
        (
            Facts {
                nothing_to_roll: true,
                ..NONE
            },
            "V done",
        ),
        (
            Facts {
                goal_met: true,
                ..NONE
            },
            "Bi done",
        ),
        (
            Facts {
                is_last: true,
                ..NONE
            },
            "By closed, By done",
        ),
        (
            Facts {
                write_due: true,
                ..NONE
            },
            "Fi contested, Fa contested, Ab contested",
        ),
        (
            Facts {
                revert_due: true,
                ..NONE
            },
            "Fd deleted",
        ),
    ];
    for (facts, expected) in facts {
        let differ = |(state, signal, _): &(State, Signal, _)| {
            cell(*state, *signal, facts) != cell(*state, *signal, NONE)
        };
        let cells = cells().into_iter().filter(differ);
        let names = cells.map(|(state, signal, _)| {
            format!("{} {}", short(state), format!("{signal:?}").to_lowercase())
        });
        assert_eq!(names.collect::<Vec<_>>().join(", "), expected, "{facts:?}");
    }
}

#[test]
fn one_signal_alone_takes_its_own_cell() {
    for (state, signal, expected) in cells() {
        let found = step(state, Signals::from_iter([signal]), NONE);
        let (without, _) = both(expected);
        let expected = match (signal, without) {
            // It counts only where there is something to wait for.
            (Signal::Overdue, _) | (_, ".") => written(Some(done(state, NONE))),
            (_, cell) => cell.to_owned(),
        };
        assert_eq!(written(Some(found)), expected, "{state:?} {signal:?}");
    }
}

#[test]
fn what_waits_too_long_takes_the_cell_of_the_deadline() {
    for state in State::ALL {
        let waiting = Signals::from_iter([Signal::Waiting, Signal::Overdue]);
        let expected = match cell(state, Signal::Waiting, NONE) {
            Some(Step::Wait) => cell(state, Signal::Overdue, NONE).unwrap(),
            Some(step) => step,
            None => done(state, NONE),
        };
        assert_eq!(step(state, waiting, NONE), expected, "{state:?}");
    }
    // An object that has not come is waited for like everything else.
    let gone = Signals::from_iter([Signal::Gone, Signal::Overdue]);
    let expected = Step::Go(State::Failed);
    assert_eq!(step(State::VerifyingSpec, gone, NONE), expected);
}

#[test]
fn a_hold_comes_before_the_deadline() {
    for held in [Signal::Paused, Signal::Contested, Signal::Stale] {
        let signals = Signals::from_iter([held, Signal::Waiting, Signal::Overdue]);
        assert_eq!(
            step(State::BatchVerifying, signals, NONE),
            Step::Hold,
            "{held:?}"
        );
    }
}

fn signals() -> impl Strategy<Value = Signals> {
    prop::collection::vec(prop::sample::select(Signal::ALL.to_vec()), 0..6)
        .prop_map(Signals::from_iter)
}

fn facts() -> impl Strategy<Value = Facts> {
    any::<[bool; 5]>().prop_map(|[a, b, c, d, e]| Facts {
        nothing_to_roll: a,
        goal_met: b,
        is_last: c,
        write_due: d,
        revert_due: e,
    })
}

proptest! {
    /// The first signal that is looked at decides, whatever holds behind it.
    #[test]
    fn the_first_signal_decides(
        state in prop::sample::select(State::ALL.to_vec()),
        signals in signals(),
        facts in facts(),
    ) {
        let looked_at = |signal: &Signal| {
            !matches!(signal, Signal::Overdue | Signal::Done)
                && signals.has(*signal)
                && cell(state, *signal, facts).is_some()
        };
        let first = Signal::ALL.into_iter().find(looked_at);
        let alone = first.into_iter().chain(signals.has(Signal::Overdue).then_some(Signal::Overdue));
        let alone = Signals::from_iter(alone);
        prop_assert_eq!(step(state, signals, facts), step(state, alone, facts));
    }

    /// No batch begins while anything holds it back.
    #[test]
    fn nothing_begins_that_is_held_back(signals in signals(), facts in facts()) {
        let held = [
            Signal::Stale, Signal::Deleted, Signal::Modified, Signal::Gone, Signal::Contested,
            Signal::Refused, Signal::Paused, Signal::Closed, Signal::Waiting,
        ];
        let begins = [Step::Go(State::BatchInRolling), Step::Go(State::BatchReady)];
        if begins.contains(&step(State::BatchInitializing, signals, facts)) {
            prop_assert!(!held.iter().any(|signal| signals.has(*signal)));
        }
    }

    /// A Rollout that is deleted ends from every state, unless something is stale or waited for.
    #[test]
    fn what_is_deleted_comes_to_its_end(
        state in prop::sample::select(State::ALL.to_vec()),
        signals in signals(),
        facts in facts(),
    ) {
        prop_assume!(!signals.has(Signal::Stale) && !signals.has(Signal::Waiting));
        let signals = signals.with(Signal::Deleted, true);
        let mut state = state;
        for _ in 0..4 {
            match step(state, signals, facts) {
                Step::End | Step::EndTold | Step::LetGo => return Ok(()),
                Step::Go(next) | Step::GoTold(next) => state = next,
                other => prop_assert!(false, "{:?} {:?}", state, other),
            }
        }
        prop_assert!(false, "{:?}", state);
    }
}
