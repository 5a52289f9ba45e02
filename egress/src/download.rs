//! A body that is too long to be held: it is read piece by piece, under the same rules for
//! addresses as everything else.
//!
//! What comes in: an address and [`Bounds`]. What goes out: a [`Download`], to be read to its end. It
//! takes no turn among the short requests: the caller limits how many there are at once.

use std::time::Duration;

use reqwest::Response;

use crate::outcome::{self, EgressError};
use crate::request::{Request, Schemes};
use crate::way_out::{Egress, within};

/// The limits of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The length of the body, in bytes.
    pub length: usize,
    /// How long nothing may arrive: from the look-up of the name to the head of the reply, and from one
    /// piece of the body to the next.
    pub pause: Duration,
}

/// The body of a reply with status 200, as it comes.
#[derive(Debug)]
pub struct Download {
    response: Response,
    bounds: Bounds,
    read: usize,
}

impl Egress {
    /// Begins a GET of `url`, over https or http, without credentials.
    ///
    /// # Errors
    /// Anything but a reply with status 200, in time and not announced to be too long, from an
    /// address that the rules allow.
    pub async fn download(&self, url: &str, bounds: Bounds) -> Result<Download, EgressError> {
        let request = Request {
            schemes: Schemes::HttpToo,
            ..Request::to(url)
        };
        let url = request.url()?;
        let client = self.client(&url, None)?;
        let asking = async {
            self.check_literal(&url).await?;
            let sent = client.get(url.clone()).send().await;
            sent.map_err(|error| outcome::of(&error))
        };
        let response = within(bounds.pause, asking).await?;
        match response.status().as_u16() {
            200 => {}
            status => return Err(EgressError::Status(status)),
        }
        let told = response.content_length();
        if told.is_some_and(|told| told > bounds.length as u64) {
            return Err(EgressError::TooLong(bounds.length));
        }
        Ok(Download {
            response,
            bounds,
            read: 0,
        })
    }
}

impl Download {
    /// The next piece. None: that was the whole body.
    ///
    /// # Errors
    /// It broke off, nothing arrived for too long, or it is too long.
    pub async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]> + Send + use<>>, EgressError> {
        let reading = async {
            let read = self.response.chunk().await;
            read.map_err(|error| outcome::of(&error))
        };
        let Some(chunk) = within(self.bounds.pause, reading).await? else {
            return Ok(None);
        };
        self.read = self.read.saturating_add(chunk.len());
        if self.read > self.bounds.length {
            return Err(EgressError::TooLong(self.bounds.length));
        }
        Ok(Some(chunk))
    }
}
