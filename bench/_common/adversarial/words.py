"""Words that can stand in each other's place and change what is asked."""

from __future__ import annotations

from collections.abc import Mapping

NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

# Units that measure the same thing: another unit makes another quantity.
UNITS: tuple[tuple[str, ...], ...] = (
    ("seconds", "minutes", "hours", "days", "weeks", "months", "years"),
    ("second", "minute", "hour", "day", "week", "month", "year"),
    ("kg", "pounds"), ("kilograms", "ounces", "tons"),
    ("km", "miles"), ("kilometers", "yards"), ("kilometres", "inches"), ("metres", "feet"), ("meters", "cm"),
    ("mb", "gb", "tb", "kb"), ("kbps", "mbps"), ("ms", "us"),
    ("mg", "ml"), ("grams", "litres"), ("celsius", "fahrenheit"),
    ("dollars", "rupees", "euros"), ("crores", "lakhs"), ("crore", "lakh"), ("dollar", "euro"),
    ("square feet", "square metres"), ("acres", "hectares"),
)  # fmt: skip

CLASSES: Mapping[str, tuple[str, ...]] = {
    "country": (
        "India", "Pakistan", "China", "Japan", "Germany", "France", "Spain", "Italy", "Russia", "Canada", "Brazil",
        "Mexico", "Australia", "Egypt", "Kenya", "Nigeria", "Poland", "Sweden", "Norway", "Denmark", "Switzerland",
        "Singapore", "Malaysia", "Indonesia", "Thailand", "Vietnam", "Ireland", "Scotland", "England", "Israel",
        "Iran", "Iraq", "Afghanistan", "Ukraine", "Greece", "Portugal", "Argentina", "Philippines", "Bangladesh",
    ),
    "city": (
        "London", "Paris", "Mumbai", "Delhi", "Bangalore", "Chennai", "Pune", "Hyderabad", "Kolkata", "Tokyo",
        "Beijing", "Berlin", "Chicago", "Boston", "Seattle", "Houston", "Dallas", "Miami", "Jacksonville", "Warsaw",
        "Newcastle", "Fresno", "Toronto", "Sydney", "Melbourne", "Dubai", "Los Angeles", "San Francisco", "San Diego",
    ),
    "state": (
        "California", "Texas", "Florida", "Ohio", "Michigan", "Alabama", "Alaska", "Arizona", "Colorado", "Nevada",
        "Oregon", "Utah", "Illinois", "Kansas", "Louisiana", "Minnesota", "Missouri", "Oklahoma", "Wisconsin",
    ),
    "people": (
        "French", "German", "Spanish", "Italian", "Russian", "Chinese", "Japanese", "Korean", "Arabic", "Dutch",
        "Swedish", "Portuguese", "Greek", "Polish", "Turkish", "British", "American", "Indian", "Mongol", "Roman",
    ),
    "given name": (
        "John", "James", "William", "George", "Robert", "Thomas", "Charles", "David", "Michael", "Paul", "Peter",
        "Mary", "Elizabeth", "Anne", "Henry", "Edward", "Richard", "Joseph", "Daniel", "Andrew", "Chris", "Tony",
    ),
    "planet": ("Mars", "Venus", "Jupiter", "Saturn", "Neptune", "Uranus"),
    "element": ("oxygen", "hydrogen", "nitrogen", "carbon", "helium", "chlorine", "sodium", "potassium", "iron"),
    "sport": ("cricket", "football", "basketball", "baseball", "tennis", "hockey", "volleyball"),
    "person": (
        "Donald Trump", "Hillary Clinton", "Barack Obama", "Bernie Sanders", "Narendra Modi", "Vladimir Putin",
        "Bill Gates", "Elon Musk", "Steve Jobs", "Mark Zuckerberg", "Genghis Khan", "Kublai Khan", "Martin Luther",
        "Nikola Tesla", "Thomas Edison", "Albert Einstein", "Isaac Newton", "Shakespeare", "Newton", "Galileo",
    ),
}  # fmt: skip

SOFTWARE: tuple[tuple[str, ...], ...] = (
    ("Python", "Java", "Perl", "JavaScript", "Ruby", "Rust", "Scala"),
    ("MySQL", "PostgreSQL", "SQLite", "MongoDB", "Oracle", "BigQuery", "Redis", "pgAdmin"),
    ("Windows", "macOS", "Linux", "Ubuntu", "Debian", "Android", "iOS"),
    ("Docker", "Kubernetes", "Terraform", "Vagrant"),
    ("Django", "Flask", "FastAPI", "Tornado"),
    ("vim", "emacs", "nano"), ("bash", "zsh", "fish"), ("Celery", "Airflow", "Prefect", "Mage"),
    ("pandas", "Spark", "polars"), ("TensorFlow", "PyTorch", "Keras"), ("scikit-learn", "XGBoost", "LightGBM"),
    ("Facebook", "Instagram", "Twitter", "WhatsApp", "Snapchat", "LinkedIn", "YouTube", "Quora", "Gmail"),
    ("Google", "Amazon", "Microsoft", "Apple", "Netflix", "Samsung", "Uber"), ("iPhone", "iPad", "MacBook"),
    ("GCP", "AWS", "Azure"), ("S3", "EC2"), ("Kafka", "RabbitMQ"), ("conda", "pip", "pipenv"), ("git", "svn"),
    ("NEFT", "RTGS", "IMPS"), ("Debit Card", "Credit Card", "Prepaid Card", "Forex Card"),
    ("Gold Card", "Platinum Card", "Titanium Card"), ("Current Account", "Savings Account"),
    ("personal loan", "home loan", "car loan", "education loan", "gold loan"),
)  # fmt: skip

# As people write the products of docs-faq, with versions that were released.
PRODUCTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "vim": ("Vim", ("7.4", "8.0", "8.2", "9.0", "9.1")),
    "perl": ("Perl", ("5.8", "5.10", "5.30", "5.36", "5.38.0", "5.38.2")),
    "debian": ("Debian", ("10", "11", "12", "12.1", "12.10")),
    "python": ("Python", ("2.7", "3.1", "3.10", "3.11", "3.12", "3.11.2", "3.11.12")),
    "shorewall": ("Shorewall", ("4.6", "5.0", "5.2.3", "5.2.8")),
    "r": ("R", ("3.6", "4.0.2", "4.2.0", "4.2.2")),
    "django": ("Django", ("2.2", "3.1", "3.2", "4.1", "4.2.1", "4.2.11")),
    "borgbackup": ("BorgBackup", ("1.1", "1.2", "1.2.4", "1.2.14", "2.0")),
    "linux": ("Linux", ("5.1", "5.10", "5.15", "6.1", "6.10")),
    "zsh": ("zsh", ("5.4", "5.8", "5.8.1", "5.9")),
    "celery": ("Celery", ("4.4", "5.0", "5.2", "5.2.6")),
    "apache-httpd": ("Apache httpd", ("2.2", "2.4", "2.4.6", "2.4.62")),
    "sqlite": ("SQLite", ("3.4", "3.40", "3.40.1", "3.45")),
    "sqlalchemy": ("SQLAlchemy", ("1.3", "1.4", "1.4.4", "1.4.46", "2.0")),
    "git": ("Git", ("1.8", "2.3", "2.30", "2.39")),
    "fish": ("fish", ("3.1", "3.6", "3.6.1", "3.7")),
    "scikit-learn": ("scikit-learn", ("0.24", "1.1", "1.2", "1.2.1")),
}
