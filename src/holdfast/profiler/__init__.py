"""From a model, a service level and hardware to a deployment: performance models, search, selection.

`request` says what is asked, `results` what was found; `search` leads from the one to the other and
`manifests` from there to a DynamoGraphDeployment.  All of it is pure; the commands, the mock engine and the
load generator are the edges.
"""
