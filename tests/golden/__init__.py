"""What a user of Calipers relies on today, stored so that a rebuilding of the package cannot lose it.

=======================  ===========================================  =======================================
file of tests            what it compares                             stored in
=======================  ===========================================  =======================================
`test_signatures`        names, parameters, defaults, methods         ``stored/signatures.json``
`test_command_line`      commands, options, settings of calipers.toml ``stored/command_line.json``
`test_audits`            findings and numbers of small audits         ``stored/audits.json``
`test_endings`           endings of files x ways to name the files    ``stored/endings.json``
`test_version_0_1`       files written by version 0.1 are read        ``stored/version_0_1/``
`test_capabilities`      what is easily lost, each with its test      ``capabilities.PINNED_BY``
=======================  ===========================================  =======================================

Only public behaviour is looked at: names of the rooms, the command line, files. No module inside a room is named.
Additions never fail; losses do. A name or parameter that is renamed stays as an alias that warns (a
DeprecationWarning, FutureWarning or CalipersWarning), and its line in `signatures.RENAMED` names the test of the alias.

Recording again
---------------
::

    python -m tests.golden.record              # everything but version_0_1
    python -m tests.golden.record audits       # one file

is legitimate when something was *added* that should be kept from now on, or when a number changed because a defect was
mended; the commit then says which defect, and its diff of ``stored/`` shows nothing else. It is not a remedy for
a test that fails after a refactoring. ``version_0_1`` is never recorded again: it was written by version 0.1.

What is left out, and why
-------------------------
``calipers study``, ``calipers.studies``
    Move out of the package.
``calipers.arrays``, ``inputs``, ``inference``, ``report``
    Plumbing, by the design not advertised.
``engines.merge_rules``
    A second vocabulary beside the registry; may go.
Constructors of what calls return (`signatures.RETURNED`), and the field ``Audit.material``
    Nobody makes an audit by hand, and the class behind ``material`` is replaced.
Options of ``CoverageClassifier``; ``Distance``, ``BinaryRows`` and other plumbing of the inner rooms of ``metrics``
    The first is replaced; the others are arguments of machinery.
``source`` of `audit`
    Becomes the rows to read; a text beside y_true still means the name of the file, and warns.
Audits in memory with ``sample_weight``
    Break the rule that whole-number weights are repeated rows. The streamed ones keep it and are pinned.
Estimates of ERT, of the learned regions and of the worst slab
    The model of coverage given the features is replaced. That the planted fault is *found* is pinned.
Brier score and log loss of ``compare`` and ``calibrate``
    Three definitions under one name; one will stay.
Intervals, p-values and sentences
    Under repair elsewhere; outcomes and severities that follow from them are pinned.
"""
