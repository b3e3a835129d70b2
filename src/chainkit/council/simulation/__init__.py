"""A transaction simulated without sending it: reverts by their errors, every changed slot named."""

from chainkit.council.simulation.attempt import try_message, try_safe_transaction
from chainkit.council.simulation.difference import SlotChange, StateDifference
from chainkit.council.simulation.simulate import simulate_message, simulate_safe_transaction
from chainkit.council.simulation.trace import Message

__all__ = [
    "Message",
    "SlotChange",
    "StateDifference",
    "simulate_message",
    "simulate_safe_transaction",
    "try_message",
    "try_safe_transaction",
]
