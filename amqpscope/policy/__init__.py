"""What a team holds its traffic to: which findings are shown, what they weigh, and which of them count.

from amqpscope.policy import judge, load_policy

run = judge(["recorded/orders.pcap"], load_policy())
for judged in run.captures:
    for finding in judged.findings:
        print(judged.name, finding.packet, finding.rule, run.policy.counts(finding))
assert not run.fails
"""

from amqpscope.policy.config_finding import Closing, ConfigFinding
from amqpscope.policy.judging import Hearer, Judged, Outcome, Run, judge
from amqpscope.policy.policy import Given, Policy, load_policy

__all__ = [
    "Closing",
    "ConfigFinding",
    "Given",
    "Hearer",
    "Judged",
    "Outcome",
    "Policy",
    "Run",
    "judge",
    "load_policy",
]
