//! What evaluating an expression may cost.
//!
//! What comes in: calls that [`super::read`] wrapped around parts of an expression. What goes out:
//! their values, unchanged, for as long as the allowance lasts; then errors. An expression may
//! swallow an error (`a || b`), so [`Meter::is_spent`] is asked at the end.
//!
//! A unit is about a nanosecond of an optimized build. What is charged is what the crate does at
//! worst, copying both sides of an operator into an error among it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::types::{CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelString};
use cel::common::value::{CowVal, Val};
use cel::{Context, DeclarationError, ExecutionError, FunctionContext};

/// The units of one evaluation.
const ALLOWANCE: u64 = 200_000_000;
/// A value that is copied or compared.
const VALUE: u64 = 100;
/// An entry of a map, without its value.
const ENTRY: u64 = 150;
/// So many bytes of text cost one unit.
const BYTES: u64 = 2;
/// What is kept costs so many times as much as what is copied for a moment: the allowance is one
/// of memory too, of some 20 MiB.
const KEPT: u64 = 8;

/// Pays for comparing its argument or copying it for a moment, and gives it back.
pub(super) const PAY: &str = "@pay";
/// The same for what becomes a part of a list, a map or a text: [`KEPT`] times as much.
pub(super) const KEEP: &str = "@keep";
/// The same as [`PAY`] for what stands between `[` and `]`.
pub(super) const PLACE: &str = "@place";
/// The operator `in`.
pub(super) const AMONG: &str = "@among";
/// Pays for a macro: what one turn costs, and the list, which it gives back. Of a map its keys, in
/// their order.
pub(super) const TURNS: &str = "@turns";

type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;
type Function =
    Box<dyn for<'b, 'v> Fn(&mut FunctionContext<'b, 'v>) -> Outcome<'b, 'v> + Send + Sync>;

/// The allowance of one evaluation. Clones share it.
#[derive(Clone)]
pub(super) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(super) fn full() -> Self {
        Self(Arc::new(AtomicU64::new(ALLOWANCE)))
    }

    /// Whether something could not be paid for.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Has `context` know the calls.
    pub(super) fn install(&self, context: &mut Context) -> Result<(), DeclarationError> {
        let meter = self.clone();
        context.add_function(PAY, function(move |call| meter.pay(call, 1)))?;
        let meter = self.clone();
        context.add_function(KEEP, function(move |call| meter.pay(call, KEPT)))?;
        let meter = self.clone();
        context.add_function(PLACE, function(move |call| meter.place(call)))?;
        let meter = self.clone();
        context.add_function(AMONG, function(move |call| meter.among(call)))?;
        let meter = self.clone();
        context.add_function(TURNS, function(move |call| meter.turns(call)))
    }

    fn pay<'b, 'v>(&self, call: &mut FunctionContext<'b, 'v>, times: u64) -> Outcome<'b, 'v> {
        let [value] = self.arguments(call)?;
        self.spend(weight(value.as_ref()).saturating_mul(times))?;
        Ok(value)
    }

    fn place<'b, 'v>(&self, call: &mut FunctionContext<'b, 'v>) -> Outcome<'b, 'v> {
        let [place] = self.arguments(call)?;
        self.spend(weight(place.as_ref()))?;
        // A broken number as a place of a list has the crate copy the list into its error.
        match place.downcast_ref::<CelDouble>() {
            Some(_) => Err(ExecutionError::no_such_overload(
                "[]",
                vec!["double".to_owned()],
            )),
            None => Ok(place),
        }
    }

    fn among<'b, 'v>(&self, call: &mut FunctionContext<'b, 'v>) -> Outcome<'b, 'v> {
        let [value, list] = self.arguments(call)?;
        // Each item of a list may have the crate copy the value into an error.
        let items = list
            .downcast_ref::<CelList>()
            .map_or(1, |list| list.inner().len());
        let each = weight(value.as_ref()).saturating_mul(items as u64);
        self.spend(each.saturating_add(weight(list.as_ref())))?;
        let wrong = || {
            let types = [&value, &list].map(|one| one.get_type().name().to_owned());
            ExecutionError::no_such_overload("in", types.to_vec())
        };
        let container = list.as_container().ok_or_else(wrong)?;
        let found = container.contains(value.as_ref()).map_err(|_| wrong())?;
        Ok(CowVal::owned(CelBool::from(found)))
    }

    fn turns<'b, 'v>(&self, call: &mut FunctionContext<'b, 'v>) -> Outcome<'b, 'v> {
        let [turn, list] = self.arguments(call)?;
        let turn = turn
            .downcast_ref::<CelInt>()
            .and_then(|turn| u64::try_from(*turn.inner()).ok())
            .unwrap_or(ALLOWANCE);
        let (turns, list) = match list.downcast_ref::<CelMap>() {
            Some(map) => {
                let mut keys: Vec<_> = map.inner().keys().collect();
                keys.sort_unstable();
                let keys = keys.into_iter().map(|key| key.inner().clone_as_boxed());
                let keys = CelList::from(keys.collect::<Vec<Box<dyn Val + 'v>>>());
                (keys.inner().len(), CowVal::owned(keys))
            }
            None => {
                let list_ = list.downcast_ref::<CelList>();
                (list_.map_or(0, |list| list.inner().len()), list)
            }
        };
        let turns = turn.saturating_mul(turns as u64);
        self.spend(turns.saturating_add(weight(list.as_ref())))?;
        Ok(list)
    }

    /// The arguments of a call. Once the allowance is spent, none is looked at any more.
    fn arguments<'b, 'v, const N: usize>(
        &self,
        call: &mut FunctionContext<'b, 'v>,
    ) -> Result<[CowVal<'b, 'v>; N], ExecutionError> {
        if self.is_spent() {
            return Err(spent());
        }
        let arguments = std::mem::take(&mut call.args);
        let found = arguments.len();
        arguments
            .try_into()
            .map_err(|_| ExecutionError::invalid_argument_count(N, found))
    }

    fn spend(&self, units: u64) -> Result<(), ExecutionError> {
        let left = self.0.load(Ordering::Relaxed);
        match left.checked_sub(units) {
            Some(left @ 1..) => {
                self.0.store(left, Ordering::Relaxed);
                Ok(())
            }
            Some(0) | None => {
                self.0.store(0, Ordering::Relaxed);
                Err(spent())
            }
        }
    }
}

/// It is never shown: that there is too much work is reported instead.
fn spent() -> ExecutionError {
    ExecutionError::InternalError(String::new())
}

/// What copying `value` costs.
fn weight(value: &dyn Val) -> u64 {
    let text = |length: usize| VALUE + length as u64 / BYTES;
    if let Some(list) = value.downcast_ref::<CelList>() {
        let items = list.inner().iter().map(|item| weight(item.as_ref()));
        items.fold(VALUE, u64::saturating_add)
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        let entries = map.inner().iter();
        let entries =
            entries.map(|(key, item)| ENTRY + weight(key.inner()) + weight(item.as_ref()));
        entries.fold(VALUE, u64::saturating_add)
    } else if let Some(string) = value.downcast_ref::<CelString>() {
        text(string.inner().len())
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        text(bytes.inner().len())
    } else {
        VALUE
    }
}

fn function(
    call: impl for<'b, 'v> Fn(&mut FunctionContext<'b, 'v>) -> Outcome<'b, 'v> + Send + Sync + 'static,
) -> Function {
    Box::new(call)
}
