"""Audits of what other libraries state about real data, to be read one by one.

``python -m benchmarks.acceptance DATA OUT`` trains scikit-learn models on every public set of the folder
DATA, lets MAPIE, crepes and TorchCP conformalise them in environments of their own, audits every output
and writes the table of findings to OUT. What is finished is kept: an interrupted run goes on.
"""
