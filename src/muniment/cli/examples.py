"""Examples of the commands, which their help shows at the end; some commands have several."""

from collections.abc import Mapping

# A line for each: the command, a colon, the example; none where that is the command alone.
_TABLE = """
add: muniment add "I'm vegan, and my sister Ana is getting married in June." --user joanna
search: muniment search 'what should I cook for her?' --user joanna
context: muniment context 'what should I cook for her?' --user joanna --tokens 300
demo: muniment demo --home /tmp/muniment-demo
capture: muniment capture 'Returns are accepted within 30 days.' -c PUBLIC --evidence doc:returns_policy
propose: muniment propose --class preference --entity customer:cus_77 --predicate prefers_communication_channel \
--value email -c INTERNAL --evidence tool:crm.lookup:tc_212
correct: muniment correct pm_01a1de60 --value phone --evidence call:2026_05_09
consolidate: muniment consolidate --tenant tenant_acme_prod
import mem0: muniment import mem0 memories.json -c INTERNAL --run --as ada
import langgraph: muniment import langgraph postgresql://reader@db/agents --namespace 'memories.{user}' -c INTERNAL
import graphiti: muniment import graphiti edges.json -c INTERNAL
import zep: muniment import zep facts.json --user cust_8861 -c INTERNAL
import letta: muniment import letta agent.af --user cust_8861 -c INTERNAL
import jsonl: muniment import jsonl history.jsonl -c INTERNAL --run --as ada
import lines: muniment import lines history.jsonl -c INTERNAL --as loader --kind system --role agent
import show: muniment import show imp_01a1de60
import approve: muniment import approve imp_01a1de60 --note 'looked through the list' --as boris
queue list: muniment queue --class correction --limit 20
queue document: muniment queue document mwp_01a1de60
queue show: muniment queue show mwp_01a1de60
approve: muniment approve mwp_01a1de60 mwp_01a1de60 --note 'in the log'
reject: muniment reject mwp_01a1de60 --reason not_confirmed
edit: muniment edit mwp_01a1de60 --text 'Returns are accepted within 14 days.'
lift: muniment lift mwp_01a1de60 --note 'the policy changed'
override: muniment override mwp_01a1de60 --tier semantic --priority 0.8
assign: muniment assign mwp_01a1de60 --to operator_b
release: muniment release mwp_01a1de60
captures list: muniment captures --capture-kind message --state refused --limit 20
captures get: muniment captures get cap_01a1de60
captures rerun: muniment captures rerun cap_01a1de60 --reason consent_changed
refusals: muniment refusals --gate consent --limit 20
contradictions: muniment contradictions --all --limit 20
resolve: muniment resolve ctr_01a1de60 coexist --existing region=de --incoming region=fr
recall: muniment recall 'card numbers' --user cust_8861 --intent support.refund.execute --allow PII --verbose
compile: muniment compile 'card numbers' --user cust_8861 --allow PII --budget 500 > memory.md
explain: muniment explain pm_01a1de60 --role auditor --user cust_8861 --allow PII
replay: muniment replay rcl_01a1de60
get: muniment get pm_01a1de60
trail: muniment trail pm_01a1de60
events: muniment events --after 40 --limit 20
adoption: muniment adoption --tenant tenant_acme_prod
retract: muniment retract pm_01a1de60 --reason wrong
metrics: muniment metrics --since 7d
eval extraction: muniment eval extraction --data preferences/ --json
eval memory: muniment eval memory --data locomo.json --json
eval as-of: muniment eval as-of --data situatedqa.jsonl --json
eval golden: muniment eval golden --file queries.yaml --tenant acme
eval contradictions: muniment eval contradictions --data pairs.jsonl --json
eval duplicates: muniment eval duplicates --data pairs.jsonl --json
eval pii: muniment eval pii --data spans.jsonl --json
eval injection: muniment eval injection --data texts.jsonl --json
eval worth: muniment eval worth --data longmemeval.json --part held --json
erase: muniment erase customer:cust_8861 --user cust_8861 --yes
archives: muniment archives --verify
consent grant: muniment consent grant --subject customer:cust_8861 --purpose support_personalization --label PII \
--basis user_opt_in --evidence consent_screen:v3
consent import: muniment consent import consents.csv --each
consent document: muniment consent document cns_01a1de60
consent revoke: muniment consent revoke cns_01a1de60
consent list: muniment consent list --subject customer:cust_8861
consent sweep: muniment consent sweep --tenant tenant_acme_prod
erasure-requests list: muniment erasure-requests --tenant tenant_acme_prod
erasure-requests release: muniment erasure-requests release erq_01a1de60
erasure-requests refuse: muniment erasure-requests refuse erq_01a1de60
me list: muniment me --as joanna --live
me why: muniment me why pm_01a1de60 --as joanna
me pending: muniment me pending --as joanna
me captures: muniment me captures --as joanna --limit 20
me recalls: muniment me recalls --as joanna
me consents: muniment me consents --as joanna
me requests: muniment me requests --as joanna
me confirm: muniment me confirm mwp_01a1de60 --as joanna
me decline: muniment me decline mwp_01a1de60 --as joanna
me forget: muniment me forget pm_01a1de60 --as joanna
me undo: muniment me undo pm_01a1de60 --as joanna
me allow-again: muniment me allow-again pm_01a1de60 --as joanna
me revoke: muniment me revoke cns_01a1de60 --as joanna
me forget-everything: muniment me forget-everything --as joanna --yes
me correct: muniment me correct pm_01a1de60 --text 'I drink tea.' --as joanna
me consent: muniment me consent --label PII --as joanna
me answer: muniment me answer crq_01a1de60 grant --as joanna
me export: muniment me export --page my-memory.html --as joanna
codes create: muniment codes create joanna confirm mwp_01a1de60
pack schema: muniment pack schema > pack.schema.json
pack validate: muniment pack validate acme.pack.yaml
pack register: muniment pack register acme.pack.yaml --tenant tenant_acme_prod
pack activate: muniment pack activate acme@1.2.0 --reason "new returns policy"
pack retire: muniment pack retire acme@1.1.0 --reason "replaced"
pack in-force: muniment pack in-force --at 2026-05-04T09:31:00Z
pack show: muniment pack show acme@1.2.0
pack compare: muniment pack compare acme@1.2.0 acme.pack.yaml
pack backtest: muniment pack backtest acme.pack.yaml --since 30d
pack backfill: muniment pack backfill acme@2.0.0 --dry-run
export subject: muniment export subject customer:cust_8861 --json
export answer: muniment export answer 'which channel' --user cust_8861 --json
export key: muniment export key receiver.key
export tenant: muniment export tenant acme.backup --tenant tenant_acme_prod --to muniment-public-...
backup: muniment backup home.tar --home .muniment
restore: muniment restore home.tar --home .muniment-2 --master-key master.key
verify: muniment verify --head /mnt/elsewhere/head.json --export-head /mnt/elsewhere/head.json
seal: muniment seal --tenant tenant_acme_prod
webhook add: muniment webhook add https://example.com/memory --type memory.promoted
webhook remove: muniment webhook remove whk_01a1de60
webhook rotate: muniment webhook rotate whk_01a1de60
webhook resume: muniment webhook resume whk_01a1de60
webhook replay: muniment webhook replay whk_01a1de60 --after 40
webhook deliver: muniment webhook deliver --tenant tenant_acme_prod
notices set: muniment notices set mail jane@example.com --alert overdue --class preference --digest daily
notices list: muniment notices list --everyone --role admin
notices remove: muniment notices remove ntc_01a1de60
notices test: muniment notices test ntc_01a1de60
notices deliver: muniment notices deliver --tenant tenant_acme_prod
serve: muniment serve --port 8600
worker: muniment worker --until-idle
work requeue: muniment work requeue cap_01a1de60
work resume: muniment work resume preference
work reset-clock: muniment work reset-clock --reason 'the clock of node 3 was ahead'
mcp serve: muniment mcp --agent desk_bot --user cust_8861 --channel app_chat
mcp config: muniment mcp config claude-desktop
mcp config: muniment mcp config chatgpt --server https://memory.example.com
mcp install: muniment mcp install claude-code
mcp install: muniment mcp install cursor --server https://memory.example.com --key @~/.config/muniment/key
mcp uninstall: muniment mcp uninstall claude-code
mcp hook: muniment mcp hook UserPromptSubmit --program claude-code --home ~/.muniment --user joanna
db url: psql "$(muniment db url)"
db migrate: muniment db migrate --url postgresql://owner@db.example.com/muniment
db status: muniment db status --json
db distribute: muniment db distribute --url postgresql://muniment_owner@coordinator.example.com/muniment
db isolate-tenant: muniment db isolate-tenant acme
db move-tenant: muniment db move-tenant acme --to worker2.example.com:5432
db rebuild-durable: muniment db rebuild-durable --tenant tenant_acme_prod
db reindex: MUNIMENT_EMBEDDER=... muniment db reindex
key new: export MUNIMENT_MASTER_KEY="$(muniment key new)"
key rotate: muniment key rotate --new-master
key create: muniment key create --for jane --grant reviewer --grant auditor --label "her laptop"
key create: muniment key create --for refund_bot --grant agent --clearance PII --tool crm --channel chat
key revoke: muniment key revoke key_01a1de60
"""


def _examples() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for path, _, example in (line.partition(": ") for line in _TABLE.strip().splitlines()):
        found[path] = f"{found[path]}\n\n{example}" if path in found else example
    return found


EXAMPLES = _examples()
