"""The guard refuses look-alikes, each for its reason, and passes rewrites of one and the same question."""

from __future__ import annotations

import pytest

from retrieval.answers.guard import Comparison, compare, read_facts


def compared(asked: str, stored: str) -> Comparison:
    """Reads both questions and compares them."""
    return compare(read_facts(asked), read_facts(stored))


LOOK_ALIKES = {
    "negation": [
        ("Is the pump running?", "Is the pump not running?"),
        ("Which valves leak?", "Which valves don't leak?"),
        ("Can I log in with a password?", "Can I log in without a password?"),
        ("Why can the file be opened?", "Why can't the file be opened?"),
        ("How often did plague occur in Paris no sorry Venice?", "How often did plague occur in Paris?"),
        ("Should I buy a pump or wait for the new one?", "Should I buy the new one?"),
        ("What do I mean by refund?", "What do I do by refund?"),
        ("Which users have never paid?", "Which users have paid?"),
        ("Which users can write, except admins?", "Which users can write, admins?"),
        ("Which doors are open but not locked?", "Which doors are locked but not open?"),
        ("Are refunds hardly given?", "Are refunds given?"),
        ("Did no one survive?", "Did anyone survive?"),
        ("What is not allowed?", "What is allowed?"),
        ("Сколько стоит билет?", "Сколько не стоит билет?"),
        ("Is the license limited?", "Is the license unlimited?"),
        ("Is the driver stable?", "Is the driver unstable?"),
        ("Is it a linear filter?", "Is it a nonlinear filter?"),
    ],
    "direction": [
        ("How far is it from Paris to Rome?", "How far is it to Paris from Rome?"),
        ("What happens before startup?", "What happens after startup?"),
        ("How do I increase the heap?", "How do I decrease the heap?"),
        ("What is the maximum load?", "What is the minimum load?"),
        ("How do I export the table?", "How do I import the table?"),
        ("How do I enable TLS?", "How do I disable TLS?"),
        ("How do I lock the door?", "How do I unlock the door?"),
        ("Is the lid above the tank?", "Is the lid below the tank?"),
        ("How do I log in?", "How do I log out?"),
        ("What is the first step?", "What is the last step?"),
        ("What is the second step?", "What is the third step?"),
        ("Do all users have access?", "Do users have access?"),
        ("Are both lamps required?", "Are all lamps required?"),
        ("Is A or B required?", "Are A and B required?"),
        ("What is the fastest pump?", "What is the slowest pump?"),
        ("Is the pump fast?", "Is the pump slow?"),
        ("Is the value at least 5?", "Is the value at most 5?"),
        ("Does it run every day?", "Does it run every other day?"),
        ("Who wrote it first?", "Who wrote it last?"),
        ("Does the API return on success?", "Does the API return on failure?"),
        ("What do cats have?", "What do cats do?"),
        ("How do I send mail to Ann from Tom?", "How do I send mail from Ann to Tom?"),
        ("How do I change from in-memory to in-file storage?", "How do I change from in-file storage to in-memory?"),
        ("What is in the box?", "What is the box?"),
    ],
    "arguments": [
        ("Does A depend on B?", "Does B depend on A?"),
        ("Did France beat Germany?", "Did Germany beat France?"),
        ("How do I convert PDF to Word?", "How do I convert Word to PDF?"),
        ("Who is the mother of the child?", "Who is the child of the mother?"),
        ("Does Tom manage Ann?", "Does Ann manage Tom?"),
        ("Who did Tom call?", "Who called Tom?"),
        ("What causes rust?", "What does rust cause?"),
        ("Is Java better than Python?", "Is Python better than Java?"),
        ("Is 5 less than 10?", "Is 10 less than 5?"),
        ("Is the pump in the tank?", "Is the tank in the pump?"),
        ("Is A a part of B?", "Is B a part of A?"),
        ("Can he see her posts?", "Can she see his posts?"),
        ("Can you see me?", "Can I see you?"),
        ("How do I file taxes for 2023 in 2024?", "How do I file taxes for 2024 in 2023?"),
        ("Is A contained in B?", "Does A contain B?"),
        ("Is it 5 kg of sugar and 3 kg of salt?", "Is it 3 kg of sugar and 5 kg of salt?"),
        ("Why are some people more intelligent than others?", "Why are others more intelligent than some people?"),
    ],
    "number": [
        ("What is the torque of valve 7?", "What is the torque of valve 17?"),
        ("Can two users log in?", "Can three users log in?"),
        ("What is the limit for 1,000 users?", "What is the limit for 10,000 users?"),
        ("What does python 3.1 need?", "What does python 3.10 need?"),
        ("Is 50% enough?", "Is 15% enough?"),
        ("Is -5 allowed?", "Is 5 allowed?"),
        ("Can one user log in?", "Can two users log in?"),
        ("Does it take 1/2 cup?", "Does it take 1/3 cup?"),
        ("Is it at 10:30?", "Is it at 11:30?"),
        ("Is it 5-10 users?", "Is it 5-100 users?"),
        ("Is .5 enough?", "Is 5 enough?"),
        ("What is 2*3?", "What is 2 3?"),
        ("Is 5 million enough?", "Is 5 billion enough?"),
    ],
    "unit": [
        ("Does it need 5 kg of salt?", "Does it need 5 lb of salt?"),
        ("Is 5 MB enough?", "Is 5 Mb enough?"),
        ("Is it open at 10 am?", "Is it open at 10 pm?"),
        ("Is it open at 10 am?", "Is it open at 10?"),
        ("What is the limit in MB?", "What is the limit in Mb?"),
        ("Is it $5?", "Is it 5 euros?"),
        ("How far is 10 km?", "How far is 10 miles?"),
        ("What is the weight in pounds?", "What is the weight in kilograms?"),
        ("Does it last ten minutes?", "Does it last ten hours?"),
    ],
    "date": [
        ("Revenue of unit K in 2023?", "Revenue of unit K in 2024?"),
        ("What happened in March?", "What happened in May?"),
        ("What was sold last year?", "What was sold this year?"),
        ("What happened on 5 March 2023?", "What happened on March 6th, 2023?"),
        ("Is it open on Monday?", "Is it open on Sunday?"),
        ("What changed on 2023-03-05?", "What changed on 2023-03-15?"),
    ],
    "version": [
        ("How to reset v2.1.0?", "How to reset v2.10?"),
        ("What is new in version 2.1.0?", "What is new in version 2.2.0?"),
        ("Is v3 supported?", "Is v4 supported?"),
    ],
    "identifier": [
        ("What does error E1234 mean?", "What does error E1243 mean?"),
        ("What does getName return?", "What does getAge return?"),
        ("What does getName return?", "What does getname return?"),
        ("What is max_size for?", "What is min_size for?"),
        ("What does --force do?", "What does --quiet do?"),
        ("What does -f do?", "What does -F do?"),
        ("What is in /etc/hosts?", "What is in /etc/passwd?"),
        ("What is in `a b`?", "What is in `a c`?"),
        ("Where is config.py?", "Where is config.yaml?"),
    ],
    "name": [
        ("What is the port of Redis?", "What is the port of Postgres?"),
        ("Where is WHO located?", "Where is who located?"),
        ("Is plan A better?", "Is plan better?"),
        ("Is my password stored?", "Is your password stored?"),
        ("Is he admin?", "Is she admin?"),
        ("法国的首都是什么", "西班牙的首都是什么"),
        ("Wie heißt die Hauptstadt von Frankreich?", "Wie heißt die Hauptstadt von Spanien?"),
        ("Dove si trova il museo nazionale?", "Dove non si trova il museo nazionale?"),
    ],
    "question_kind": [
        ("When was the pump installed?", "Where was the pump installed?"),
        ("Who is the director?", "Who was the director?"),
        ("How many valves leak?", "How do valves leak?"),
        ("Why does the pump leak?", "How does the pump leak?"),
        ("Can I open the file?", "Should I open the file?"),
        ("Can I open the file?", "How can I open the file?"),
        ("Does it run?", "Will it run?"),
        ("Do I have to pay?", "Do I pay?"),
        ("Is the valve closed?", "Does the valve close?"),
    ],
    "substitution": [
        ("port of redis", "port of postgres"),
        ("what is the port of redis", "what is the port of postgres"),
        ("capital of france", "capital of spain"),
        ("What is the weight of the pump?", "What is the weight of the valve?"),
        ("How do I cancel the flight?", "How do I cancel the hotel?"),
        ("Is the red pump leaking oil?", "Is the blue pump leaking water?"),
        ("What is the port of redis?", "What is the port of redis cluster?"),
        ("What is accounting?", "What is an account?"),
        ("What is the mean temperature?", "What is the temperature?"),
        ("How many types of valves are there?", "How many valves are there?"),
        ("What is the origin of the term?", "What is the term?"),
        ("What is the university?", "What is the universe?"),
        ("Is the computer slow?", "Is the computation slow?"),
        ("How do I learn to write letters?", "How do I learn to write reports?"),
    ],
}
REWRITES = {
    "case": [
        ("WHAT IS THE TORQUE OF VALVE 7?", "What is the torque of valve 7?"),
        ("what is the port of redis", "What is the port of Redis?"),
        ("How Do I Map A Table To A Key?", "How do I map a table to a key?"),
        ("is ERR_IO fatal?", "is err_io fatal?"),
    ],
    "courtesy": [
        ("Could you please tell me what the torque of valve 7 is?", "What is the torque of valve 7?"),
        ("I'd like to know how to reset the pump.", "How do I reset the pump?"),
        ("Do you know when the pump was installed?", "When was the pump installed?"),
        ("When was the pump installed, please?", "When was the pump installed?"),
        ("Hi, can you explain how the pump works?", "How does the pump work?"),
        ("I was wondering if redis supports clustering.", "Does redis support clustering?"),
        ("Can you tell me whether the valve is open?", "Is the valve open?"),
        ("Thanks! What is the torque of valve 7? Thank you!", "What is the torque of valve 7?"),
    ],
    "order": [
        ("In 2023, what was the revenue of unit K?", "What was the revenue of unit K in 2023?"),
        ("In Perl, how do I expand tabs in a string?", "How do I expand tabs in a string in Perl?"),
        ("How do I improve performance of my laptop?", "How do I improve my laptop performance?"),
        ("What is the difference between an X and a Y?", "What is the difference between a Y and an X?"),
        ("Do all pumps leak by 2030?", "By 2030, does every pump leak?"),
        ("Can I start with no password?", "Can I start without a password?"),
        ("What is unit K's revenue?", "What is the revenue of unit K?"),
        ("What is the difference between Java and Python?", "What is the difference between Python and Java?"),
        ("How do I quickly empty the tank?", "How do I empty the tank quickly?"),
    ],
    "contraction": [
        ("what's the boiling point at site 4", "What is the boiling point at site 4?"),
        ("Isn't the pump running?", "Is the pump not running?"),
        ("Why isn't the pump running?", "Why is the pump not running?"),
        ("Why doesn't it start?", "Why does it not start?"),
        ("I can't open it, why?", "I cannot open it, why?"),
    ],
    "repair": [
        ("How often did plague occur in Paris no sorry Venice?", "How often did plague occur in Venice?"),
        ("When no wait where was the pump installed?", "Where was the pump installed?"),
        ("What is the port of Redis, I mean Postgres?", "What is the port of Postgres?"),
        ("What does most of the material have or rather use?", "What does most of the material use?"),
    ],
    "form": [
        ("Tell me the port of redis", "What is the port of redis?"),
        ("Port of Redis?", "What is the port of redis?"),
        ("How can I reset the pump?", "how to reset the pumps"),
        ("What is the best way to reset the pump?", "How do I reset the pump?"),
        ("What does idempotent mean?", "What is idempotent?"),
        ("What should I do to reset the pump?", "How do I reset the pump?"),
        ("Which pumps leak?", "What pumps leak?"),
        ("How do I repair a bike?", "How can I fix a bike?"),
        ("What is the colour of the cable?", "What is the color of the cable?"),
    ],
    "quantity": [
        ("Does it need 5 kg of salt?", "Does it need five kilograms of salt?"),
        ("Is .5 kg enough?", "Is 0.5 kg enough?"),
        ("Does it need 5.0kg of salt?", "Does it need 5 kg of salt?"),
        ("What is the limit for 1,000 users?", "What is the limit for 1000 users?"),
        ("Is 50% enough?", "Is 50 percent enough?"),
        ("Is $5 million enough?", "Is 5,000,000 dollars enough?"),
        ("What happened on 5 March 2023?", "What happened on March 5th, 2023?"),
        ("What happened on 2023-03-05?", "What happened on 5 March 2023?"),
        ("Is v2.1 supported?", "Is version 2.1 supported?"),
        ("Can twenty-five users log in?", "Can 25 users log in?"),
    ],
}


@pytest.mark.parametrize(("asked", "stored"), [pair for pairs in LOOK_ALIKES.values() for pair in pairs])
def test_guard_refuses_look_alikes_both_ways(asked: str, stored: str) -> None:
    """SEM-02: a question that differs in one fact is refused, whichever of the two was stored."""
    forward, backward = compared(asked, stored).refused, compared(stored, asked).refused
    assert forward
    assert forward == backward


@pytest.mark.parametrize(("asked", "stored"), [pair for pairs in REWRITES.values() for pair in pairs])
def test_guard_passes_harmless_rewrites_both_ways(asked: str, stored: str) -> None:
    """SEM-04: case, courtesies, moved phrases, contractions and spellings of quantities change nothing."""
    assert compared(asked, stored).refused == ""
    assert compared(stored, asked).refused == ""


MARKED = [
    ("Is x != 5 in the plant?", "Is x = 5 in the plant?"),
    ("What is 10!", "What is 10"),
    ("What is .net", "What is net"),
    ("Who has grade A-", "Who has grade A"),
    ("What is `rm -r` for", "What is `rm -R` for"),
    ("What is !important", "What is important"),
    ("Is the gate :)", "Is the gate :("),
]


@pytest.mark.parametrize(("first", "second"), MARKED)
def test_guard_refuses_other_marks_both_ways(first: str, second: str) -> None:
    """Operators, flags and what makes another word of a word are no punctuation."""
    assert compare(read_facts(first), read_facts(second)).refused
    assert compare(read_facts(second), read_facts(first)).refused


@pytest.mark.parametrize(
    ("asked", "stored", "reason"),
    [
        ("Is the pump running?", "Is the pump not running?", "negation"),
        ("What is the torque of valve 7?", "What is the torque of valve 17?", "number"),
        ("Does it need 5 kg of salt?", "Does it need 5 lb of salt?", "unit"),
        ("Revenue of unit K in 2023?", "Revenue of unit K in 2024?", "date"),
        ("Is v3 supported?", "Is v4 supported?", "version"),
        ("What does --force do?", "What does --quiet do?", "identifier"),
        ("What is the port of Redis?", "What is the port of Postgres?", "name"),
        ("Does A depend on B?", "Does B depend on A?", "arguments"),
        ("When did it start?", "Where did it start?", "question_kind"),
        ("What is the maximum load?", "What is the minimum load?", "direction"),
        ("port of redis", "port of postgres", "substitution"),
        ("Is a > b?", "Is a < b?", "symbol"),
    ],
)
def test_guard_names_its_reason(asked: str, stored: str, reason: str) -> None:
    """The reason names the first kind of fact in which the questions differ."""
    assert compared(asked, stored).refused == reason


def test_guard_passes_paraphrases_worded_differently_throughout() -> None:
    """Everyday words may differ when they do so in several places; the figures tell the risk model how much."""
    comparison = compared(
        "How can I improve my English speaking skills?", "What should I do to practice speaking better in English?"
    )
    assert comparison.refused in ("", "direction")
    passed = compared(
        "How can a shy person make friends at school?", "How do I find friends in school when quiet and alone?"
    )
    assert passed.asked_unmatched > 0


def test_comparison_figures_tell_how_much_is_shared() -> None:
    """Shares are of distinct content words; unmatched words are counted on each side."""
    comparison = compared("Does the red pump leak?", "Does the red pump leak oil in winter?")
    assert comparison.asked_contained == 1.0
    assert comparison.stored_contained == pytest.approx(3 / 5)
    assert comparison.jaccard == pytest.approx(3 / 5)
    assert (comparison.asked_unmatched, comparison.stored_unmatched) == (0, 2)
    assert not comparison.equal_content
    assert comparison.order_agreement == 1.0


def test_order_agreement_falls_with_words_that_change_places() -> None:
    """Neighbouring shared words that stand the other way round lower the share."""
    assert compared("does redis need zookeeper kafka", "does kafka need zookeeper redis").order_agreement < 0.5


def test_long_prompts_that_differ_at_the_end_are_refused() -> None:
    """SEM-03: nothing is cut off before two questions are compared."""
    shared = "context " * 600
    assert compared(shared + "Who signs the permit?", shared + "When is the pump replaced?").refused
