"""What is checked or filled in before an object is stored, by the server and by admission webhooks."""
