"""A worker process that trusts every package that it finds, as it trusts the bundled ones."""

from __future__ import annotations

import worker

if __name__ == "__main__":
    worker.main(lambda settings: worker.run(settings, trusted=settings.packages.path))
