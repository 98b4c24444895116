"""The load generator: requests at a rate or a concurrency, and what was measured of the answers.

figures    from samples to percentiles, rates and a verdict; pure
arrivals   when requests are sent; pure
generator  sends them over HTTP and reads the streams
targets    what a request of the cluster asks for and was promised
report     the figures as text
"""
