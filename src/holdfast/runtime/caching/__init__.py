"""What is read of the server: watches, and the stores that they fill."""
