"""What tests/peers/chat_templates.py renders: conversations for real templates, and small templates for single behaviours."""

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place\nnow.",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "A town, e.g. \"Köln\""},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        "days": {"type": ["integer", "null"], "minimum": 1}}, "required": ["place"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Searches <all> & 'more'.", "parameters": {"type": "object", "properties": {
        "queries": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {"fast": {"type": "boolean"}}}}, "required": []},
    "return": {"type": "string"}}}


def call(name, arguments, number):
    return {"id": f"call{number:05}", "type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = {"role": "system", "content": "You are terse. "}
HELLO = {"role": "user", "content": "Hello, who are you?"}
TURNS = [HELLO, {"role": "assistant", "content": "A model.\n"}, {"role": "user", "content": "  And what is 2 < 3?\n\n```py\nx = {}\n```"}]
TOOL_TURNS = [
    {"role": "user", "content": "Weather in Köln and in 東京?"},
    {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {"place": "Köln", "unit": "C", "days": 2}, 1)]},
    {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"temperature\": 12.5}"}]
THINKING = [HELLO, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nA model.", "reasoning_content": "They ask who I am."},
            {"role": "user", "content": "Why?"}]

CONVERSATIONS = {
    "plain": {"messages": [HELLO], "add_generation_prompt": True},
    "system": {"messages": [SYSTEM, HELLO], "add_generation_prompt": True},
    "several turns, no generation prompt": {"messages": [SYSTEM] + TURNS, "add_generation_prompt": False},
    "several turns, extra variables": {"messages": TURNS, "add_generation_prompt": True,
                                       "variables": {"enable_thinking": False, "thinking": False, "reasoning_effort": "low"}},
    "tools": {"messages": [SYSTEM, HELLO], "tools": [WEATHER, SEARCH], "add_generation_prompt": True},
    "tools with calls and results": {"messages": TOOL_TURNS, "tools": [WEATHER, SEARCH], "add_generation_prompt": True},
    "tools, answered": {"messages": [SYSTEM] + TOOL_TURNS + [{"role": "assistant", "content": "12.5 degrees."},
                                                            {"role": "user", "content": "Thanks"}],
                        "tools": [WEATHER], "add_generation_prompt": True},
    "two calls, arguments as text": {"messages": [
        HELLO, {"role": "assistant", "content": None, "tool_calls": [call("search", "{\"queries\": [\"a\"]}", 2),
                                                                    call("get_weather", "{\"place\": \"x\"}", 3)]},
        {"role": "tool", "tool_call_id": "call00002", "content": "none"}, {"role": "tool", "tool_call_id": "call00003", "content": "rain"}],
        "tools": [SEARCH, WEATHER], "add_generation_prompt": True},
    "content in parts": {"messages": [
        {"role": "system", "content": [{"type": "text", "text": "Look."}]},
        {"role": "user", "content": [{"type": "image", "image": "x.png"}, {"type": "text", "text": "What is it?"}]}],
        "add_generation_prompt": True},
    "reasoning": {"messages": THINKING, "add_generation_prompt": True, "variables": {"enable_thinking": True}},
    "continued": {"messages": [HELLO, {"role": "assistant", "content": "I am a "}], "continue_final_message": True},
    "documents": {"messages": [HELLO], "documents": [{"title": "One", "text": "First.", "doc_id": 1}], "add_generation_prompt": True},
    "wrong order": {"messages": [{"role": "assistant", "content": "I begin."}, HELLO, HELLO, {"role": "other", "content": "?"}]},
}

VARIABLES = {
    "n": 7, "m": -3, "f": 2.5, "big": 1e20, "tiny": 1.5e-07, "nothing": None, "yes": True, "empty": "", "s": "hello World",
    "u": "Grüße, 東京! ß ŉ", "w": "  two\twords \n", "lines": "a\n\nb\r\nc", "l": [3, 1, 2], "words": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": [1, {"x": None}], "Items": "i", "items": "key"}, "nested": [[1, 2], [3, [4]]], "floats": [1.0, 0.1, -0.0],
    "users": [{"name": "Zoe", "age": 30, "tags": {"k": "v"}}, {"name": "adam", "age": 25}, {"name": "Bob", "age": 30, "tags": {}}],
    "html": "<a href=\"x\">'&'</a>", "json": {"k\"": "\u00e9\u2028\n", "e": [], "o": {}, "t": [True, None, 1.5]},
}

EXPRESSIONS = r"""
n + m ~ n - m ~ n * m
n / m
n // m
n % m
m // n
m % n
-n // 2
-n % 3
f // 0.3
f % -0.4
-f % 0.4
2 ** 10
2 ** -1
2.0 ** 0.5
(-1) ** 3
n / 0
n % 0
1 / 3
7.0
1e16
1e15
123456789012345680.0
1e-5
0.0001
1_000 + 0x1F + 0b11 + 0o17
1.5e3
big
tiny
-0.0
floats
n == 7.0
1 == true
"1" == 1
none == false
n < f
n < m < f
m < n > f
1 < 2 < 3
"a" < "b"
"Z" < "a"
[1, 2] < [1, 3]
[1] == [1.0]
(1, 2) == [1, 2]
n < "a"
none < 1
yes + 1
true and 5
0 or "x"
not 0
not n == 7
n if yes
n if not yes
(n if not yes) is defined
n if not yes else m if m else 0
"a" "b" 'c'
"a" + "b" * 3
"a" + 1
[1] + [2]
[1] * 3
(1,) * 2
"ab" * -1
"x" ~ 1 ~ none ~ true ~ [1, "a"] ~ 2.0
"a" in s
"World" in s
"l" not in s
1 in l
5 in l
"b" in d
1 in "1"
n in n
none in [none]
l[0]
l[-1]
l[5]
l[5] is defined
l["a"]
l[5].x
d.b
d["b"]
d.a[1].x
d.items is callable
d["items"]
d.Items
d.nope
d.nope.x
d.nope is defined
d["nope"]["x"] is defined
undefined_name
undefined_name.x
undefined_name[0]
undefined_name + 1
undefined_name ~ "x"
undefined_name == none
undefined_name == other_undefined
undefined_name | length
undefined_name | default("z")
undefined_name is none
undefined_name in [1]
undefined_name in undefined_name
1 in undefined_name
undefined_name or 3
undefined_name()
-undefined_name
undefined_name | list
undefined_name | join
undefined_name | first
undefined_name | last
undefined_name | int
undefined_name | upper
undefined_name | tojson
undefined_name | map("upper") | list
undefined_name | trim
[undefined_name]
s[1]
s[-1]
s[1:4]
s[:-3]
s[::-1]
s[::2]
s[-3:]
s[10:2]
u[1:3]
u[::-1]
u[-1]
u | length
l[1:]
l[::-1]
l[:2]
l[5:]
(1, 2, 3)[1:]
range(5)[1:3] | list
range(10)[::-2] | list
s[1:2:0]
d[1:2]
n[1:2]
nested[1][1][0]
nested
d
words
(1,)
()
(1, 2)
{}
{"a": 1, 2: "b", none: 1.5, true: [], (1, 2): ()}
{1: "a", 1.0: "b", true: "c"}
{[1]: 2}
[1, [2, (3, "x")], {"a": none}]
"it's"
["it's", 'say "x"', 'both \' and "', "tab\t", "nl\n", "\\", "\x00\x7f\u200b", "é", "\U0001F600", "\u00ad"]
"\n\t\\\x41\u0042\101\q\'"
u
[u]
html
html | escape
html | e | e
html | safe
html | safe | e
html | forceescape
html | striptags
html | safe + html
html | escape is escaped
s | upper
s | lower
s | title
s | capitalize
u | upper
u | lower
u | title
u | capitalize
u | swapcase
u.swapcase()
u.title()
"ΑΣ ΣΑΣ".lower()
"ΑΣ’Α ΑΣ’ ⅣΣ ªΣ.Σ՟ 1ʰΣ ΆͅΣ：Β Α：Σ Ⓐ．Σ 🄰Σ ͅΣ".lower()
"ǆ ﬁ ß".upper()
"ǆx ﬁx".title()
"ǆx".capitalize()
"they're bill's-day (x) [y]" | title
"they're bill's-day".title()
w | trim
w | trim | length
"xxaxx" | trim("x")
w.strip() ~ "|"
w.lstrip() ~ "|"
w.rstrip() ~ "|"
"abcba".strip("ab")
"xyabcyx".strip("xy")
"xyabcyx".lstrip("xy")
"a,b,,c".split(",")
"a,b,,c".split(",", 1)
"a,b,,c".rsplit(",", 1)
w.split()
" a b c ".split(none, 1)
" a b c ".rsplit(none, 1)
" a b c ".split(maxsplit=1)
"".split()
"".split(",")
"abc".split("")
lines.splitlines()
lines.splitlines(true)
"a\x0bb\x1cc\u2028d".splitlines()
"a-b-c".partition("-")
"a-b-c".rpartition("-")
"abc".partition("-")
"abc".rpartition("-")
"-".join(words)
"-".join([1])
"-".join("abc")
s.startswith("he")
s.startswith(("x", "he"))
s.startswith("World", 6)
s.endswith("ld")
s.endswith(["ld"])
s.find("o")
s.find("o", 5)
s.rfind("o")
s.find("zz")
s.index("zz")
s.count("l")
s.count("")
u.find("東")
s.replace("l", "L")
s.replace("l", "L", 1)
"abc".replace("", "-")
s | replace("o", "0")
s | replace("o", "0", 1)
123 | replace("2", "x")
s.removeprefix("hello ")
s.removesuffix("ld")
s.center(20, "*")
s.center(15)
"ab".center(5)
"abc".center(6)
s.ljust(14, ".")
s.rjust(14)
"-5".zfill(4)
"5".zfill(4)
"a\tb".expandtabs(4)
s.isalpha()
"abc".isalpha()
"12".isdigit()
"½".isnumeric()
"²".isdigit()
"²".isdecimal()
"a1".isalnum()
" \t".isspace()
"".isspace()
"ABC".isupper()
"Abc".isupper()
"abc1".islower()
"Hello World".istitle()
"é".isascii()
s.encode is callable
s.nope
s.nope()
s.__class__
s.__class__.mro()
d.__class__
l.append(1)
l.append is defined
d.update({})
d.pop("b")
d.get("b")
d.get("zz")
d.get("zz", 5)
d.keys()
d.values()
d.items()
d["items"]()
{"a": 1}.items()
{"a": 1}.keys() | list
{"a": 1}.items() | list
{"a": 1}.values() | sum
d.keys() | list
d.copy()
l.index(2)
l.index(9)
l.count(1)
l.copy()
(1, 2).index(2)
"{} {}".format(1, "a")
"{1} {0}".format(1, "a")
"{x} {y!r}".format(x=1, y="a")
"{:>5}|{:<5}|{:^5}|{:05d}|{:+}|{:,}".format(1, 2, 3, 4, 5, 1234567)
"{:.2f} {:e} {:g} {:%}".format(3.14159, 12345.678, 0.0001, 0.25)
"{:x} {:#x} {:b} {:o} {:c}".format(255, 255, 5, 8, 65)
"{:*^10} {:.2}".format("ab", "abcdef")
"{0[0]} {1[b]} {2.age}".format(l, d, users[0])
"{{}} {}".format(1)
"{} {1}".format(1, 2)
"{}".format()
"{x}".format()
"{:{}}".format("a", 5)
"{:.3}".format(2.5)
"{}".format(2.0)
"{:5}".format(true)
"{:d}".format("a")
"%s %d %5.2f %r" % ("a", 3, 2.5, "q")
"%s" % 1
"%s" % [1, 2]
"%(b)s" % d
"%05d|%-5d|%+d|%x|%X|%o|%e|%g|%%" % (42, 42, 42, 255, 255, 8, 1.5, 0.5)
"%s %s" % ("a",)
"%d" % "a"
"%s" % ("a", "b")
"%.3s|%5s|%-5s|" % ("abcdef", "a", "b")
"%c%c" % (65, "b")
"%s, %s!" | format("Hello", "x")
"%(a)s" | format(a=1)
n | string + "x"
n | abs
m | abs
f | abs
"x" | abs
f | round
2.675 | round(2)
3.5 | round
2.5 | round
-2.5 | round
n | round
n | round(-1)
15 | round(-1)
25 | round(-1)
f | round(0, "ceil")
f | round(0, "floor")
n | round(1, "ceil")
1234.5678 | round(2, "floor")
f | round(1, "x")
"42" | int
"42.9" | int
"x" | int
"x" | int(5)
" 42 " | int
"0x1A" | int(0, 16)
"1_000" | int
"1__0" | int
f | int
none | int
yes | int
"1.5" | float
"x" | float
"x" | float(1.5)
"1e3" | float
"inf" | float
"-nan" | float
n | float
l | length
d | length
n | length
l | first
l | last
"" | first
[] | first
[] | last
s | first
s | last
d | first
d | last
l | sum
[] | sum
floats | sum
[[1], [2]] | sum(start=[])
words | sum
users | sum("age")
users | sum(attribute="age", start=10)
l | min
l | max
words | min
words | max
words | max(case_sensitive=true)
[] | max
users | max(attribute="age")
l | sort
l | sort(reverse=true)
words | sort
words | sort(case_sensitive=true)
words | sort(reverse=true)
users | sort(attribute="name") | map(attribute="name") | list
users | sort(attribute="age,name") | map(attribute="name") | list
users | sort(attribute="age", reverse=true) | map(attribute="name") | list
[1, "a"] | sort
[1, 2.5, true] | sort
nested | sort
words | unique | length
words | unique | list
[1, 1.0, true, 2] | unique | list
["a", "A"] | unique(true) | list
d | dictsort
{"b": 1, "A": 3, "c": 2} | dictsort
{"b": 1, "A": 3, "c": 2} | dictsort(true)
{"b": 1, "A": 3, "c": 2} | dictsort(false, "value")
{"b": 1, "A": 3, "c": 2} | dictsort(reverse=true)
{"b": 1, "A": 3} | dictsort(by="x")
users | groupby("age") | length
users | groupby("age") | map(attribute="grouper") | list
users | groupby("age")
users | groupby("tags.k", default="-") | map("first") | list
users | map(attribute="name") | list
users | map(attribute="tags.k", default="-") | list
users | map(attribute="nope") | list
users | map("length") | list
words | map("upper") | join(",")
words | map("replace", "a", "x") | list
words | map("nope") | list
words | map | list
l | select("odd") | list
l | reject("odd") | list
l | select | list
[0, 1, "", "a"] | select | list
l | select(">", 1) | list
l | select("greaterthan", 1) | list
l | select("in", [1, 2]) | list
words | select("equalto", "A") | list
users | selectattr("age", "eq", 30) | map(attribute="name") | list
users | selectattr("tags") | list | length
users | rejectattr("tags") | list | length
users | selectattr("tags", "defined") | list | length
users | selectattr("age") | first
users | selectattr("age", ">", 26) | list | last
users | selectattr("age") | last
users | selectattr("age") | length
users | selectattr | list
users | selectattr("age", "nope") | list
l | list
s | list
d | list
range(3) | list
n | list
l | reverse | list
l | reverse | length
s | reverse
(1, 2) | reverse | list
d | items | list
n | items | list
undefined_name | items | list
l | join
l | join("-")
words | join(", ", attribute="0")
users | join(",", attribute="name")
s | join("-")
n | join
l | batch(2) | list
l | batch(2, "x") | list
[1,2,3,4,5,6,7] | batch(3, 0) | list
[1,2,3,4,5,6,7] | slice(3) | list
[1,2,3,4,5,6,7] | slice(3, "x") | list
[] | batch(2) | list
s | center(20)
s | indent
lines | indent(2)
lines | indent(2, true)
lines | indent(2, blank=true)
lines | indent("> ", first=true)
"" | indent
s | wordcount
u | wordcount
s | truncate(5)
s | truncate(5, leeway=0)
s | truncate(8, true, leeway=0)
s | truncate(8, false, "..", 0)
s | truncate(2)
"a b&c/d" | urlencode
{"a b": "c&d", "e": 1} | urlencode
12345 | filesizeformat
1 | filesizeformat
123456789 | filesizeformat(true)
d | attr("b")
(s | attr("upper"))()
nothing | default("x")
nothing | default("x", true)
empty | default("x", true)
empty | d("x")
n | tojson
f | tojson
big | tojson
s | tojson
u | tojson
u | tojson(ensure_ascii=true)
"\U0001F600" | tojson(ensure_ascii=true)
json | tojson
json | tojson(indent=2)
json | tojson(indent=0)
json | tojson(indent="--")
json | tojson(separators=(",", ":"))
json | tojson(indent=4, separators=(",", " = "))
{"b": 1, "a": 2} | tojson(sort_keys=true)
{"b": 1, 2: 3} | tojson(sort_keys=true)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
{(1, 2): 3} | tojson
(1, "a") | tojson
range(3) | tojson
l | map("string") | tojson
d.items() | tojson
html | tojson
"\x7f\x1f\u2028" | tojson
namespace(a=1) | tojson
n is odd
n is even
n is divisibleby 7
n is divisibleby(3)
n is not even
n is defined and s is string
n is number
yes is number
f is float
n is integer
yes is integer
yes is boolean
yes is true
n is true
nothing is none
nothing is not none
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
n is sequence
l is iterable
n is iterable
none is iterable
range is callable
s is callable
s is lower
"abc" is lower
"ABC" is upper
n is eq 7
n is equalto(7)
n is ne 7
n is gt 3
n is lt 3
n is ge 7
n is le 7
n is in [7]
n is sameas 7
nothing is sameas none
"upper" is filter
"nope" is filter
"odd" is test
s is string and n is string
n is odd or nope
n is nope
n | nope
(n | nope) if false else 1
n if true else (n is nope)
range(3)
range(1, 4) | list
range(4, 0, -2) | list
range(0)
range(5) | length
range(100001)
range(1000000000)
range("a")
range(1, 2, 0)
range(3) | first
2 in range(3)
dict(a=1, b=2)
dict([("x", 1)], y=2)
dict({"a": 1})
dict(1)
namespace(a=1).a
namespace({"a": 2}).a
namespace(a=1).b is defined
namespace(_a=1)
joiner() is callable
cycler("a", "b").next()
cycler("a", "b").current
cycler()
lipsum is callable
raise_exception("no!")
raise_exception("a " ~ n)
strftime_now("%Y-%m-%d %H:%M:%S %d %b %B %a %A %j %p %I %y %%")
strftime_now("%-d %e")
n()
s()
s.upper is callable
loop
loop is defined
s.upper is defined
d.b.c
d.b.c is defined
d.b.c.d is defined
(users | first).name
users[0].name[0]
users[0]["tags"]["k"]
users.0.name
l.0
(n, m)[0]
n if n else
1 +
(1
[1, 2
{"a"}
"abc
n..m
'a' if
n | upper | lower
n|string|length
- n
+ n
--n
-n|abs
-1|abs
(-1)|abs
-n ** 2
2 ** 3 ** 2
1 - 1 - 1
2 * 3 % 4
1 ~ 2 + 3
"a" ~ "b" in "ab"
not "a" in "b"
1 in [1] == true
true or false and false
n is odd and not m is odd
[n, m,]
{"a": 1,}
(1, 2,)
dict(**{"a": 1})
dict(*[[("a", 1)]])
range(*[1, 3]) | list
"{}-{}".format(*["a", "b"])
s.split(sep=" ")
s.split(bad=1)
true
True
none
None
false
nothing ~ ""
[nothing, yes]
1 if 1 else 2 ~ "x"
9223372036854775807
0.1 + 0.2
1e308 * 10
100000000000000000000.0
5 // 2 * 2.0
7 // 2.0
"\u00e9" == "é"
words | map("lower") | unique | sort | join
words | sort | first
(words | map("upper")) is iterable
(words | map("upper"))[0]
(words | map("upper")) | length
[1,2,3] | map("multiply", 2) | list
users | map(attribute="name") | map("length") | sum
users | selectattr("name", "in", ["Zoe"]) | list | length > 0
"a" < 1
none ~ none
"%s" % none
"abc"[1] ~ "abc"[-1]
"abc".upper().lower().title()
"ab\ncd" | replace("\n", "\\n")
""" .strip("\n").split("\n")

TEMPLATES = [
    "{% for i in l %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}"
    "{{ loop.length }} {% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }}|{% endfor %}",
    "{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for i in [1,1,2,2,3] %}{{ loop.changed(i) }}{{ loop.cycle('a', 'b') }} {% endfor %}",
    "{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for i in [1] %}x{% else %}none{% endfor %}",
    "{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{{ loop.length }}{{ loop.last }};{% endfor %}",
    "{% for i in l if i > 9 %}x{% else %}none{% endfor %}",
    "{% for k, v in d.a[1].items() %}{{ k }}={{ v }}{% endfor %}",
    "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2}|dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}",
    "{% for a, b in [[1]] %}{{ a }}{% endfor %}",
    "{% for a in n %}{{ a }}{% endfor %}",
    "{% for a in none %}{{ a }}{% endfor %}",
    "{% for a in nope %}{{ a }}{% else %}nothing{% endfor %}",
    "{% for a in 'añb' %}{{ a }}.{% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1,2] %}{% for j in [3,4] %}{{ i }}{{ j }}{{ loop.index }}{% if j == 3 %}{% continue %}{% endif %};{% endfor %}"
    "{{ loop.index }}{% endfor %}",
    "{% break %}", "{% for i in l %}{% macro x() %}{% break %}{% endmacro %}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% if false %}{% set x = 2 %}{% endif %}{{ x }}|{{ x is defined }}",
    "{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.y = 'q' %}{{ ns.y }}{{ ns.z }}",
    "{% set ns = namespace(found=false) %}{% for m in l %}{% if m == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "{% set d.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a %}x{{ n }}y{% endset %}{{ a }}{{ a|length }}",
    "{% set a | upper %}x{{ n }}y{% endset %}{{ a }}", "{% set a | replace('x', 'z') | upper %}x{% endset %}{{ a }}",
    "{% set a %}{% set inner = 5 %}{% endset %}{{ inner is defined }}",
    "{% set loop = 1 %}{{ loop }}", "{% set true = 1 %}", "{% set 1 = 2 %}", "{% set x[0] = 2 %}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(x=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m() %}{{ n }}{{ q is defined }}{% endmacro %}{% set q = 1 %}{{ m() }}",
    "{% set q = 1 %}{% macro m() %}{{ q }}{% endmacro %}{% set q = 2 %}{{ m() }}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(5) }}",
    "{% macro m() %}{{ caller() }}!{% endmacro %}{% call m() %}in{{ n }}{% endcall %}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}in{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}  a  {% endmacro %}[{{ m() | trim }}]", "{{ m() }}{% macro m() %}x{% endmacro %}",
    "{% macro m() %}x{% endmacro %}{{ m }}{{ m.name }}", "{% macro a() %}A{% endmacro %}{% macro b() %}{{ a() }}B{% endmacro %}{{ b() }}",
    "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}abc{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z }}",
    "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}",
    "{% if n %}a{% elif s %}b{% else %}c{% endif %}", "{% if not n %}a{% elif s %}b{% else %}c{% endif %}",
    "{% if empty %}a{% elif nothing %}b{% elif false %}d{% else %}c{% endif %}", "{% if nope %}a{% endif %}", "{% if nope.x %}a{% endif %}",
    "{% if n == 7 and s is string or nope.x %}ok{% endif %}", "{% if n, %}tuple{% endif %}",
    "{% generation %}abc{{ n }}{% endgeneration %}", "{% generation %}{% set zz = 1 %}{% endgeneration %}{{ zz is defined }}",
    "{% for i in l %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% raw %}{{ n }} {% if %}{% endraw %}", "a {%- raw -%}  {{ x }}  {%- endraw -%} b", "{# c #}x{#- d -#} y", "a\n  {# c #}\nb",
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  {%+ if true %}\nb{% endif +%}\nc", "a \n {%- if true -%} \n b \n {%- endif -%} \n c",
    "  {{ n }}  \n  {{- n -}}  \n x", "x {%- set a = 1 %}\n\ny", "{% set a = 1 -%}\n\n  y", "{% set a = 1 %}\n\ny", "{{ n }}\n{{ m }}\n",
    "a\r\nb\rc\n", "trailing\n\n", "\n{% if true %}\n\nx{% endif %}\n", "\t{% if true %}x{% endif %}", "x\t{% if true %}x{% endif %}",
    "{{ '{{' }} {{ '}}' }} {{ '{%' }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a': {'b': 1}} }}", "{{ '}}' ~ \"%}\" }}",
    "{% if '%}' == '%}' %}x{% endif %}", "{", "{{", "{%", "{#", "{{ }}", "{% %}", "}} %} #}", "{ { x } }", "{{ n }", "{{ n %}", "{% if n }}",
    "{% if n %}", "{% endif %}", "{% for x in %}{% endfor %}", "{% else %}", "{% foo %}", "{% for x in l %}{% endif %}{% endfor %}",
    "{% raw %}x", "{{ 1 2 }}", "{{ n n }}", "{{ $ }}", "{{ n ! m }}", "{{ (1, 2 }}", "{{ [1) }}", "{{ 'a }}", "{% set %}", "{% set x %}",
    "{% include 'x' %}", "{% if false %}{% include 'x' %}{% endif %}ok", "{% extends 'x' %}", "{% import 'x' as y %}",
    "{% if false %}{{ n | nope }}{% endif %}ok", "{% if true %}{{ n | nope }}{% endif %}", "{% for i in [] %}{{ n | nope }}{% endfor %}",
    "{% if false %}{% for i in [] %}{{ n | nope }}{% endfor %}{% endif %}", "{{ (n|nope) if false else 'ok' }}",
    "{% macro m() %}{{ n is nope }}{% endmacro %}", "{% print n, m %}", "{% block b %}x{{ n }}{% endblock %}", "{% block b %}x{% endblock b %}",
    "{% for i in [1,[2,[3]]] recursive %}{{ loop.depth }}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}{% endif %}{% endfor %}",
    "{% for i in l %}{{ loop(l) }}{% endfor %}", "{% for i in l %}{{ loop }}{% endfor %}", "{% for i in l %}{{ loop.nope }}{% endfor %}",
    "{% for i in words|map('upper') %}{{ i }}{{ loop.length }}{{ loop.revindex }}{{ loop.last }}{% endfor %}",
    "{% set g = words|map('upper') %}{{ g|list }}{{ g|list }}", "{% set g = words|select %}{% for i in g %}{{ i }}{% endfor %}{{ g|list }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "{% set j = joiner('|') %}{% for i in l %}{{ j() }}{{ i }}{% endfor %}", "{% set j = joiner() %}{{ j() }}{{ j() }}{{ j() }}",
    "{% for g, items in users|groupby('age') %}{{ g }}:{% for u in items %}{{ u.name }}{% endfor %};{% endfor %}",
    "{% for g in users|groupby('age') %}{{ g.grouper }}{{ g.list|length }}{{ g[0] }};{% endfor %}",
    "{% set messages = l %}{{ messages }}", "{% set range = 1 %}{{ range }}", "{%- set x = [] -%}{% for i in l %}{% set _ = x.append(i) %}{% endfor %}{{ x }}",
    "{% set x = l + [4] %}{{ x }}{{ l }}", "{% set x = dict(d, z=1) %}{{ x.z }}", "{{ d.items()|list|length }}", "{{ 'a' ~ '\\n' ~ 'b' }}",
    "{{- 'x' -}}", "{{+ 1 }}", "{{ 1 +}}", "{%- if true -%}\n\n a \n\n{%- else -%} b {%- endif -%}", "a{#\n\n#}\n\nb",
    "{% if true %}  \n  {% endif %}  \n x", "{% for x in l -%}\n  {{ x }}\n{%- endfor %}", "  {%- for x in l %}\n  {{ x }}\n  {%- endfor %}\n",
    "{% for i in l %}{% set x = x|default(0) + i %}{{ x }}{% endfor %}", "{% for n in l %}{{ n }}{% endfor %}{{ n }}",
    "{% for i in l %}{% if i == 1 %}{% set y = i %}{% endif %}{{ y }}{% endfor %}|{{ y }}",
    "{% set x = 1 %}{% macro f() %}{% set x = 2 %}{{ x }}{% endmacro %}{{ f() }}{{ x }}", 
    "{% set f = namespace() %}{% set f.g = 'x'.upper %}{{ f.g() }}", "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns.self.self is defined }}",
    "{% do l.append(1) %}", "{% trans %}x{% endtrans %}", "{{ users | tojson }}", "{{ users | tojson(indent=2) }}", "{{ nested | tojson(indent=1) }}",
    "{{ 'x' | indent(4, first=True) }}", "{% set x = '''a''' %}{{ x }}", "{{ \"a\\\nb\" }}", "line1\\nline2{{ '\\\\n' }}", "{{ n}}{{m }}{{n}}",
    "{%if n%}x{%endif%}", "{%-if n-%} x {%-endif-%} ", "{{n if n else m}}", "{{(n)}}", "{{ 1if true else 2 }}", "{{ 1.5.x }}", "{{ 1.x }}",
    "{% for x in [1,2,3] %}{{ x }}{% endfor %}{{ x is defined }}", "{{ x }}{% for x in l %}{% endfor %}", "{% raw %}", "{% raw -%} ", "{#-", "a {#", "{{ l is sameas l }}",
]

# Templates of our own, in the manner of those that models have; the goldens of tests/text are made with them.
OWN = {
    "turns": """{#- Turns between marks. -#}
{%- set ns = namespace(system="", first=true) -%}
{%- for message in messages if message.role == "system" %}{% set ns.system = ns.system + message.content %}{% endfor -%}
{{ bos_token }}{% if ns.system %}<sys>{{ ns.system | trim }}</sys>
{% endif %}
{% for message in messages %}
    {%- if message.role == "system" %}{% continue %}{% endif %}
    {%- if ns.first and message.role != "user" %}
        {{- raise_exception("The first message is the user's, not " ~ message.role) }}
    {%- endif %}
    {%- set ns.first = false %}
<{{ message.role }}>
{% if message.content is string %}
{{ message.content }}
{%- else %}
{% for part in message.content or [] %}
{{ part.text if part.type == "text" else "[" ~ part.type ~ "]" }}
{% endfor %}
{%- endif %}
</{{ message.role }}>{{ eos_token if message.role == "assistant" }}
{% endfor %}
{% if add_generation_prompt %}<assistant>
{% if enable_thinking is defined and not enable_thinking %}<think></think>
{% endif %}{% endif %}""",
    "tools": """{%- macro kind(schema) -%}
{%- if schema.type is string %}{{ schema.type }}{% elif schema.type is iterable %}{{ schema.type | join(" | ") }}{% else %}any{% endif -%}
{%- endmacro -%}
{%- if tools %}
Tools:
{%- for tool in tools | map(attribute="function") %}
- {{ tool.name }}({% for name, schema in tool.parameters.properties | dictsort %}{{ name }}: {{ kind(schema) }}
{%- if name not in tool.parameters.required %}?{% endif %}{{ ", " if not loop.last }}{% endfor %})
  {{ tool.description | replace("\\n", " ") | indent(2) }}
{{ tool | tojson(indent=2) | indent(4, first=True) }}
{%- endfor %}
{% endif -%}
{%- for m in messages -%}
{%- if m.tool_calls is defined and m.tool_calls %}
{% generation %}{% for call in m.tool_calls %}CALL {{ call.function.name }} {{ call.function.arguments | tojson if call.function.arguments is mapping else call.function.arguments }}
{% endfor %}{% endgeneration %}
{%- elif m["role"] == "tool" %}
RESULT {{ m.tool_call_id[-5:] }}: {{ m.content }}
{% else %}
{{ m.role | upper }}{{ ": %s" | format(m.content) }}
{% endif -%}
{%- endfor -%}
{%- if documents %}{% for d in documents %}[{{ loop.index }}] {{ d.title }}: {{ d.text }}{% endfor %}{% endif -%}
{%- if add_generation_prompt %}ASSISTANT:{% endif -%}""",
    "reasoning": """{%- for message in messages %}
{%- set content = message.content if message.content is string else "" %}
{%- set reasoning = message.reasoning_content or "" %}
{%- if "</think>" in content %}
{%- set reasoning = content.split("</think>")[0].rstrip("\\n").split("<think>")[-1].lstrip("\\n") %}
{%- set content = content.split("</think>")[-1].lstrip("\\n") %}
{%- endif %}
{{- "<|" + message.role + "|>" + (reasoning.strip() ~ "|" if reasoning and loop.index0 > messages | length - 3 else "") + content.strip() }}
{%- if (loop.last or loop.nextitem.role != message.role) and message.role != "assistant" %}{{ "<|end|>" }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<|assistant|>" }}{% endif %}""",
}
