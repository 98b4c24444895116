"""Runs controllers: watch, store, queue, and one driver that turns decisions into writes."""
