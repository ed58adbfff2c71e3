"""Charts as SVG that the server draws: no script on the page, and no library.

A chart is a row of bins of time. Horizontally it is as wide as the page leaves it, so
that places are given in bins; vertically it is always as high, and places are pixels.
Its colours come from classes (`static/portcullis/charts.css`), and everything that it
shows stands in a table as well.
"""
