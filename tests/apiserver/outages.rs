//! The API server is away, refuses, breaks off, forgets, and holds what it should not.

mod faults;
mod late;
mod restart;
mod rights;
mod writers;
