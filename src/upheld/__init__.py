"""upheld: new machine-learning methods as software you can use and can believe.

Each method is a subpackage (``upheld.hubs``, ``upheld.bandits``, ...) that imports only what it needs; importing
``upheld`` itself imports nothing heavy. ``upheld.catalog`` lists the methods; ``upheld.claims`` is the test bench.
"""

__version__ = "0.1.0"
