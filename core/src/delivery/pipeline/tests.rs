//! Looks at Pipelines, one after another.
