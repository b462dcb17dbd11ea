"""A run's report: one self-contained HTML page (no script, nothing fetched).

`curves` draws the charts, `showcase` picks trajectories worth seeing, `filmstrip` turns
them into pictures, `page` puts everything together.
"""

from services.trainer.report.page import build_report

__all__ = ["build_report"]
