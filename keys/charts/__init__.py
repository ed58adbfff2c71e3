"""Charts, drawn by the server as SVG without scripts or a library.

A chart is a row of time bins. Its width follows the page, so x coordinates are in bins.
Its height is fixed, so y coordinates are in pixels. CSS classes define its colours
(`static/portcullis/charts.css`). A table contains the same figures.
"""
