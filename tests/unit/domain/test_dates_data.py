"""Hand-checked expressions in English and Chinese, laws of both, and what is no date."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from services.domain.dates import Prefer, Relation, TimeExpression, find, read
from services.domain.instants import Instant, Precision, instant, moment, period

SAID = instant(datetime(2026, 6, 30, 14, 5, tzinfo=UTC))  # a Tuesday
DATA = Path(__file__).parents[2] / "data" / "dates"
DAY = 86_400_000_000


def rows(name: str) -> list[tuple[str, ...]]:
    lines = (DATA / f"{name}.tsv").read_text("utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]


CHECKED = rows("english") + rows("chinese")


def shown(at: Instant | None) -> str:
    return "" if at is None else f"{moment(at):%Y-%m-%d}"


def test_there_are_enough_of_each() -> None:
    assert len(rows("english")) >= 30
    assert len(rows("chinese")) >= 60


@pytest.mark.parametrize("row", CHECKED, ids=lambda row: row[0])
def test_a_checked_expression(row: tuple[str, ...]) -> None:
    sentence, text, start, end, precision, relation = row
    (found,) = find(sentence, SAID)
    assert (found.text, shown(found.start), shown(found.end)) == (text, start, end)
    assert (found.precision.name, found.relation.value) == (precision, relation)
    assert sentence[found.begin : found.finish] == found.text
    assert 0 < found.confidence <= 1


@pytest.mark.parametrize(
    "sentence",
    ["我喜欢五月天的歌", "周一到周五我上班", "每周三开会", "每年三月", "他住在3号楼", "三四年前", "七八年",
     "第一天", "一天一个苹果", "我有三个月没见他", "坐2号线", "康熙三年五月", "神龙二年正月初一",
     "三年后他搬走了", "先天后天性", "2月30日", "2019年2月29日", "我喜欢国庆节", "春天很美", "十月怀胎",
     "三点", "最近很忙", "以前我住在那里", "一个星期", "2025年13月1日", "30岁", "我要去一个月"],
)  # fmt: skip
def test_what_only_looks_like_a_chinese_date_is_left_alone(sentence: str) -> None:
    assert find(sentence, SAID) == []


def test_chinese_plans_look_ahead() -> None:
    found = [find(text, SAID, prefer=Prefer.FUTURE)[0] for text in ("周五", "三天后", "八月")]
    assert [shown(item.start) for item in found] == ["2026-07-03", "2026-07-03", "2026-08-01"]


def test_the_time_zone_decides_which_day_the_chinese_yesterday_is() -> None:
    late = instant(datetime(2026, 6, 30, 20, 0, tzinfo=UTC))
    (utc,), (shanghai,) = find("昨天", late), find("昨天", late, "Asia/Shanghai")
    assert (shown(utc.start), shown(shanghai.start)) == ("2026-06-29", "2026-06-30")


def test_languages_mix() -> None:
    found = find("我 last week 去了 Graz，昨天回来。It was in May 2024.", SAID)
    assert [shown(item.start) for item in found] == ["2026-06-22", "2026-06-29", "2024-05-01"]


@pytest.mark.parametrize("text", ["去年除夕", "2024-01-31", "三年前", "last Friday", "juin 2024"])
def test_a_whole_expression_is_read(text: str) -> None:
    assert read(text, SAID) is not None


@pytest.mark.parametrize(
    "text", ["不久以前", "某天", "小时候", "when I was young", "soon", "12", "in a bit", "once"]
)
def test_a_whole_expression_that_says_no_date_is_refused(text: str) -> None:
    assert read(text, SAID) is None


def test_a_foreign_month_is_as_coarse_as_it_is_written() -> None:
    found = read("juin 2024", SAID)
    assert found is not None
    assert (shown(found.start), shown(found.end), found.precision) == (
        "2024-06-01",
        "2024-07-01",
        Precision.MONTH,
    )


RELATIVE = [
    "yesterday", "the day before yesterday", "last Friday", "two weeks ago", "last week", "3 days ago",
    "last weekend", "昨天", "前天", "大前天", "上周三", "上周", "两周前", "三天前", "上周末", "下下周日",
    "周三", "星期日", "明天",
]  # fmt: skip


@given(st.sampled_from(RELATIVE), st.integers(-3000, 3000))
def test_whole_weeks_later_the_same_words_mean_whole_weeks_later(text: str, weeks: int) -> None:
    shift = 7 * weeks * DAY
    (now,), (then,) = find(text, SAID), find(text, Instant(SAID + shift))
    assert (then.start, then.end) == (_later(now.start, shift), _later(now.end, shift))


@given(
    st.sampled_from(["yesterday", "昨天", "前天", "3 days ago", "三天前", "明天", "大后天"]),
    st.integers(-20000, 20000),
)
def test_days_later_the_same_words_mean_days_later(text: str, days: int) -> None:
    (now,), (then,) = find(text, SAID), find(text, Instant(SAID + days * DAY))
    assert (then.start, then.end) == (_later(now.start, days * DAY), _later(now.end, days * DAY))


def _later(at: Instant | None, shift: int) -> Instant | None:
    return None if at is None else Instant(at + shift)


@given(st.sampled_from([row[0] for row in CHECKED]), st.integers(0, 40_000 * DAY))
def test_an_interval_lies_in_periods_of_its_precision(text: str, said: int) -> None:
    for item in find(text, Instant(said)):
        assert item.at is not None
        if item.relation is not Relation.AT or item.start is None or item.end is None:
            continue
        assert item.start < item.end
        if item.precision in {Precision.WEEK, Precision.MONTH, Precision.YEAR} and _is_whole(item):
            held = period(item.start, item.precision)
            assert (item.start, item.end) == (held.start, held.end)


def _is_whole(item: TimeExpression) -> bool:
    """Parts of months, halves of years and decades are told by the next precision, not by their own."""
    return not any(part in item.text for part in ("底", "初", "early", "late", "年代"))


PIECES = (
    "昨 天 前 大 上 下 周 星期 三 五 十 一 二 零 百 个 月 年 日 号 半 几 多 从 到 至 自 以来 以前 "
    "后 之 间 与 的 了 底 初 第 季度 春 世纪 年代 农历 正月 节 国庆 春节 去年 今年 2025 07 9999 99 - / . "
    "， 和 last week in May"
)


@given(st.lists(st.sampled_from(PIECES.split()), max_size=14).map("".join), st.sampled_from(list(Prefer)))
def test_no_order_of_characters_breaks_the_rules(text: str, prefer: Prefer) -> None:
    position = 0
    for found in find(text, SAID, "Asia/Shanghai", prefer):
        assert position <= found.begin < found.finish
        assert text[found.begin : found.finish] == found.text
        assert found.at is not None
        position = found.finish
    read(text, SAID)


@given(st.integers(1, 9999), st.sampled_from(["天", "周", "个月", "年"]))
def test_counts_too_great_for_the_calendar_are_no_chinese_dates(count: int, unit: str) -> None:
    for found in find(f"{count}{unit}前", SAID):
        assume(found.start is not None)
        assert found.at is not None
        assert found.at < SAID
