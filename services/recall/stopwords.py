"""Words that say too little to be searched by: English function words, Chinese particles."""

_ENGLISH = """
a about above after again against all also am an and any are aren't as at be because been before being below
between both but by can can't could couldn't did didn't do does doesn't doing don't down during each few for
from further had hadn't has hasn't have haven't having he her here hers herself him himself his how i i'd
i'll i'm i've if in into is isn't it it's its itself just let's me more most my myself no nor not now of off
on once only or other our ours ourselves out over own same shall she should shouldn't so some such than that
that's the their theirs them themselves then there there's these they they're they've this those through to
too under until up upon us very was wasn't we we're we've were weren't what what's when where which while
who whom whose why will with won't would wouldn't you you'd you'll you're you've your yours yourself
yourselves
"""

ENGLISH = frozenset(_ENGLISH.split())

CHINESE = frozenset(
    "的了是在我你他她它们这那吗呢吧啊呀也都就和与或及之其被把给对从到向为于以而且但很又还再着过么什哪谁个些"
)
