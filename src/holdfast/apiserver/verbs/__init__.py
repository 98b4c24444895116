"""The verbs of the API.

handlers       dispatches a request to its verb
served_paths   which paths and methods a resource has
reads          get and list
watch          watch
writes         create, update and patch: defaulting, admission, validation, optimistic locking
patches        JSON patch, merge patch and strategic merge patch as changes of an object
deletion       preconditions, grace periods, finalizers, propagation
subresources   scale, eviction, binding, finalize, log
metadata       the metadata that the server owns, and validation of the rest
versions       conversion between the stored version and the served one
tables         objects as Table and PartialObjectMetadata
"""
