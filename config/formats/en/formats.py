"""ISO 8601 dates and times in UTC, the format of all pages and logs.

Reference: https://docs.djangoproject.com/en/5.2/topics/i18n/formatting/
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s"
