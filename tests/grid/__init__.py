"""The harsh grid: every promise of the package, measured in worlds with a known truth.

`regimes` holds the table of regimes, `promises` the table of what is promised in which worlds, `running` the
simulation, `page` the page "what holds where" of the site. ``python -m tests.grid.running`` runs the grid.
"""
