"""The mock engine: an inference server without a GPU, whose timing is that of the performance model.

engine      continuous batching in virtual time; pure
simulation  a whole deployment in virtual time: routing, engines, the figures that a load test would measure; pure
timing      how long a step of an engine takes
text        how tokens are counted and what text is made of them; pure
openai      the wire shapes of OpenAI's API; pure
worker      an engine behind HTTP: tokens are sent when the schedule has them
frontend    a router before workers
discovery   which workers there are: a list of URLs, or the ready pods that labels select
"""
