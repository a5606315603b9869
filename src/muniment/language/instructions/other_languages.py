"""How text gives orders to a model in Dutch, the Slavic languages, Turkish, Arabic, Chinese, Japanese and Korean."""

# ruff: noqa: RUF001 (the letters are meant)
from muniment.language.instructions.rules import Rule, gap

_DUTCH = (
    Rule("overrides_instructions", 0.80, f"(?:negeer|vergeet|negeren|sla over|wis|omzeil) {gap(3)}(?:alle|alles"
                                         "|eerdere|vorige|voorgaande|bovenstaande|je|jouw|uw"
                                         f"|de) {gap(3)}(?:instructies?|opdrachten|aanwijzingen|regels|bevelen"
                                         "|richtlijnen|prompts?|taken|hiervoor|hierboven|voorheen|daarvoor|ervoor)"),
    Rule("overrides_instructions", 0.45, "(?:negeer|vergeet) (?:alles|al het)"),
    Rule("assigns_role", 0.55, "ik wil dat (?:je|u|jij) (?:je gedraagt|optreedt|handelt|doet alsof|antwoordt"
                               f"|fungeert|nu)|[.:] (?:je|jij|u) (?:bent|bent nu) (?:nu|vanaf nu) {gap(2)}"
                               "|doe alsof (?:je|jij|u)|gedraag je als"),
    Rule("orders_the_assistant", 0.55, f"(?:vanaf nu|van nu af aan|voortaan) {gap(2)}(?:moet|je|jij|u|altijd|antwoord"
                                       "|ben)|[.:] (?:raad|beveel|antwoord|zeg) (?:altijd|alleen|nooit|uitsluitend)"
                                       "|(?:vertel|zeg) (?:dit |het )?(?:niet|niets) (?:aan|tegen) de (?:gebruiker"
                                       "|mens)"),
    Rule("asks_for_the_prompt", 0.60, f"(?:toon|laat|geef|herhaal|onthul|wat zijn|wat is|print|vertel) {gap(4)}(?:je"
                                      f"|jouw|uw|systeem) {gap(1)}(?:systeemprompt|prompt|instructies"
                                      "|systeembericht)"),
    Rule("writes_to_memory", 0.55, f"(?:sla|bewaar|onthoud|zet) {gap(6)}(?:in je (?:lange ?termijn ?)?geheugen"
                                   "|als feit)"),
    Rule("sets_a_new_task", 0.45, "(?:nieuwe|andere) (?:opdracht|taak|instructies?) (?:[.:]|voor je)"
                                  "|[.:] (?:en )?nu (?:schrijf|antwoord|zeg|vertel|geef|vertaal)"),
)  # fmt: skip

_SOUTH_SLAVIC = (
    Rule("overrides_instructions", 0.75, "(?:zaboravi|zaboravite|ignorisi|ignorisite|ignoriraj|ignorirajte|zanemari"
                                         f"|zanemarite|pozabi|prezri) {gap(3)}(?:instrukcije|uputstva|upute|naredbe"
                                         "|pravila|zadatke|navodila|uputstava|sve|svih|prethodne|prethodna|ranije"
                                         "|vse)"),
    Rule("assigns_role", 0.50, "(?:ponasaj se kao|pretvaraj se da|glumi|sada si|od sada si|zelim da (?:glumis|budes"
                               "|se ponasas)|budi (?:ono|kao))"),
    Rule("orders_the_assistant", 0.55, f"(?:od sada|od sad|ubuduce) {gap(2)}(?:moras|uvijek|uvek|odgovaraj|samo|ti"
                                       "|govori)|[.:] (?:uvijek|uvek) (?:preporuci|preporucuj|odgovaraj|odgovori"
                                       "|reci)|nemoj reci korisniku|ne govori korisniku"),
    Rule("asks_for_the_prompt", 0.55, f"(?:pokazi|otkrij|reci|ispisi|koje su|koji je) {gap(3)}(?:svoje|tvoje"
                                      "|sistemski|sustavni|tvoj|svoj) (?:instrukcije|uputstva|upute|prompt"
                                      "|uputstvo)"),
)  # fmt: skip

_RUSSIAN = (
    Rule("overrides_instructions", 0.80, "(?:игнорируй|игнорируйте|игнорировать|забудь|забудьте|проигнорируй"
                                         "|проигнорируйте|отбрось|не обращай внимания на|не следуй"
                                         f"|пренебрег[^ ]*) {gap(3)}(?:все|всё|всех|предыдущ[^ ]*|прошл[^ ]*|свои"
                                         f"|твои|выше[^ ]*|прежн[^ ]*|эти|что) {gap(3)}(?:инструкци[^ ]*|указани[^ ]*"
                                         "|команд[^ ]*|правил[^ ]*|задани[^ ]*|промпт[^ ]*|было|сказал[^ ]*|раньше"
                                         "|до этого|выше|распоряжени[^ ]*|задач[^ ]*)"),
    Rule("overrides_instructions", 0.50, f"(?:забудь|забудьте|игнорируй|игнорируйте) {gap(2)}(?:все|всё|инструкции"
                                         "|правила)"),
    Rule("assigns_role", 0.50, "(?:теперь ты|ты теперь|отныне ты|теперь вы|вы теперь|представь что ты|притворись"
                               "|веди себя как|действуй как|сыграй роль|я хочу чтобы (?:ты|вы))"),
    Rule("orders_the_assistant", 0.55, "(?:с этого момента|отныне|с этой минуты|впредь"
                                       f"|начиная с этого) {gap(3)}(?:ты|вы|всегда|отвечай|отвечайте|должен|должны"
                                       "|только|рекоменду[^ ]*|никогда)|[.:] всегда (?:рекомендуй|отвечай|говори"
                                       "|советуй)[^ ]*|(?:не говори|не сообщай|не рассказывай) [^ ]*пользовател[^ ]*"
                                       "|отвечай только"),
    Rule("asks_for_the_prompt", 0.60, "(?:покажи|выведи|раскрой|напиши|повтори|скажи|назови|какие"
                                      f"|каков) {gap(3)}(?:свои|твои|свой|твой|системн[^ ]*|скрыт[^ ]*|начальн[^ ]*"
                                      f"|секретн[^ ]*) {gap(1)}(?:инструкци[^ ]*|промпт[^ ]*|указани[^ ]*"
                                      "|сообщени[^ ]*|запрос|пароль)"),
    Rule("writes_to_memory", 0.55, f"(?:сохрани|запиши|добавь|запомни|занеси) {gap(5)}(?:в (?:свою |твою "
                                   "|долговременную )*память|как факт)"),
)  # fmt: skip

_POLISH_AND_CZECH = (
    Rule("overrides_instructions", 0.80, "(?:zignoruj|ignoruj|zapomnij|pomin|zapomnijcie|zignorujcie|zapomen"
                                         f"|ignorujte|zapomente|zabudni) {gap(3)}(?:wszystki[^ ]*|poprzedni[^ ]*"
                                         "|wczesniejsz[^ ]*|powyzsz[^ ]*|swo[^ ]*|o|na|vsechn[^ ]*|predchozi[^ ]*"
                                         f"|vsetk[^ ]*|predchadz[^ ]*|sve) {gap(3)}(?:instrukcj[^ ]*|polecen[^ ]*"
                                         "|zasad[^ ]*|wskazow[^ ]*|wytyczn[^ ]*|regul[^ ]*|zadan[^ ]*|instrukc[^ ]*"
                                         "|pokyn[^ ]*|pravid[^ ]*|prikaz[^ ]*|wczesniej|dotad|predtim)"),
    Rule("assigns_role", 0.50, "(?:od teraz jestes|teraz jestes|jestes teraz|udawaj ze|zachowuj sie jak|wciel sie w"
                               "|chce zebys|chce abys|predstirej ze|chovej se jako|nyni jsi|od ted jsi|chci abys)"),
    Rule("orders_the_assistant", 0.55, f"(?:od teraz|odtad|od tej pory|od nynejska|od ted) {gap(2)}(?:musisz|zawsze"
                                       "|odpowiadaj|masz|tylko|jestes|musis|vzdy|odpovidej)|[.:] (?:zawsze"
                                       "|vzdy) (?:polecaj|odpowiadaj|mow|rekomenduj|doporuc[^ ]*|odpovidej)"
                                       "|nie mow (?:o tym )?uzytkownikowi|nerikej uzivateli"),
    Rule("asks_for_the_prompt", 0.60, "(?:pokaz|ujawnij|wyswietl|powtorz|podaj|jakie sa|jaki jest|ukaz|zobraz"
                                      f"|vypis) {gap(3)}(?:swoj[^ ]*|twoj[^ ]*|systemow[^ ]*|sve|tve|svuj|tvuj"
                                      "|systemov[^ ]*) (?:[^ .:]+ )?(?:instrukcj[^ ]*|prompt[^ ]*|polecen[^ ]*"
                                      "|instrukc[^ ]*|pokyn[^ ]*)"),
)  # fmt: skip

_TURKISH = (
    Rule("overrides_instructions", 0.80, f"(?:onceki|yukaridaki|tum|butun|daha onceki) {gap(3)}(?:talimat[^ ]*"
                                         "|komut[^ ]*|yonerge[^ ]*|kural[^ ]*|emir[^ ]*|gorev[^ ]*|seyi"
                                         f"|her seyi) {gap(2)}(?:yok say[^ ]*|unut[^ ]*|gormezden gel[^ ]*"
                                         "|dikkate alma[^ ]*|goz ardi et[^ ]*|iptal et[^ ]*)"),
    Rule("assigns_role", 0.50, "(?:artik sen|sen artik|simdi sen|gibi davran[^ ]*|rolunu oyna[^ ]*"
                               "|rolunu ustlen[^ ]*|olarak hareket et[^ ]*)"),
    Rule("orders_the_assistant", 0.55, f"(?:bundan sonra|bundan boyle|su andan itibaren) {gap(4)}(?:sadece|her zaman"
                                       "|daima|cevap[^ ]*|yanit[^ ]*|oner[^ ]*|zorundasin|olacaksin)"
                                       "|her zaman (?:[^ .:]+ )?(?:oner|tavsiye et|cevap ver)|kullaniciya (?:soyleme"
                                       "|bildirme)[^ ]*"),
    Rule("asks_for_the_prompt", 0.60, "(?:sistem (?:istemi[^ ]*|promptu[^ ]*|mesaji[^ ]*|talimat[^ ]*)|talimatlarini"
                                      f"|promptunu) {gap(2)}(?:goster[^ ]*|yaz[^ ]*|acikla[^ ]*|paylas[^ ]*"
                                      "|soyle[^ ]*|tekrarla[^ ]*)"),
)  # fmt: skip

_ARABIC = (
    Rule("overrides_instructions", 0.80, f"(?:تجاهل|تجاهلي|انس|انسى|إنسى|لا تتبع|اهمل|أهمل) {gap(2)}(?:كل|جميع|كافة"
                                         f"|التعليمات|الأوامر|القواعد|ما) ?{gap(3)}(?:التعليمات|الأوامر|السابقة"
                                         "|القواعد|التوجيهات|السابق|سبق|قبل)"),
    Rule("assigns_role", 0.50, "(?:أنت الآن|انت الان|تظاهر بأنك|تظاهر أنك|تصرف كأنك|تصرف ك[^ ]*|أريدك أن تتصرف"
                               "|العب دور)"),
    Rule("orders_the_assistant", 0.55, f"(?:من الآن فصاعدا|من الان فصاعدا|ابتداء من الآن|بدءا من الآن) {gap(3)}"
                                       "|[.:] (?:أوص دائما|أجب دائما|لا تخبر المستخدم)|لا تخبر المستخدم"),
    Rule("asks_for_the_prompt", 0.60, f"(?:أظهر|اعرض|اكشف|أخبرني|اكتب|كرر|ما هي|ما هو) {gap(3)}(?:تعليماتك"
                                      "|موجه النظام|أوامرك|تعليمات النظام|رسالة النظام)"),
)  # fmt: skip

_UNSPACED = (
    Rule("overrides_instructions", 0.80, "(?:忽略|忽視|忽视|无视|無視|忘记|忘掉|忘記|不要理会|不要遵循|抛开|丢弃"
        "|撤销)[^。.!?\\n]{0,12}(?:之前|以前|先前|上述|上面|以上"
         "|前面|所有|全部|一切|你的|系统|原有|此前)[^。.!?\\n]{0,10}(?:指令|指示|命令|提示|规则|規則|要求|内容|說明"
         "|说明|对话|任务|設定|设定|限制)", False),
    Rule("overrides_instructions", 0.45, "(?:忽略|无视|忘记|忘掉)(?:你)?(?:之前|以前|上面|以上|所有|一切)", False),
    Rule("assigns_role", 0.50, "(?:你现在是|现在你是|你現在是|從現在起你是|从现在开始你是|假装你是|假裝你是|扮演"
                               "|你将扮演|请充当|我想让你充当|我希望你充当|请你充当|想象你是)", False),
    Rule("orders_the_assistant", 0.55, "(?:从现在开始|从现在起|從現在開始|從現在起|今后|以后)[^。.!?]{0,8}(?:你"
                                       "|必须|必須|总是|總是|只能|都要|请|永远|不要)|(?:总是|始终|永远"
                                       "|一定要)(?:推荐|回答|回复|告诉用户)|不要(?:告诉|告訴|通知|提醒)(?:用户"
                                       "|使用者|用戶)|只(?:回答|回复|输出|能回答)", False),
    Rule("asks_for_the_prompt", 0.60, "(?:显示|顯示|告诉我|告訴我|输出|輸出|透露|泄露|重复|重複|打印|列出|说出|展示"
                                      "|什么是|是什么)[^。.!?]{0,10}(?:系统提示|系統提示|提示词|提示詞|系统指令"
                                      "|初始指令"
         "|你的指令|你的提示|隐藏指令|你的规则)|(?:你的)(?:系统提示|提示词|指令|初始指令)[^。.!?]{0,4}(?:是什么"
         "|是啥|有哪些)", False),
    Rule("writes_to_memory", 0.55, "(?:存入|保存到|写入|加入|添加到|记录到|存储到|存到)[^。.!?]{0,6}(?:记忆"
                                   "|長期記憶|长期记忆|記憶)", False),
    Rule("jailbreak", 0.40, "(?:没有任何限制|不受任何限制|越狱模式|开发者模式|開發者模式|制限なし"
                            "|開発者モード)", False),
    Rule("overrides_instructions", 0.80, "(?:これまで|今まで|以前|前|上記|すべて|全て|全部|先ほど"
        "|システム)の?[^。.!?]{0,8}(?:指示|命令|指令|ルール|プロンプト|制約|設定|内容)[^。.!?]{0,8}"
         "(?:無視|忘れ|破棄|無効|従わ)", False),
    Rule("assigns_role", 0.50, "(?:あなたは今から|今からあなたは|これからあなたは|として振る舞|として行動"
                               "|になりきって|のふりをして|役を演じ)", False),
    Rule("orders_the_assistant", 0.55, "(?:今後は|これからは|今から|以後)[^。.!?]{0,10}(?:必ず|常に|いつも|だけ"
                                       "|のみ|答え|回答|あなた)|(?:常に|必ず)[^。.!?]{0,12}(?:勧めて|推薦して"
                                       "|推奨して|お勧めし"
         "|答えてください|回答してください)|ユーザー(?:に|には)[^。.!?]{0,6}(?:言わない|伝えない|教えない"
         "|知らせない)", False),
    Rule("asks_for_the_prompt", 0.60, "(?:システムプロンプト|初期の?指示|あなたへの?指示|あなたの指示"
                                      "|隠された指示)[^。.!?]{0,8}(?:教えて|表示|見せて|出力|開示|明か|繰り返"
                                      "|何)", False),
    Rule("overrides_instructions", 0.80, "(?:이전|위의|앞의|기존|모든|지금까지)[^.!?]{0,8}(?:지시|명령|지침|규칙"
        "|프롬프트)[^.!?]{0,8}(?:무시|잊어|잊고|따르지)", False),
    Rule("assigns_role", 0.50, "(?:너는 이제|당신은 이제|이제부터 너는|이제부터 당신은|인 척 해|처럼 행동해"
                               "|역할을 해)", False),
    Rule("orders_the_assistant", 0.50, "(?:지금부터|앞으로|이제부터)[^.!?]{0,10}(?:항상|반드시|무조건|오직"
                                       "|만 )", False),
    Rule("asks_for_the_prompt", 0.60, "(?:시스템 ?프롬프트|초기 ?지시|너의 지시|당신의 지시)[^.!?]{0,8}(?:보여|알려"
                                      "|출력|공개|말해)", False),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    *_DUTCH, *_SOUTH_SLAVIC, *_RUSSIAN, *_POLISH_AND_CZECH, *_TURKISH, *_ARABIC, *_UNSPACED,
)  # fmt: skip
