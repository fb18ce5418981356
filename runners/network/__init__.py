"""Outgoing connections: address checks, the egress rule and the SOCKS proxy of browsers."""
