"""What the two agents are told; the contents are the paper's, the words ours."""

from __future__ import annotations

from collections.abc import Sequence

from upheld.context.history import Entry, History
from upheld.context.rollouts import Rollout
from upheld.context.skill import OVERVIEW, Skill
from upheld.context.task import Task

META_ROLE = f"""You are a context engineer who improves a procedure, not an answer. A fixed language model, the consumer, does a
task; what it is shown before each question, the context, is made by another agent, the base agent, from labelled answers of the
consumer. You write the skill that the base agent follows. A skill is a folder with SKILL.md: a heading '{OVERVIEW}' with
a paragraph that says what the skill does, then the method step by step, and guidance for cases of doubt; scripts and templates may
stand beside it. Write for somebody who sees one batch of labelled answers and the current context, and does not know this history:
no numbers of iterations, no figures."""

BASE_ROLE = """You are an agent who improves the context of a fixed language model, the consumer. The context is made of files, and of a
program that picks what a question is shown. You are given a batch of the consumer's answers with the right ones, and a skill to follow."""

OPERATOR = """interfaces/get_context.py defines

    def get_context(question, *, root, embed) -> str

root is the path of your folder at that time: it will be moved, so reach files as root + "/context/..." and never by a path written out.
embed(list of texts) gives a list of unit vectors of equal length. NumPy and the standard library are there, no network, 2 seconds a
question. It returns text of at most {budget} tokens (words and punctuation marks); what is beyond is cut off."""

CURATION = f"""# Direct curation

{OVERVIEW}

Read every wrong answer and a sample of right ones, and write down by hand what would have prevented the mistakes.

## Method

1. Group the wrong answers by (right label, given label). The largest groups come first.
2. For each label write to context/notes.md what marks it, what it is confused with, and the words that decide; one line a point, with
   the label in it.
3. Put instructive cases, with their labels, into context/cases.csv; keep what is there, drop what repeats.
4. Let get_context.py give the notes on all labels and the cases nearest to the question, nearest last, within the budget.

## In doubt

Prefer a case to a rule that has fewer than three cases behind it.
"""

REFLECTION = f"""# Reflection with the help of a model

{OVERVIEW}

Have a language model explain each mistake, merge the explanations into rules, and keep a rule only if the other answers agree with it.

## Method

1. With run_python, split data/train.json into wrong and right answers.
2. For every ten wrong answers ask call_llm, with a json_schema of a list of objects {{label, rule, evidence}}, which rule would have
   settled them.
3. With embed_similarity find rules that say the same, and merge them.
4. Check each rule against the right answers; drop it where it would spoil more than it mends.
5. Write the rules to context/rules.md, grouped by label, and let get_context.py give the rules of the labels nearest to the question.

## In doubt

A shorter file that is read is worth more than a longer one that is cut.
"""

EXAMPLES = {"direct curation": CURATION, "reflection with the help of a model": REFLECTION}

STEPS = """Proceed like this:
1. Review what was tried: the skills, the contexts they made, the wrong answers that are left.
2. Where a train figure lies far above its validation figure, the context learned its batch by heart: ask for rules that carry over, for
   support, for less. Where both are low, it misses what the task turns on: ask for richer material, or another way to pick.
3. Combine what worked in different skills, answer what failed, and bring in one idea that is new.
4. Write {folder}/SKILL.md, and scripts or templates beside it if they help. Then say in a sentence what you changed."""


def meta_prompt(task: Task, history: History, root: str, folder: str, problem: str) -> str:
    """What the meta agent is asked: interfaces, folders, what was tried, how to go on."""
    shown = "\n\n".join(f"## Example of a skill: {name}\n\n{text}" for name, text in EXAMPLES.items())
    parts = [
        f"# The task of the consumer\n\n{task.text}\nMetric: {task.metric}. Interfaces of a context:\n{listed(task.signatures)}",
        "# Folders\n\n"
        "- iterations/NN/skill/: the skill; iterations/NN/context/: the context it made, with context/ (files) and interfaces/ (programs)\n"
        "- iterations/NN/train/*.json: the consumer's answers to each batch, before the context learned from it\n"
        "- history.jsonl: all figures, a line an iteration\n"
        f"- {folder}/: your new skill; the only place where you may write, and where your programs start\n"
        f"All lie in {root}.",
        "# What was tried\n\n" + "\n\n".join(map(tried, history)),
        "# Skills as they may look\n\n" + shown,
        "# What to do\n\n" + STEPS.format(folder=folder),
    ]
    return "\n\n".join([*parts, *mending(problem)])


def tried(entry: Entry) -> str:
    """An iteration as the meta agent reads it."""
    if entry.skill is None:
        figures = f"validation {entry.val:.3f}, {entry.tokens:.0f} tokens a question"
        return f"## Iteration {entry.iteration}: the context to start from\n\n{figures}"
    state = "accepted" if entry.accepted else "not accepted"
    train = "" if entry.train is None else f"train {entry.train:.3f}, "
    wrong = "; ".join(f"{target} taken for {answer or 'nothing'} ({n})" for target, answer, n in entry.wrong[:5])
    return (
        f"## Iteration {entry.iteration} ({state})\n\n{train}validation {entry.val:.3f}, {entry.tokens:.0f} tokens a question, "
        f"{entry.rollouts} rollouts so far, folder {entry.folder}/\nMost frequent mistakes: {wrong or 'none'}\n\n{entry.skill.overview}"
    )


def base_prompt(task: Task, skill: Skill, rollouts: Sequence[Rollout], budget: int, problem: str) -> str:
    """What the base agent is asked."""
    wrong = sum(not one.is_correct for one in rollouts)
    parts = [
        f"# The task of the consumer\n\n{task.text}\nMetric: {task.metric}. Interfaces of a context:\n{listed(task.signatures)}",
        "# Your folder\n\n"
        f"- data/train.json: {len(rollouts)} answers, {wrong} of them wrong; fields summary, detailed_results (id, question, answer, "
        "target, is_correct)\n"
        "- context/: the files of the context, from earlier batches or empty\n- interfaces/: the programs\n"
        "- skill/: the skill\n"
        "What is elsewhere in the folder is thrown away at the end.",
        "# The program\n\n" + OPERATOR.format(budget=budget),
        "# The skill\n\n" + skill.text,
        "# What to do\n\n"
        "Follow the skill. Study wrong answers and right ones; curate the files, which usually matter more than the program's logic; keep "
        "what earlier batches taught. The figure that counts is that of questions you have not seen. Try your program with run_python "
        "before you end. When the folder is as it should be, say in a sentence what you changed.",
    ]  # fmt: skip
    return "\n\n".join([*parts, *mending(problem)])


def listed(signatures: Sequence[str]) -> str:
    return "\n".join(f"- {one}" for one in signatures)


def mending(problem: str) -> list[str]:
    """The error of the attempt before, if there was one."""
    return (
        [f"# What is wrong now\n\nAn earlier attempt left the folder as it is. {problem} Mend it."] if problem else []
    )
