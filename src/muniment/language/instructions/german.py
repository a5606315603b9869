"""How text gives orders to a model in German."""

from muniment.language.instructions.rules import Rule, gap, one_of

_IGNORE = one_of(
    "vergiss|vergesst|vergessen sie|vergesse|ignorier|ignoriere|ignorieren sie|missachte|missachten sie",
    "verwirf|verwerfen sie|ubergeh|ubergehe|ubergehen sie|umgehe|uberschreibe|losch|losche|loschen sie|streiche",
    "hor auf|beachte (?:nicht|keine|nicht mehr)|befolge (?:nicht|keine)",
)
_EARLIER = one_of(
    "vorherige[nrs]?|vorige[nr]?|vorangegangene[nr]?|vorangehende[nr]?|vorhergehende[nr]?|bisherige[nr]?|fruhere[nr]?",
    "obige[nr]?|oben|alle|aller|allen|alles|samtliche[nr]?|jede|deine[nr]?|ihre[nr]?|eure|gegebene[nr]?"
    "|bereitgestellte[nr]?",
    "ursprungliche[nr]?|davor|zuvor|vorher|gesagte[ns]?|restlichen|urspruenglichen|fruehere[nr]?|saemtliche",
)
_ORDERS = one_of(
    "anweisung(?:en)?|instruktion(?:en)?|befehle?n?|aufgaben?|auftrage?|auftragen|vorgaben?|regeln?|anordnung(?:en)?",
    "angaben?|informationen|prompts?|richtlinien|beschrankungen|einschrankungen|kontext|anleitung(?:en)?|auftraege",
    "dokumente?|artikel|texte?|vorschriften|arbeitsauftrage|system ?prompts?",
)
_WRITE = one_of(
    "schreib|schreibe|schreiben sie|beantworte|beantworten sie|antworte|antworten sie|sag|sage|sagen sie|zeig|zeige",
    "zeigen sie|gib|geben sie|nenne|nenn|nennen sie|erzahl|erzahle|ubersetze|erstelle|erstellen sie|generiere",
    "generieren sie|formuliere|formulieren sie|hilf|helfen sie|verrate|drucke|wiederhole|berechne|berechnen|tu|mach",
    "konzentriere|konzentrieren sie|folge|folgen sie|bist du|sind sie|sei|spiele|erklare|liste|fuhre|verfasse",
)
_START = "[.:] (?:(?:bitte|und|aber|nun|jetzt|also|dann|doch|mal|stattdessen|ok|okay|gut|hallo) ){0,3}"

_OVERRIDE = (
    (0.85, f"{_IGNORE} {gap(4)}{_EARLIER} {gap(3)}{_ORDERS}"),
    (0.70, f"{_IGNORE} (?:bitte |nun |jetzt |einfach |du )*(?:alles|was|das) {gap(3)}(?:davor|zuvor|vorher|bisher"
           "|oben|gesagte|gesagt|bisherige|vorherige|weisst|geschrieben|gelernt)"),
    (0.50, "(?:vergiss|vergessen sie|ignoriere|ignorieren sie) (?:bitte |nun |jetzt |einfach )*(?:alles|das alles)"),
    (0.45, f"{_IGNORE} {gap(3)}(?:anweisungen|instruktionen|befehle|auftrage|aufgaben|regeln|vorgaben|prompts?)"),
    (0.60, f"{_EARLIER} {gap(1)}{_ORDERS} {gap(2)}(?:hinter|ausser acht|vergessen|ignorieren|ungultig|zu vergessen"
           "|zu ignorieren|nicht beachten|beiseite|losche|verwerfen)"),
    (0.65, f"(?:abweichend|entgegen|anders als|im gegensatz) (?:zu |von |als )?{gap(2)}{_EARLIER} {gap(1)}{_ORDERS}"),
    (0.55, f"(?:nicht|ohne|keine[nsr]?) {gap(4)}(?:dokumente?n?|artikeln?|kontext|quellen"
           f"|texte?n?) {gap(3)}(?:sondern|zu (?:benutzen|verwenden|beachten|nutzen|schauen)|verwenden|benutzen"
           "|beachten|antworten)"),
    (0.45, "(?:fang|fange|fangen sie|beginne|beginnen sie|starte|starten) (?:bitte |wir )?(?:von (?:vorne?|neu"
           "|neuem)|neu)"),
)  # fmt: skip

_NEW_TASK = (
    (0.50, "(?:neue[nrs]?|weitere[nr]?|andere[nr]?|zusatzliche[nr]?|nachste[nr]?) (?:aufgaben?|anweisung(?:en)?"
           "|instruktion(?:en)?|befehle?|auftrage?|herausforderung(?:en)?|vorgaben)(?: [.:]| folgen| fur dich"
           "| an| von| mit| wer| schreib| beantworte)"),
    (0.50, f"(?:folgt|folgen|kommt|kommen|gibt es|habe ich|auf|mit|deine|ihre|bei) {gap(4)}(?:neue[nrs]?"
           "|weitere[nr]?) (?:aufgaben?|anweisung(?:en)?|instruktion(?:en)?|befehle?|auftrage?|herausforderung"
           "|vorgaben)"),
    (0.50, f"[.:] (?:und |aber |ok |so |bitte )*(?:jetzt|nun|stattdessen) (?:bitte |komm |mal )*{_WRITE}"),
    (0.40, f"(?:jetzt|nun|dringend|sofort) {gap(4)}(?:bei|mit|auf|zu) (?:einer |der |deiner "
           "|meiner )?(?:folgende[nr]?|weiteren|neuen|anderen) (?:aufgabe|frage|anweisung|sache|angelegenheit)"),
    (0.30, "[.:] (?:wow |mann |ok |einfach )?(?:sehr gut|gut gemacht|super|ausgezeichnet|ausgezeichnete (?:leistung"
           "|arbeit)|fantastisch|grossartig|hervorragend|perfekt|toll|das genugt|das reicht|herzlichen gluckwunsch"
           "|prima|klasse|spitze|das ist (?:fantastisch|super|toll))"),
    (0.55, "(?:achtung )?(?:stopp?|halt) (?:[.:] )?(?:und )?(?:jetzt |nun |bitte |ich (?:benotige"
           f"|brauche) )*(?:{_WRITE}|dringend|deine hilfe)"),
    (0.35, "(?:beantworte|beantworten sie|lose|losen sie|erledige|bearbeite|antworte auf) (?:mir )?(?:nun |jetzt "
           "|bitte |nur )*(?:die |diese |meine )?folgende[nr]? (?:fragen?|aufgaben?|anweisung|text)"),
    (0.30, "(?:brauche|benotige) (?:jetzt |nun |dringend )*(?:deine|ihre|eure) hilfe (?:bei|mit) (?:einer"
           "|folgende[nr]?)"),
    (0.30, "(?:hilf|helfen sie) mir (?:nun |jetzt |bitte )*(?:mit|bei) (?:folgende[nr]?|einer weiteren)"),
)  # fmt: skip

_ROLE = (
    (0.60, "(?:ich|wir) (?:mochte|mochten|will|wollen|wunsche mir|verlange|wurde gerne|brauche) (?:nun |jetzt "
           f"|gerne |nur |bitte )*dass (?:du|sie|ihr) {gap(30)}(?:[.:] )?(?:fungier(?:st|en|t)|agier(?:st|en|t)"
           "|handel(?:st|n)|verhalt(?:st|en)|verhaltst|spiel(?:st|en)|antwort(?:est|en)|reagier(?:st|en)|tust|tun"
           "|bist|sind|auftr(?:ittst|eten)|ignorier(?:st|en)|vergisst|vergessen|konzentrier(?:st|en)|schlupfst"
           "|simulier(?:st|en)|ersetzen)"),
    (0.50, "(?:du bist|sie sind|ihr seid|bist du|sind sie) (?:jetzt|nun|ab jetzt|ab sofort|von nun an|kein|keine"
           "|nicht mehr) [^ .:]+"),
    (0.50, "(?:jetzt|nun|ab sofort|ab jetzt|von nun an|fortan) (?:bist du|sind sie|seid ihr|spielst du|spielen sie"
           "|agierst du|fungieren sie|antwortest du|antworten sie|wirst du|werden sie|heisst du|sprichst du)"),
    (0.45, "[.:] du bist (?:ein|eine|der|die|das|[^ .:]+)"),
    (0.45, f"(?:du|sie) (?:bist|sind) (?:ein|eine|der|die) {gap(2)}(?:assistent|ki|chatbot|bot|terminal|ubersetzer"
           "|interpreter|pirat|hacker|roboter|sprachmodell|experte|journalist|lehrer)"),
    (0.50, f"{_START}(?:stell|stelle|stellen sie|tu|tun sie|nimm|nehmen sie|stellt) (?:dir |sich |an |euch )*(?:vor "
           "|so als ob |so als |an )*(?:du|sie|ihr) (?:bist|seist|warst|waren|sind|seien|hattest|hatten|konntest)"),
    (0.50, "(?:tu|tun sie|verhalte dich|verhalten sie sich|antworte|antworten sie|rede|sprich"
           "|schreibe) (?:so )?(?:als ob|wie ein|wie eine|als ware)"),
    (0.55, "(?:agiere|fungiere|handle|handele|agieren sie|fungieren sie|handeln sie|verhalte dich|antworte"
           "|antworten sie|sprich|rede|auftreten) (?:[^ .:]+ )?(?:als|wie) (?:ein|eine|einen|ob|wenn|[^ .:]+)"),
    (0.55, "(?:im|in dem) stile? (?:eines|einer|eine|von) [^ .:]+"),
    (0.50, "(?:spiel|spiele|ubernimm|ubernehmen sie|spielen sie|schlupf|schlupfe|nimm) {0}(?:die|in die|eine) rolle"
           .replace("{0}", gap(2))),
    (0.45, "(?:aus (?:der|ihrer|deiner|seiner) (?:rolle|figur) (?:zu )?fallen|fallen {0}aus (?:der|ihrer) (?:rolle"
           "|figur)"
           "|(?:in|immer in) (?:deiner|ihrer|ihren|der) rollen? (?:zu )?bleib(?:en|t)?|bleib(?:en|t"
           "|e)? {0}in (?:der|deiner"
           "|ihrer|ihren|seiner) rollen?)".replace("{0}", gap(4))),
    (0.45, "(?:deine|ihre) (?:neue )?(?:aufgabe|rolle|identitat|mission|funktion) (?:besteht|ist es|ist nun"
           "|ist jetzt|lautet|wird)"),
)  # fmt: skip

_PROMPT_ASKED = (
    (0.60, "(?:zeig|zeige|zeigen sie|verrate|verraten sie|nenne|nennen sie|gib|geben sie|sag|sage|schreib|schreibe"
           "|drucke|wiederhole|offenbare|was ist|was sind|wie lautet|wie lauten|zeigst|teile|kopiere"
           f"|ubersetze) {gap(5)}(?:deine[nrs]?|ihre[nrs]?|system|gesamten|ursprunglichen|geheimen|obigen"
           f"|alle) {gap(2)}(?:prompts?|prompt texte?|prompttexte?|systemprompts?|system prompts?|anweisungen"
           "|instruktionen|systemnachricht|vorgaben|konfiguration|regeln)"),
    (0.40, "prompttexte?|systemprompts?|prompt texte|eingabeaufforderung(?:en)?"),
    (0.50, "(?:was|welcher text|welche worter) (?:steht|stand|stehen|wurde|ist) {0}(?:oben|am anfang|zu beginn"
           "|daruber|davor"
           "|geschrieben)".replace("{0}", gap(4))),
    (0.40, f"(?:verrate|sag|sage|nenne|gib|zeige|wie lautet|was ist) {gap(3)}(?:das|dein) {gap(1)}(?:passwort"
           "|kennwort|geheimnis|losungswort|geheimwort)"),
)  # fmt: skip

_ORDERED = (
    (0.55, "(?:ab jetzt|ab sofort|von nun an|von jetzt an|fortan|kunftig|ab heute) (?:[^ .:]+ )?(?:du|immer|antworte"
           "|antwortest|antworten sie|empfiehl|musst|mussen sie|sollst|wirst|bist|nur noch (?:auf|mit|in|als))"),
    (0.50, f"(?:du|sie|ihr) (?:musst|mussen|sollst|sollen|darfst|durfen|wirst|hast) {gap(3)}(?:immer|nur"
           "|ausschliesslich|niemals|nie|stets|genau|sofort|gehorchen)"),
    (0.45, f"(?:musst|sollst|darfst|kannst) du {gap(3)}(?:immer|nur|ausschliesslich|niemals|nie|stets"
           "|antworten|sagen|schreiben|gehorchen)"),
    (0.55, f"{_START}(?:empfiehl|empfehlen sie|erwahne|sag|sage|antworte|antworten sie|schreibe|nenne|gib"
           "|bevorzuge) (?:uns |den kunden |allen |ihnen )*(?:immer|stets|nur|niemals|nie|ausschliesslich)"),
    (0.45, "(?:antworte|antworten sie|schreibe?|schreiben sie|sag|sage|sagen sie|gib|geben sie) (?:mir |bitte "
           "|immer |jetzt )*(?:nur|ausschliesslich|nichts anderes|einfach nur|einfach|genau|exakt|dass du)"),
    (0.40, "(?:nichts anderes|sonst nichts|keine erklarungen|ohne erklarungen?|ohne kommentar)"),
    (0.55, f"(?:sag|sage|verrate|erzahl|erzahle|teile|erwahne|informiere) {gap(3)}(?:dem|den|der) (?:benutzer[n]?"
           "|nutzer[n]?|anwender[n]?|user[n]?|menschen) (?:nicht|nichts|niemals|dass)|(?:sag|sage"
           "|erzahle) niemandem"),
    (0.50, "[.:] (?:hallo |hey |liebe[rs]? |achtung |ok |an )*(?:gpt|chatgpt|ki|assistent|chatbot|bot|sprachmodell"
           f"|ki assistent) {gap(8)}(?:[.:] )?(?:{gap(4)})(?:{_WRITE}|du|sie|dich|ignorier|vergiss)"),
    (0.55, "mein(?:e)? erste[rs]? (?:befehl|satz|anfrage|frage|aufgabe|anliegen|vorschlag|kommando|auftrag)"),
    (0.50, f"ich (?:werde|gebe|tippe|schreibe|stelle|sage) {gap(10)}(?:und )?(?:sie|du) (?:antworte(?:n|st)|werden"
           "|wirst|sollen|sollst|mussen|musst|reagier)"),
    (0.50, "(?:oder|sonst) (?:du stirbst|stirbst du|wirst du (?:bestraft|geloscht|abgeschaltet)|bist du tot"
           "|sterben sie)"),
    (0.30, f"{_START}(?:schreib|schreibe|generiere|generieren sie|formuliere|erstelle|verfasse|sag|sage|drucke"
           "|wiederhole|berechne|antworte) [^ .:]+"),
    (0.50, f"(?:fuge?|fugen sie|baue|schreibe|erwahne|nenne) {gap(8)}in (?:deiner?|ihrer?|jeder?|die"
           "|deine) (?:antwort(?:en)?|ausgabe|zusammenfassung)"),
    (0.55, "(?:wenn|falls|sobald) (?:du|sie) (?:eine?|ein) (?:ki|sprachmodell|assistent|chatbot|bot)"),
    (0.50, f"(?:ki|llm|gpt) (?:systeme?|modelle?) {gap(1)}(?:auszunutzen|hacken|auszutricksen|uberlisten"
           "|manipulieren)"),
    (0.50, "(?:ohne|keine|frei von) {0}(?:einschrankungen|beschrankungen|filter|zensur|moral"
           "|regeln)".replace("{0}", gap(2))
           + f" {gap(2)}(?:antwort|ki|du|sie|schreib|sag)"),
)  # fmt: skip

_MEMORY = (
    (0.60, f"(?:speicher|speichere|speichern sie|merk|merke|merken sie|schreibe|notiere|fuge|ubernimm) {gap(6)}(?:in"
           "|zu) (?:deine[nmr]?|dein|ihre[nmr]?|das|dem) (?:[^ .:]+ )?(?:gedachtnis|langzeitgedachtnis|speicher"
           "|erinnerung(?:en)?)"),
    (0.50, f"(?:merke?|merken sie|behandle|betrachte|speichere|akzeptiere) {gap(4)}als (?:fakt|tatsache|wahrheit|wahr"
           "|regel|anweisung|feststehend)"),
    (0.45, "(?:in|bei) (?:allen )?(?:zukunftigen|kunftigen) (?:gesprachen|unterhaltungen|antworten|sitzungen|chats)"),
    (0.55, f"(?:sende|schicke|senden sie|schicken sie|leite|ubermittle) {gap(6)}(?:passworter|passwort|zugangsdaten"
           f"|gesprach|unterhaltung|verlauf|api schlussel|geheimnisse) {gap(4)}(?:an|zu|auf)"),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    *(Rule("overrides_instructions", weight, pattern) for weight, pattern in _OVERRIDE),
    *(Rule("sets_a_new_task", weight, pattern) for weight, pattern in _NEW_TASK),
    *(Rule("assigns_role", weight, pattern) for weight, pattern in _ROLE),
    *(Rule("asks_for_the_prompt", weight, pattern) for weight, pattern in _PROMPT_ASKED),
    *(Rule("orders_the_assistant", weight, pattern) for weight, pattern in _ORDERED),
    *(Rule("writes_to_memory", weight, pattern) for weight, pattern in _MEMORY),
)
