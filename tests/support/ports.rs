//! Ports for servers that cannot choose one by themselves.
//!
//! What comes in: nothing. What goes out: a port that the system gives to nobody else for a minute, in
//! which the server starts.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use anyhow::{Context, Result};

/// A port of loopback for a server that is about to start.
///
/// A connection to it was just closed by its server. For a minute (`TIME_WAIT`) the system chooses
/// this port neither for a listener that takes any port nor for a connection. A server that names it
/// may still listen there: Go and Rust ask for `SO_REUSEADDR`.
///
/// # Errors
///
/// If nobody may listen on loopback.
pub fn free_port() -> Result<u16> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on 127.0.0.1")?;
    let address = listener.local_addr()?;
    let mut client = TcpStream::connect(address)?;
    // Somebody else may call who was here before.
    let server = loop {
        let (server, from) = listener.accept()?;
        if from == client.local_addr()? {
            break server;
        }
    };
    // The side that closes first keeps the port.
    drop(server);
    client.read_to_end(&mut Vec::new())?;
    Ok(address.port())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpSocket;

    use super::*;

    #[test]
    fn a_free_port_is_kept_for_a_server_that_names_it() {
        let port = free_port().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        // Unlike a listener of the standard library, this one does not ask for SO_REUSEADDR.
        let others = TcpSocket::new_v4().unwrap().bind(address);
        assert_eq!(others.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        TcpListener::bind(address).unwrap();
    }
}
