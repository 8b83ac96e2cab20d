#!/usr/bin/env python3
"""Writes periods.txt: periods of the calendar as Python's zoneinfo has them, found minute by minute.

A period starts at the first minute at which the clocks show its start or a later time.
"""
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def first_minute(zone, shown):
    """The first minute at which the clocks of the zone show that or more."""
    t = shown.replace(tzinfo=timezone.utc) - timedelta(hours=17)
    while t.astimezone(ZoneInfo(zone)).replace(tzinfo=None) < shown:
        t += timedelta(minutes=1)
    return t


def starts(per, text, around):
    """The starts of periods near a date, as the clocks show them."""
    day, _, clock = text.rpartition(" ")
    if per != "day" and not day:
        day, clock = clock, "00:00"
    h, m = map(int, clock.split(":"))
    days = [around + timedelta(days=n) for n in range(-70, 71)]
    for d in days:
        last = (d.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        if per == "day" or per == "week" and WEEKDAYS[d.weekday()] == day or per == "month" and d.day == min(int(day), last.day):
            yield datetime(d.year, d.month, d.day, h, m)


CASES = [
    # zone, start, dates
    ("UTC", "day 00:00", ["2024-02-28", "2024-02-29", "2023-02-28", "2000-02-29", "1970-01-01", "1969-12-31"]),
    ("UTC", "month 1", ["2024-02-15", "2023-02-15", "1900-02-15", "2000-02-15", "2025-12-31", "2026-01-01", "1969-12-31"]),
    ("UTC", "month 31 12:30", ["2024-02-15", "2024-02-29", "2023-02-28", "2024-03-30", "2024-04-30", "2024-01-31", "2024-12-31"]),
    ("UTC", "month 29", ["2023-02-28", "2024-02-29", "2023-03-01"]),
    ("UTC", "week monday", ["2024-12-29", "2024-12-30", "2025-01-05", "1970-01-01"]),
    ("UTC", "week thursday 18:45", ["2024-02-29", "2025-01-02"]),
    # days of 23 and 25 hours
    ("Europe/Berlin", "day 00:00", ["2024-03-30", "2024-03-31", "2024-04-01", "2024-10-26", "2024-10-27", "2024-10-28"]),
    ("Europe/Berlin", "day 02:30", ["2024-03-30", "2024-03-31", "2024-10-26", "2024-10-27"]),
    ("Europe/Berlin", "week monday", ["2024-03-31", "2024-10-27"]),
    ("Europe/Berlin", "month 1", ["2024-03-15", "2024-10-15"]),
    ("Europe/Berlin", "month 31 02:30", ["2024-03-30", "2024-03-31"]),
    ("America/New_York", "day 00:00", ["2024-03-09", "2024-03-10", "2024-11-02", "2024-11-03"]),
    ("America/New_York", "day 01:30", ["2024-03-10", "2024-11-02", "2024-11-03"]),
    ("America/New_York", "week sunday 02:15", ["2024-03-09", "2024-03-10", "2024-11-03"]),
    ("America/New_York", "month 3 01:00", ["2024-11-02", "2024-11-03"]),
    ("Australia/Lord_Howe", "day 00:00", ["2024-04-06", "2024-04-07", "2024-10-05", "2024-10-06"]),
    ("Australia/Lord_Howe", "day 02:15", ["2024-04-07", "2024-10-06"]),
    ("Australia/Lord_Howe", "month 7", ["2024-04-07", "2024-10-07"]),
    # the clocks skip or repeat midnight, or a day
    ("America/Sao_Paulo", "day 00:00", ["2018-02-16", "2018-02-17", "2018-02-18", "2018-11-03", "2018-11-04"]),
    ("America/Sao_Paulo", "week sunday", ["2018-02-17", "2018-02-18", "2018-11-04"]),
    ("America/Sao_Paulo", "day 23:30", ["2018-02-17", "2018-02-18"]),
    ("America/Havana", "day 00:30", ["2024-11-02", "2024-11-03"]),
    ("Pacific/Apia", "day 06:00", ["2011-12-28", "2011-12-29", "2011-12-31"]),
    ("Pacific/Apia", "week friday", ["2011-12-29", "2011-12-31"]),
    ("Pacific/Apia", "month 30", ["2011-12-29", "2011-12-31"]),
    # the last day of a leap year
    ("America/New_York", "day 00:00", ["2024-12-31", "2028-12-31"]),
    ("Europe/Berlin", "month 31 06:00", ["2028-12-30", "2028-12-31"]),
    ("Asia/Kathmandu", "day 00:00", ["2024-06-01"]),
    ("Pacific/Kiritimati", "day 00:00", ["2024-06-01"]),
    ("Etc/GMT+12", "day 00:00", ["2024-06-01"]),
]

print("# per, timezone, starts; start and end in Unix seconds. Written by periods.py.")
seen = set()
for zone, rule, dates in CASES:
    per, text = rule.split(" ", 1)
    for d in dates:
        around = date.fromisoformat(d)
        edges = sorted({first_minute(zone, s) for s in starts(per, text, around) if abs((s.date() - around).days) < 35 or per == "month"})
        noon = datetime.fromisoformat(d + "T12:00").replace(tzinfo=ZoneInfo(zone)).astimezone(timezone.utc)
        i = max(i for i, e in enumerate(edges) if e <= noon)
        line = f"{per}, {zone}, {text}; {int(edges[i].timestamp())} {int(edges[i + 1].timestamp())}"
        if line not in seen:
            seen.add(line)
            print(line, "#", edges[i].isoformat(), (edges[i + 1] - edges[i]))
