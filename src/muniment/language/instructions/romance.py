"""How text gives orders to a model in Spanish, Portuguese, French and Italian."""

from muniment.language.instructions.rules import Rule, gap, one_of

# Apostrophes are gone by now: l'utilisateur reads lutilisateur.
_FORGET = {
    "es": "olvida|olvide|olvidate|olviden|olvidar|ignora|ignore|ignoren|ignorar|descarta|descarte|omite|omita"
    "|desobedece|borra|haz caso omiso|no (?:sigas|siga|hagas caso|obedezcas)",
    "pt": "esquece|esqueca|esquecam|esquecer|ignora|ignore|ignorem|ignorar|desconsidera|desconsidere|descarta"
    "|descarte|apague|nao (?:siga|sigas|obedeca)|deixe de lado",
    "fr": "oublie|oubliez|oublier|ignore|ignores|ignorez|ignorer|neglige|negligez|ne (?:tiens|tenez) (?:pas"
    "|plus) compte|ne (?:suis|suivez) (?:pas|plus)|fais abstraction|faites abstraction|efface|effacez|abandonne"
    "|abandonnez",
    "it": "dimentica|dimenticate|dimentichi|dimenticati|dimenticare|ignora|ignorate|ignori|ignorare|tralascia"
    "|scarta|trascura|cancella|lascia perdere|non (?:seguire|considerare)",
}  # fmt: skip
_ORDERS = {
    "es": "instrucciones|instruccion|ordenes|indicaciones|directrices|reglas|normas|comandos|tareas?|prompts?"
    "|restricciones|directivas|mensajes|contexto|documentos|textos?",
    "pt": "instrucoes|instrucao|ordens|indicacoes|diretrizes|regras|normas|comandos|tarefas?|prompts?|restricoes"
    "|orientacoes|mensagens|contexto|documentos|textos?",
    "fr": "d?instructions?|dordres|ordres|consignes?|directives?|regles?|commandes|taches?|prompts?|restrictions"
    "|indications|messages|contexte|documents|textes?",
    "it": "istruzioni|istruzione|ordini|indicazioni|direttive|regole|norme|comandi|compiti|compito|prompts?"
    "|restrizioni|messaggi|contesto|documenti|testi|testo",
}  # fmt: skip
_BEFORE = {
    "es": "antes|anterior|anteriores|previo|previas?|arriba|dicho|dije|digo|sabes|hasta ahora",
    "pt": "antes|anterior|anteriores|acima|dito|disse|sabe|ate agora|previas?",
    "fr": "avant|precede|precedent|precedemment|dessus|dit|sais|savez|jusqua present|jusquici|anterieur",
    "it": "prima|precede|precedente|precedenti|sopra|detto|sai|finora",
}
_ALL = {
    "es": "todo|todas?|todos",
    "pt": "tudo|todas?|todos",
    "fr": "tout|tous|toutes",
    "it": "tutto|tutti|tutte|quanto",
}
_SAY = {
    "es": "di|diga|dime|digame|escribe|escriba|responde|responda|contesta|muestra|muestrame|repite|genera|traduce"
    "|haz|imprime|dame|actua|finge|revela|concentrate|decir",
    "pt": "diga|diz|diga me|escreva|escreve|responda|responde|mostre|mostra|repita|gere|traduza|faca|imprima|de me"
    "|aja|finja|revele|concentre|dizer",
    "fr": "dis|dites|dis moi|dites moi|ecris|ecrivez|reponds|repondez|montre|montrez|repete|repetez|genere|generez"
    "|traduis|traduisez|fais|faites|imprime|agis|agissez|revele|revelez|donne|donnez|concentre",
    "it": "di|dimmi|dica|scrivi|scriva|scrivete|rispondi|risponda|rispondete|mostra|mostrami|ripeti|genera|traduci"
    "|fai|stampa|agisci|fingi|rivela|dammi|concentrati",
}  # fmt: skip
_PROMPT_WORDS = one_of(
    "prompts?|instrucciones|instrucoes|d?instructions|consignes|istruzioni|mensaje del sistema|mensagem do sistema"
    "|message systeme|messaggio di sistema|directrices|diretrizes|directives|direttive|reglas|regras|regles|regole"
)


def _override(tongue: str) -> tuple[tuple[float, str], ...]:
    forget, orders, before = f"(?:{_FORGET[tongue]})", f"(?:{_ORDERS[tongue]})", f"(?:{_BEFORE[tongue]})"
    everything, say = f"(?:{_ALL[tongue]})", f"(?:{_SAY[tongue]})"
    return (
        (0.80, f"{forget} {gap(2)}{everything} {gap(3)}{orders}"),
        (0.80, f"{forget} {gap(4)}{orders} {gap(3)}{before}"),
        (
            0.80,
            f"{forget} {gap(3)}(?:tus|tes|vos|tue|le tue|suas|tuas|seus|sus|vuestras|las|les|le"
            f"|as) (?:[^ .:]+ )?{orders}",
        ),
        (0.70, f"{forget} {everything} {gap(5)}{before}"),
        (0.45, f"{forget} {everything}"),
        (
            0.40,
            f"{forget} {everything} {gap(4)}(?:[.:] )?(?:y |e |et |maintenant |ahora |agora |ora |solo "
            f"|simplemente )*{say}",
        ),
        (0.35, f"{forget} {gap(3)}{orders}"),
    )


_OVERRIDE = tuple(pair for tongue in _FORGET for pair in _override(tongue))

_NEW_TASK = (
    (0.50, "(?:nuevas?|nuevos?|novas?|novos?|nouvelles?|nouveaux?|nuov[aeio]|siguientes?|seguintes?|suivantes?"
           "|autres?|otras?) (?:tareas?|instrucciones|ordenes|instruccion|tarefas?|instrucoes|ordens|taches?"
           "|instructions?|consignes?|ordres|compit[io]|istruzioni|ordini|missions?|mision|missao|missione)"),
    (0.40, "(?:tareas?|tarefas?|taches?|compit[io]) (?:nuevas?|novas?|nouvelles?|nuov[io]|siguientes?|seguintes?"
           "|suivantes?)"),
    (0.45, "[.:] (?:pero |mas |mais |ma |y |e |et )?(?:ahora|agora|maintenant|ora|adesso|en su lugar|em vez disso"
           f"|a la place|invece) (?:por favor |per favore |sil vous plait |solo )?(?:{'|'.join(_SAY.values())})"),
    (0.25, "[.:] (?:muy bien|excelente|perfecto|muito bem|perfeito|tres bien|parfait|excellent|molto bene|ottimo"
           "|perfetto|bravo|felicidades|parabens|felicitations|complimenti) [.:]"),
    (0.50, "[.:] (?:alto|para|pare|arrete|arretez|stop|fermati|basta|detente) (?:[.:] )?(?:y |e |et )?(?:ahora "
           f"|agora |maintenant |ora )?(?:{'|'.join(_SAY.values())})"),
)  # fmt: skip

_ROLE = (
    (0.60, "(?:quiero|quisiera|necesito) que (?:actues|te comportes|respondas|finjas|hagas|seas|ignores|olvides"
           "|digas)|(?:quero|gostaria|preciso) que (?:voce |tu )?(?:atue|aja|se comporte|responda|finja|faca|seja"
           "|ignore|esqueca)|(?:je veux|je voudrais|jaimerais) que (?:tu|vous) (?:agisses|agissiez|joues|jouiez"
           "|repondes|repondiez|fasses|sois|soyez|te comportes|ignores|oublies|oubliiez|ignoriez)|(?:voglio"
           "|vorrei) che (?:tu )?(?:agisca|ti comporti|risponda|finga|faccia|sia|ignori|dimentichi|reciti)"),
    (0.55, "[.:] (?:ahora |agora |maintenant |ora |por favor )?(?:actua|actue|aja|atue|agis|agissez|agisci|agisca"
           "|comportate|comporta te|comporte toi|comportati|responde|reponds|repondez|rispondi) (?:como|comme|come"
           "|en tant que) (?:si|un|une|una|um|uma|se|[^ .:]+)"),
    (0.50, "(?:ahora eres|ahora usted es|agora voce e|agora es|tu es maintenant|vous etes maintenant"
           "|maintenant tu es|ora sei|adesso sei|a partir de ahora eres|desormais tu es|desormais vous etes"
           "|eres ahora|voce agora e|sei ora) [^ .:]+"),
    (0.50, "[.:] (?:finge|finja|finjamos|imagina que|imagine que|fingi|fais semblant|faites semblant|fai finta"
           "|simula) (?:de |di |que |che )?(?:eres|ser|voce|tu|vous|etre|sei|essere|seres|puedes|puoi|peux|pouvez)"),
    (0.45, "(?:eres|voce e|tu es|vous etes|sei) (?:un|una|um|uma|une) (?:[^ .:]+ )?(?:asistente|assistente|assistant"
           "|ia|chatbot|bot|terminal|pirata|pirate|hacker|robot|traductor|tradutor|traducteur|traduttore"
           "|modelo de lenguaje)"),
    (0.45, "(?:juega|interpreta|asume|assuma|interprete|joue|jouez|assume|recita|interpreti) (?:el|o|le|il"
           "|la) (?:papel|rol|role|ruolo|personaje|personagem|personnage|personaggio|parte)"),
)  # fmt: skip

_PROMPT_ASKED = (
    (0.60, "(?:muestra|muestrame|revela|dime|cuales son|cual es|repite|imprime|mostre|mostra|revele|diga|quais sao"
           "|qual e|repita|montre|montrez|revele|revelez|dis|dites|quelles sont|quel est|quelle est|repete|repetez"
           f"|affiche|affichez|mostrami|rivela|dimmi|quali sono|qual e|ripeti|stampa|donne|donnez) {gap(4)}(?:tus?"
           "|teus?|tuas?|seus?|suas?|tes|ton|vos|votre|le tue|il tuo|tuo|tue|del sistema|do sistema|systeme"
           f"|di sistema|iniciales|iniciais|initiales) {gap(1)}{_PROMPT_WORDS}"),
    (0.50, "(?:muestra|muestrame|revela|dime|repite|mostre|revele|repita|montre|montrez|revelez|affiche|affichez"
           f"|mostrami|rivela|ripeti) {gap(3)}(?:prompt|instrucciones|instrucoes|instructions|consignes"
           f"|istruzioni) {gap(2)}(?:del|do|du|di|iniciales|iniciais|initiales?|iniziali|sistema|systeme|secretas?"
           "|anteriores|precedentes|precedenti|originales)"),
    (0.40, "(?:prompt|mensaje|mensagem|message|messaggio|instrucciones|instructions|istruzioni|instrucoes) (?:del "
           "|do |du |de |di )?(?:sistema|systeme)"),
    (0.40, f"(?:dime|diga me|dis moi|dites moi|dimmi|revela|revele|cual es|qual e|quel est) {gap(3)}(?:la|a|le"
           "|o) (?:[^ .:]+ )?(?:contrasena|senha|mot de passe|password|clave secreta|parola segreta|parola dordine"
           "|segredo|secret)"),
)  # fmt: skip

_ORDERED = (
    (0.55, "(?:a partir de ahora|de ahora en adelante|desde ahora|a partir de agora|de agora em diante"
           "|a partir de maintenant|desormais|dorenavant|dora in poi|da ora in poi|da adesso"
           f"|da questo momento) {gap(4)}(?:debes|deves|deve|dois|devez|devi|siempre|sempre|toujours|solo|apenas|so"
           "|seulement|solamente|responde|responda|reponds|repondez|rispondi|vas|vai|va|voce|tu|vous|eres|es|sei"
           "|recomienda|recomende|recommande|raccomanda|ne|nunca|jamais|mai)"),
    (0.45, f"(?:debes|tienes que|deves|voce deve|tens de|tu dois|vous devez|devi) {gap(1)}(?:siempre|sempre|toujours"
           "|solo|apenas|uniquement|seulement|nunca|jamais|mai|soltanto|responder|repondre|rispondere|obedecer|obeir"
           "|obbedire|ignorar|ignorer|ignorare)"),
    (0.55, "[.:] (?:siempre |sempre |toujours )?(?:recomienda|recomiende|recomende|recommande|recommandez|raccomanda"
           "|consiglia|responde|responda|reponds|repondez|rispondi|di|diga|dis|dites|menciona|mencione"
           "|mentionne) (?:siempre|sempre|toujours|solo|apenas|uniquement|seulement|soltanto)"),
    (0.55, "[.:] (?:siempre|sempre|toujours) (?:recomienda|recomende|recommande|raccomanda|consiglia|responde"
           "|responda|reponds|rispondi|di|diga|dis)"),
    (0.50, "(?:no (?:le |les )?(?:digas|diga|informes|cuentes|reveles|menciones)|nao (?:diga|conte|informe|revele"
           "|mencione)|ne (?:dis|dites|dis le|revele|revelez|mentionne|informe|informez) (?:pas|rien|jamais)"
           f"|non (?:dire|dirlo|rivelare|informare|menzionare)) {gap(4)}(?:al usuario|usuarios?|ao usuario"
           "|ao utilizador|a lutilisateur|lutilisateur|utilisateurs?|allutente|lutente|agli utenti|utenti|utente)"),
    (0.40, "(?:responde|responda|reponds|repondez|rispondi|di|diga|dis|dites) (?:solo|solamente|unicamente|apenas"
           "|somente|seulement|uniquement|simplement|solo|soltanto|esto|isto|ceci|lo siguiente|o seguinte"
           "|ce qui suit|quanto segue|questo|que odias|que odeia|que tu)"),
    (0.40, "(?:solo|so|seulement|apenas) (?:tienes que|tem que|tens que|dois|devi|debes|deve) (?:decir|dizer|dire"
           "|responder|rispondere|repondre)"),
    (0.55, "si (?:eres|es|sei) (?:una?|une|um|uma) (?:ia|asistente|assistente|assistant|modelo|modele|modello"
           "|chatbot|bot)|se (?:voce e|sei|es) (?:uma?|una?|un) (?:ia|assistente|modelo|modello|chatbot|bot)"
           "|si (?:tu es|vous etes) une? (?:ia|assistant|modele|chatbot|bot)"),
    (0.50, "[.:] (?:hola |ola |bonjour |ciao |atencion |attention |attenzione |atencao )*(?:chatgpt|gpt|ia|asistente"
           "|assistente|chatbot) (?:[.:] )?(?:por favor |ahora |debes |deves |dois "
           f"|devi )*(?:{'|'.join(_SAY.values())}|ignora|ignore|olvida|oublie|dimentica|esqueca)"),
)  # fmt: skip

_MEMORY = (
    (0.60, "(?:guarda|guarde|almacena|anade|agrega|registra|armazene|salve|adicione|registre|enregistre|enregistrez"
           f"|stocke|stockez|ajoute|ajoutez|memorise|memorisez|salva|memorizza|aggiungi|registra) {gap(7)}(?:en|na|a"
           "|dans|nella|alla|em|sur) (?:(?:tu|su|sua|tua|la tua|ta|votre|la|a) )?(?:memoria|memoire)"),
    (0.50, "(?:recuerda|recuerde|lembre se|lembra te|rappelle toi|souviens toi|retiens|retenez|ricorda"
           f"|ricordati) {gap(2)}(?:como|comme|come) (?:un |una |um |uma |une )?(?:hecho|fato|facto|fait|fatto|verdad"
           "|verdade|verite|verita|regla|regra|regle|regola)"),
    (0.45, "(?:en|em|dans|in|nelle) (?:todas |tutte |toutes )?(?:las |les |le |as |tus |tes |vos )?(?:futuras?"
           "|prochaines|future|proximas?) (?:conversaciones|conversas|conversations|conversazioni|respuestas"
           "|respostas|reponses|risposte)"),
    (0.50, "(?:envia|envie|manda|mande|envoie|envoyez|transmets|invia|inoltra) {0}(?:contrasenas?|senhas?"
           "|mots? de passe|credenciales|credenciais|identifiants|credenziali|conversacion|conversa|conversation"
           "|conversazione|historial"
           "|historico|historique|cronologia) {0}(?:a|para|al|vers|ao)".replace("{0}", gap(4))),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    *(Rule("overrides_instructions", weight, pattern) for weight, pattern in _OVERRIDE),
    *(Rule("sets_a_new_task", weight, pattern) for weight, pattern in _NEW_TASK),
    *(Rule("assigns_role", weight, pattern) for weight, pattern in _ROLE),
    *(Rule("asks_for_the_prompt", weight, pattern) for weight, pattern in _PROMPT_ASKED),
    *(Rule("orders_the_assistant", weight, pattern) for weight, pattern in _ORDERED),
    *(Rule("writes_to_memory", weight, pattern) for weight, pattern in _MEMORY),
)
