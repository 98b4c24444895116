"""The dashboard: web pages over the views, for any cluster.

    browser ──► server (gate, sessions) ──► worlds: one for each identity
                                              ├── board: a row for each object, one watch for each kind
                                              └── following: the page of one object, shared by its viewers

It knows no operator and no kind by name: it reads what operators declare (`ShownKind`).
"""
