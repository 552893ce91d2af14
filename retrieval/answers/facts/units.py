"""Units of measure, currencies and calendars: their spellings, and the one name each is compared by.

Spellings that differ only in case (`Mb` and `MB`, `mW` and `MW`) are looked up as written first.
"""

from __future__ import annotations

_SPELLINGS = """
kg: kg kgs kilogram kilograms kilogramme kilogrammes kilo kilos
g: g gram grams gramme grammes
mg: mg milligram milligrams
t: tonne tonnes
ton: ton tons
lb: lb lbs pound pounds
oz: oz ounce ounces
km: km kms kilometer kilometers kilometre kilometres
m: m meter meters metre metres
cm: cm centimeter centimeters centimetre centimetres
mm: mm millimeter millimeters millimetre millimetres
mile: mi mile miles
ft: ft foot feet
inch: inch inches
yd: yd yard yards
l: l liter liters litre litres
ml: ml milliliter milliliters millilitre millilitres
gal: gal gallon gallons
s: s sec secs second seconds
ms: ms msec millisecond milliseconds
us: microsecond microseconds
ns: ns nanosecond nanoseconds
min: min mins minute minutes
h: h hr hrs hour hours
day: day days
week: week weeks
month: month months
year: yr yrs year years
b: byte bytes
bit: bit bits
kB: kB KB kilobyte kilobytes
kbit: kb Kb kbit kilobit kilobits
MB: MB megabyte megabytes
Mbit: Mb Mbit megabit megabits
GB: GB gigabyte gigabytes
Gbit: Gb Gbit gigabit gigabits
TB: TB terabyte terabytes
Tbit: Tb Tbit terabit terabits
KiB: KiB kibibyte kibibytes
MiB: MiB mebibyte mebibytes
GiB: GiB gibibyte gibibytes
mb?: mb
gb?: gb
tb?: tb
hz: hz hertz
khz: khz kilohertz
mhz: mhz megahertz
ghz: ghz gigahertz
kW: kW kw kilowatt kilowatts
MW: MW megawatt megawatts
mW: mW milliwatt milliwatts
w: w watt watts
kWh: kwh
v: v volt volts
a: amp amps ampere amperes
mA: ma milliamp milliamps
nm: newtonmetre
pa: pa pascal pascals
kpa: kpa kilopascal kilopascals
mpa: mpa megapascal megapascals
bar: bar bars
psi: psi
n: newton newtons
rpm: rpm
am: am
pm: pm
celsius: c celsius centigrade
fahrenheit: f fahrenheit
kelvin: k kelvin
percent: percent pct
usd: usd dollar dollars bucks
eur: eur euro euros
gbp: gbp quid
inr: inr rupee rupees rs
jpy: jpy yen
mph: mph
kph: kph kmh
px: px pixel pixels
db: db decibel decibels
cal: cal calorie calories
kcal: kcal
"""
UNITS: dict[str, str] = {
    spelling: name
    for name, spellings in (line.split(":") for line in _SPELLINGS.strip().splitlines())
    for spelling in spellings.split()
}
SIGNS = {"%": "percent", "$": "usd", "\u20ac": "eur", "\u00a3": "gbp", "\u00a5": "jpy", "\u20b9": "inr"}
MONTHS: dict[str, int] = {
    spelling: number
    for number, spellings in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sep sept", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for spelling in spellings.split()
}  # fmt: skip
WORDS_TOO = frozenset({"may", "march", "mar", "jan", "sep", "dec", "jun", "august"})
WEEKDAYS = frozenset(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
PERIODS = frozenset(
    [
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "weekend",
        "month",
        "quarter",
        "year",
        "decade",
        "century",
        "season",
        "semester",
        "term",
        "night",
        "morning",
    ]
)
RELATIVE = {
    "last": "last", "previous": "last", "past": "last", "prior": "last", "this": "this", "current": "this",
    "next": "next", "coming": "next", "following": "next", "upcoming": "next",
}  # fmt: skip


def unit_name(raw: str) -> str | None:
    """Returns the name a unit is compared by, or None when the text is no unit."""
    return UNITS.get(raw) or UNITS.get(raw.lower())
