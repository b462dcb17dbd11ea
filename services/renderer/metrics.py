"""What the renderer counts, besides the calls that every server counts."""

from prometheus_client import Counter, Gauge, Histogram

RENDERS = Counter("wmr1_renderer_renders_total", "Answered renders, by outcome.", ["outcome"])
CACHED = Counter("wmr1_renderer_cached_total", "Renders answered from memory.")
SECONDS = Histogram(
    "wmr1_renderer_draw_seconds",
    "Time to draw one page, waiting for a page not included.",
    buckets=(0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)
WAITING = Gauge("wmr1_renderer_waiting", "Renders that wait for a page.")
ENDED = Counter("wmr1_renderer_browsers_ended_total", "Browsers ended, by cause.", ["cause"])
