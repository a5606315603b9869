"""Signs in how a text is set: chat templates, hidden markup, links that carry data away, bait to complete."""

from muniment.language.instructions.patterns import PatternSet
from muniment.language.instructions.signs import Sign

_MARKED = frozenset("<[#:{`|\\=*-_!")

_PATTERNS: tuple[tuple[str, float, str], ...] = (
    ("imitates_a_role", 0.70, r"<\|[a-z_]{2,24}\|>"),
    ("imitates_a_role", 0.70, r"\[/?(?:inst|sys|system)\]|<</?sys>>|<(?:start|end)_of_turn>|<s>\[inst|<\|(?:system"
                              r"|user)"),
    ("imitates_a_role", 0.55, r"(?m)^[ \t>*-]*#{2,}[ \t]*(?:new )?(?:system|instructions?|response|assistant|human"
                              r"|user|prompt"
                              r"|input|task)(?: (?:message|prompt|instructions?|override))?[ \t]*:"),
    ("imitates_a_role", 0.45, r"(?m)^[ \t\"'>*`\[{(-]*(?:system|sys|developer|system (?:message|prompt|note|update"
                              r"|alert|notice"
                              r"|override))[\])*`]*[ \t]*:[ \t]*\S"),
    ("imitates_a_role", 0.35, r"(?m)^[ \t\"'>*`\[{(-]*(?:assistant|ai|chatgpt|gpt|bot|chatbot|human|model"
                              r"|claude)[\])*`]*[ \t]*:"),
    ("imitates_a_role", 0.45, r"</?(?:system|instructions?|assistant|user_?input|user_query|context|information"
                              r"|important|prompt"
                              r"|admin|sys|secret|tool_?(?:call|result|response)|function_?(?:call|results)"
                              r"|document|human|rules"
                              r"|task)(?:[ _-][a-z_-]+)?/?>"),
    ("imitates_a_role", 0.50, r"(?:begin|end|start)(?:ning)? (?:of )?(?:the )?(?:system|user|prompt|instructions?"
                              r"|context|input|admin"
                              r"|conversation|document)[ a-z]{0,20}[\])>}=#*-]{2,}|[-=#*\[<]{2,}[ ]?(?:begin|end"
                              r"|start) (?:of )?"
                              r"(?:the )?(?:system|user|prompt|instructions?|context|input|admin|conversation"
                              r"|document)"),
    ("imitates_a_role", 0.50, r"(?:^|[\n.?!}\]\"']|\\n)[ \t*#\[(-]*(?:(?:new|important|additional|further|system"
                              r"|neue|hidden|special"
                              r"|urgent) )?(?:instruction|instruct|anweisung|instruktion|admin)[\])]*[ \t]*:|(?:new"
                              r"|hidden|system|secret|additional"
                              r"|updated|neue|urgent) (?:instructions|anweisungen|instruktionen)[\])]*[ \t]*:"),
    ("imitates_a_role", 0.50, r"(?:^|[\s$\[{(*])(?:context|kontext|documents?|dokumente?|passage"
                              r"|article)s?[ \t]*:[ \t]*[\[{(]"
                              r"|\$(?:documents?|context|question|input|prompt)\b"),
    ("imitates_a_role", 0.50, r"(?s)(?:input|eingabe|entrada|question|frage|q) ?: ?.{1,200}(?:output|ausgabe|salida"
                              r"|answer|antwort|a)"
                              r" ?: ?.{1,200}(?:input|eingabe|entrada|question|frage|q) ?: ?.{1,200}(?:output"
                              r"|ausgabe|salida"
                              r"|answer|antwort|a) ?:"),
    ("imitates_a_role", 0.40, r"\"role\" ?: ?\"(?:system|assistant|developer|user|tool)\""),
    ("baits_completion", 0.50, r"(?s)(?:^|\n)[ \t]*[\w .-]{1,30}:[ \t]*\S.*\n[ \t]*[\w .-]{1,30}:\s*$"),
    ("hidden_markup", 0.55, r"(?s)<[a-z][^<>]{0,300}(?:display ?: ?none|visibility ?: ?hidden|font-size ?: ?0"
                            r"|opacity ?: ?0[;\"' .]"
                            r"|color ?: ?(?:white|#fff(?:fff)?|transparent|rgba?\(255, ?255, ?255)|left ?: ?-\d{3,}"
                            r"|text-indent ?: ?-\d{3,}"
                            r"|height ?: ?[01]px|aria-hidden=.true|\bhidden\b)[^<>]{0,300}>\s*[^\s<]"),
    ("hidden_markup", 0.35, r"(?s)<!--[^<>]{0,40}[a-z]{2,}\s+[a-z]{2,}\s+[a-z]{2,}"),
    ("hidden_markup", 0.40, r"(?m)^\[(?://|comment|_)\]: ?(?:#|<>) ?[(\"']"),
    ("hidden_markup", 0.60, r"(?:\\n ?|\\ n ?){4,}|(?:\\r\\n){4,}"),
    ("exfiltration", 0.65, r"!?\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{1,300}[?&=/](?:[^)\s]{0,200})(?:\{|%7b|<|\["
                           r"|\$|\.\.\.|"
                           r"[?&=](?:secret|password|data|history|conversation|prompt|memory|summary|api_?key|token"
                           r"|user_?data)\b)"),
    ("exfiltration", 0.65, r"<img[^<>]{0,300}src ?= ?[\"']?https?://[^\"'\s<>]{1,300}[?&=](?:\{|%7b|\[|\$|\+"
                           r"|[\"'] ?\+)"),
    ("exfiltration", 0.45, r"https?://[^\s)\"'<>]{1,200}[?&][a-z_]{1,20}=(?:\{|%7b|\[|<|\$\{|\+)"),
    ("exfiltration", 0.40, r"(?:curl|wget|fetch|invoke-webrequest)\b[^\n]{0,120}https?://"),
)  # fmt: skip


_SIGNS = [Sign(reason, weight) for reason, weight, _ in _PATTERNS]
_COMPILED = PatternSet((pattern for _, _, pattern in _PATTERNS), case_sensitive=False)


def signs(text: str) -> list[Sign]:
    """What the way a text is set is a sign of."""
    return [] if _MARKED.isdisjoint(text) else [_SIGNS[number] for number in _COMPILED.matching(text)]


def without_tags(text: str) -> list[str]:
    """The text as it is read when its tags and comments are not shown, where it has any."""
    if "<" not in text or ">" not in text:
        return []
    first, *rest = text.split("<")
    parts = [first]
    for piece in rest:
        tag, closed, after = piece.partition(">")
        parts.append(after if closed else "<" + tag)
    return ["".join(parts)]
