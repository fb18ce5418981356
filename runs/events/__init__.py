"""The types of run events, and the notification of their readers over Redis."""
